"""Sphinx's settings: `make docs` builds the pages of this folder as a site. Nothing is fetched while it is built or read."""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent

project = "datasette-mempalace"
author = "the authors of datasette-mempalace"
release = re.search(
    r'^__version__ = "([^"]+)"', (HERE.parent / "datasette_mempalace" / "version.py").read_text("utf-8"), re.M
)[1]
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

# Anchors as GitHub makes them, so that the links of these pages hold on both.
myst_heading_anchors = 4

html_theme = "furo"
html_title = "datasette-mempalace"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
