"""Cells of CSV that no spreadsheet runs, and that Python's csv can write. Pure."""

from __future__ import annotations

from typing import Any

FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "＝",
    "＋",
    "－",
    "＠",
)  # with the wide forms that some take for them
# csv writes no NUL before Python 3.11. No text of a palace holds this lone surrogate, so it can stand in meanwhile.
_NUL_STAND_IN = "\udc00"


def cell(value: Any) -> Any:
    """A value as a cell: a text that would begin a formula gets an apostrophe before it."""
    if not isinstance(value, str):
        return value
    return ("'" if value.startswith(FORMULA) else "") + value.replace("\0", _NUL_STAND_IN)


def written(lines: str) -> str:
    """What csv has made of cells, to be sent or stored."""
    return lines.replace(_NUL_STAND_IN, "\0")
