"""Reads rows from CSV and TSV, one record at a time; quotes that do not match cost one row, not the rest of the file."""

from __future__ import annotations

import csv
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO

from ..errors import BadInput
from .decoding import READ
from .rows import BAD_BYTE, BadRow, Row, Rows, bad_bytes

# csv refuses NUL before Python 3.11. No decoder gives this lone surrogate, so it can stand in for NUL meanwhile.
_NUL_STAND_IN = "\udc00" if sys.version_info < (3, 11) else ""
# What no name of a column has: control characters, and bytes that are no UTF-8. It would be shown to a person.
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f\udc80-\udcff]")
_MAX_RECORD = 50_000_000


def table_rows(text: IO[str], tabs: bool, on_columns: Callable[[list[str]], None] | None) -> Rows:
    """The rows of CSV or TSV, each an object of its filled cells.

    Args:
        text: the file, read with `surrogateescape` and newlines left alone.
        tabs: whether it is TSV; else the first line tells what separates the columns.
        on_columns: told the names of the columns before the first row; it may raise.
    Raises:
        BadInput: when the first line cannot be read.
    """
    csv.field_size_limit(2**31 - 1)  # the largest that every platform takes; a long text is no error
    lines = _Lines(text)
    header: list[str] | None = None
    delimiter = "\t"
    while True:
        first = lines.peek()
        if first is None:
            return
        if header is None and not tabs:
            delimiter = _delimiter(first)
        number = lines.number
        try:
            cells = _record(lines, delimiter)
        except csv.Error as error:
            cells = _plain_cells(first, header) if tabs else []
            if not cells:
                if header is None:
                    raise BadInput(
                        f"The first line, with the names of the columns, cannot be read: {error}."
                    ) from None
                yield BadRow(number, f"the quotes do not match ({error})")
                continue
        if not cells:  # a blank line
            continue
        if header is None:
            if no_text := _NO_TEXT.search("".join(cells)):
                code = ord(no_text[0])
                raise BadInput(
                    f"This is no text: byte 0x{code - 0xDC00 if code > 0xFF else code:02x} in its first line; {READ}."
                )
            header = _header(cells)
            if on_columns:
                on_columns(header)
        elif any(BAD_BYTE.search(cell) for cell in cells):
            yield BadRow(number, bad_bytes("".join(cells)))
        elif len(cells) > len(header):
            yield BadRow(number, f"it has {len(cells)} cells, but there are only {len(header)} columns")
        else:
            # An empty cell says nothing: a table has no other way to leave a value out.
            yield Row(number, {name: cell for name, cell in zip(header, cells, strict=False) if cell})


class _Lines:
    """Lines with their numbers, some of which may be put back."""

    def __init__(self, text: IO[str]):
        self._text, self._back = text, deque[str]()
        self.number = 1

    def peek(self) -> str | None:
        if not self._back:
            line = self._text.readline()
            if not line:
                return None
            self._back.append(line.replace("\0", _NUL_STAND_IN) if _NUL_STAND_IN else line)
        return self._back[0]

    def take(self) -> str | None:
        line = self.peek()
        if line is not None:
            self._back.popleft()
            self.number += 1
        return line

    def put_back(self, lines: list[str]) -> None:
        self._back.extendleft(reversed(lines))
        self.number -= len(lines)


def _record(lines: _Lines, delimiter: str) -> list[str]:
    """One record, which may go over several lines. On an error only its first line is used up.

    An opening quote without its partner would otherwise swallow the rows behind it.
    """
    taken: list[str] = []

    def feed() -> Iterator[str]:
        size = 0
        while size < _MAX_RECORD and (line := lines.take()) is not None:
            taken.append(line)
            size += len(line)
            yield line

    try:
        cells = next(csv.reader(feed(), delimiter=delimiter, strict=True), [])
    except csv.Error:
        lines.put_back(taken[1:])
        raise
    return [cell.replace(_NUL_STAND_IN, "\0") for cell in cells] if _NUL_STAND_IN else cells


def _plain_cells(line: str, header: list[str] | None) -> list[str]:
    """A line of a TSV file that knows no quotes: its cells, when they are as many as the columns, else none."""
    cells = line.rstrip("\r\n").split("\t")
    return cells if header is not None and len(cells) == len(header) else []


def _delimiter(header: str) -> str:
    """What separates the columns: a comma, or what spreadsheets use where the comma is a decimal sign."""
    return max(",;\t|", key=lambda sign: (header.count(sign), sign == ","))


def _header(cells: list[str]) -> list[str]:
    """The names of the columns; one that stands there twice gets a number."""
    names: dict[str, None] = {}
    counts: dict[str, int] = {}
    for place, cell in enumerate(cells, 1):
        name = clean = cell.strip() or f"column {place}"
        while name in names:
            counts[clean] = counts.get(clean, 1) + 1
            name = f"{clean} ({counts[clean]})"
        names[name] = None
    return list(names)
