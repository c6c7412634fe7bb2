"""CSV of the drawers, for spreadsheets: no cell begins a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import IO, Any

from ..cells import cell, written
from .readable import Readable
from .selection import COLUMNS, View


def write(view: View, out: IO[str], progress: Callable[[int, int], None]) -> Readable:
    """Write a heading row, then a row for each drawer.

    Args:
        view: what is exported.
        out: a text stream that leaves line endings alone.
        progress: called with (done, total).
    Returns:
        how many drawers were written, and how many values had to be changed.
    """
    names = ("id", *COLUMNS["drawer"])
    total = view.count("drawer")
    done = Readable()
    out.write(_line(names))
    for row in view.rows("drawer"):
        out.write(_line([done.text(row[name]) for name in names]))
        done.drawers += 1
        progress(done.drawers, total)
    return done


def _line(values: Any) -> str:
    line = io.StringIO()
    csv.writer(line).writerow([cell(value) for value in values])
    return written(line.getvalue())
