"""Reads rows from JSON, NDJSON, CSV and TSV: each with its line number, or what is wrong with it.

One bad row never costs another: reading goes on behind it wherever the format allows that, and says so where it does
not. NDJSON and CSV are read as a stream; a JSON array is loaded whole.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Callable
from typing import IO, Any

from ..errors import BadInput
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
    return form or next((ENDINGS[end] for end in ENDINGS if name.lower().endswith(end)), None)


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
    raw = Peekable(stream)
    start = raw.peek(_PEEK)
    encoding = _encoding(start)
    form = told_format(name, form)
    if form in (None, "json"):
        form = _form_of(start.decode(encoding, "replace"), form)
    newline = "\n" if form == "ndjson" else ""
    text = io.TextIOWrapper(
        io.BufferedReader(raw), encoding=encoding, errors="surrogateescape", newline=newline
    )
    try:
        if form == "json":
            yield from json_rows(text.read())
        elif form == "ndjson":
            yield from ndjson_rows(text)
        else:
            yield from table_rows(text, form == "tsv", on_columns)
    except UnicodeError as error:  # UTF-16 or UTF-32 that breaks off: what came before is already out
        raise BadInput(f"The file is not the {encoding} text that it begins as: {error}.") from None
    finally:
        text.detach()  # the stream is not ours to close


class Peekable(io.RawIOBase):
    """A binary stream, pipes too, whose beginning can be looked at."""

    def __init__(self, stream: IO[bytes]):
        self._stream, self._held = stream, b""

    def readable(self) -> bool:
        return True

    def peek(self, size: int) -> bytes:
        while len(self._held) < size:
            more = self._stream.read(size - len(self._held))
            if not more:
                break
            self._held += more
        return self._held

    def readinto(self, buffer: Any) -> int:
        if self._held:
            data, self._held = self._held[: len(buffer)], self._held[len(buffer) :]
        else:
            data = getattr(self._stream, "read1", self._stream.read)(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)


def _encoding(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig"


def _form_of(start: str, form: str | None) -> str:
    """Tell JSON, NDJSON and CSV apart by how they begin."""
    start = start.lstrip("\ufeff")
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
