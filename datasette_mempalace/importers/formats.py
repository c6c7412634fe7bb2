"""Reads rows from JSON, NDJSON, CSV and TSV: each with its line number, or what is wrong with it.

One bad row never costs another: reading goes on behind it wherever the format allows that, and says so where it does
not. NDJSON and CSV are read as a stream; a JSON array is loaded whole.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import IO

from .decoding import as_utf8
from .json_rows import json_rows, ndjson_rows
from .rows import BadRow, Row, Rows
from .tables import table_rows

__all__ = ["FORMATS", "BadRow", "Row", "read_rows"]

FORMATS = ("json", "ndjson", "csv", "tsv")
ENDINGS = {
    ".json": "json", ".geojson": "json", ".ndjson": "ndjson", ".jsonl": "ndjson", ".ldjson": "ndjson",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
}  # fmt: skip
_PEEK = 65_536


def told_format(name: str = "", form: str | None = None) -> str | None:
    """The format as it was given, or as a file's name tells it; None where only the content can."""
    name = name.lower().removesuffix(".gz")
    return form or next((ENDINGS[end] for end in ENDINGS if name.endswith(end)), None)


def read_rows(
    stream: IO[bytes],
    name: str = "",
    form: str | None = None,
    on_columns: Callable[[list[str]], None] | None = None,
) -> Rows:
    """Read every row of a file.

    Args:
        stream: the file, binary.
        name: its name, whose ending tells the format; anything else is found out from the content.
        form: one of `FORMATS`, to say it.
        on_columns: told the names of a table's columns before its first row; it may raise.
    Raises:
        BadInput: when the file as a whole cannot be understood.
    """
    raw = as_utf8(stream)
    form = told_format(name, form)
    if form in (None, "json"):
        form = _form_of(raw.peek(_PEEK).decode("utf-8", "replace"), form)
    newline = "\n" if form == "ndjson" else ""
    text = io.TextIOWrapper(
        io.BufferedReader(raw), encoding="utf-8", errors="surrogateescape", newline=newline
    )
    try:
        if form == "json":
            yield from json_rows(text.read())
        elif form == "ndjson":
            yield from ndjson_rows(text)
        else:
            yield from table_rows(text, form == "tsv", on_columns)
    finally:
        text.detach()  # the stream is not ours to close


def _form_of(start: str, form: str | None) -> str:
    """Tell JSON, NDJSON and CSV apart by how they begin."""
    begin = start.lstrip()
    if begin.startswith("{"):
        # A whole object on the first line is NDJSON, unless it is all there is: then it may wrap a list.
        first, _, rest = begin.partition("\n")
        try:
            json.loads(first)
        except ValueError:
            return "json" if form or not _looks_like_lines(begin) else "ndjson"
        except RecursionError:
            pass
        return "ndjson" if rest.strip() else "json"
    if begin.startswith("[") or form:
        return form or "json"
    first = start.partition("\n")[0]
    return "tsv" if "\t" in first and "," not in first else "csv"


def _looks_like_lines(begin: str) -> bool:
    """Whether a text whose first line is broken JSON still looks like one object a line."""
    return begin.count("\n{") > 0
