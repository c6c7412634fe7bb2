"""Datasette's log of errors without the local variables of every frame: cookies and texts do not belong there.

Datasette writes them, for a missing page too, as soon as the package `rich` is installed, and chromadb brings it. That
also takes up to a second on the event loop, for which every other visitor waits. The traceback of a real fault is
written by Datasette in any case.
"""

from __future__ import annotations

import importlib
from typing import Any

from .config import read_settings
from .registry import PLUGIN

# `datasette.handle_exception` as an attribute may be a function; as a module it holds `rich`, or None where there is none.
_core = importlib.import_module("datasette.handle_exception")
_rich: Any = getattr(_core, "rich", None)


def settle(datasette: Any) -> None:
    """Keep local variables out of the log of this process, unless the setting `rich_tracebacks` lets them in.

    Args:
        datasette: the Datasette instance, whose settings have been checked.
    """
    settings = read_settings(datasette.plugin_config(PLUGIN))
    _core.rich = _rich if settings.rich_tracebacks else None  # type: ignore[attr-defined]
