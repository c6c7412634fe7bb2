"""Reads rows from JSON and NDJSON. A broken line of NDJSON costs that line; a broken JSON array ends there, and says so."""

from __future__ import annotations

import io
import json
import re
from typing import IO, Any

from ..errors import BadInput
from .rows import BAD_BYTE, BadRow, Row, Rows, bad_bytes

# Where an object that wraps its records keeps them, the likeliest first.
LIST_KEYS = ("drawers", "records", "rows", "items", "data", "documents", "results", "entries", "messages")
# An object with one of these is a record itself.
_TEXT_KEYS = ("text", "content", "document", "body", "message")
MOST_DIGITS = 4_000
_BLANK = re.compile(r"[ \t\r\n]*")


def ndjson_rows(lines: IO[str]) -> Rows:
    """The rows of NDJSON, one a line, blank lines left out.

    Args:
        lines: the file, read with `surrogateescape` and newlines left alone.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if BAD_BYTE.search(line):
            yield BadRow(number, bad_bytes(line))
            continue
        try:
            yield Row(number, _loads(line))
        except ValueError as error:
            yield BadRow(number, _json_reason(error))
        except RecursionError:
            yield BadRow(number, "nested too deeply")


def _constant(name: str) -> str:
    """NaN and Infinity are no JSON: keep their names, so that metadata stays readable to SQLite's JSON functions."""
    return name


class _TooLong(ValueError):
    """A whole number that Python would read for minutes, or refuse in words of its own."""

    def __init__(self, digits: str):
        super().__init__(f"a number of {len(digits):,} digits, more than {MOST_DIGITS:,}")
        self.digits = digits

    def line(self, text: str, at: int = 0) -> int:
        """The line on which it stands, in a text that is read from `at`."""
        return 1 + text.count("\n", 0, text.find(self.digits, at))


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise _TooLong(digits)
    return int(digits)


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_int=_whole)


def _loads(text: str) -> Any:
    return _DECODER.decode(text)


def _json_reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at column {error.colno}"
    return str(error)


def json_rows(text: str) -> Rows:
    """The rows of a JSON document: the elements of its array, of the array that its object wraps, or the object itself.

    Args:
        text: the whole document, read with `surrogateescape`.
    Raises:
        BadInput: when it is no JSON at all.
    """
    text = text.lstrip("\ufeff")
    start = _skip(text, 0)
    if not text[start:]:
        return
    if text[start] == "[":
        yield from _array_rows(text, start, alone=True)
        return
    try:
        found = _wrapped_list(text, start) if text[start] == "{" else None
        if found is not None:
            yield from _array_rows(text, found)
            return
        whole = _loads(text)
    except ValueError as error:
        if (
            isinstance(error, json.JSONDecodeError) and error.msg == "Extra data"
        ):  # one object a line, after all
            yield from ndjson_rows(io.StringIO(text, newline="\n"))
            return
        line = error.line(text) if isinstance(error, _TooLong) else getattr(error, "lineno", None)
        place = f"line {line}, " if line else ""
        raise BadInput(f"The file cannot be read: {place}{_json_reason(error)}.") from None
    except RecursionError:
        raise BadInput("The file cannot be read: its JSON is nested too deeply.") from None
    line = 1 + text.count("\n", 0, start)
    yield BadRow(line, bad_bytes(text)) if BAD_BYTE.search(text) else Row(line, whole)


def _array_rows(text: str, start: int, alone: bool = False) -> Rows:
    """The elements of the array that begins at `start`, each read by itself; `alone` when it is the whole file."""
    at, line, counted = _skip(text, start + 1), 1, 0
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            reason = _json_reason(error) if isinstance(error, ValueError) else "nested too deeply"
            if isinstance(error, json.JSONDecodeError):
                line = error.lineno
            elif isinstance(error, _TooLong):
                line = error.line(text, at)
            yield BadRow(
                line, f"{reason}; a JSON array cannot be read on behind that, so what follows is missing"
            )
            return
        piece = text[at:end]
        yield BadRow(line, bad_bytes(piece)) if BAD_BYTE.search(piece) else Row(line, value)
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            line += text.count("\n", counted, at)
            yield BadRow(line, "the JSON array breaks off or lacks a comma here, so what follows is missing")
            return
    if alone and _skip(text, at + 1) < len(text):
        yield BadRow(1 + text.count("\n", 0, at), "what stands behind the end of the JSON array was not read")


def _wrapped_list(text: str, start: int) -> int | None:
    """Where the list of records begins in the object at `start`, or None when the object is itself the record."""
    lists: dict[str, int] = {}
    at = _skip(text, start + 1)
    try:
        while text[at : at + 1] == '"':
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # the colon
            if text[at : at + 1] == "[":
                lists[key] = at
            value, at = _DECODER.raw_decode(text, at)
            if isinstance(value, str) and key in _TEXT_KEYS:
                return None
            if key in lists and value and not any(isinstance(item, dict) for item in value):
                del lists[key]
            at = _skip(text, at)
            at = _skip(text, at + 1) if text[at : at + 1] == "," else at
    except ValueError:
        if not lists:
            raise
        # The list is not whole; its elements are read one by one up to there.
    return _likeliest(lists)


def _likeliest(lists: dict[str, int]) -> int | None:
    return next((lists[key] for key in (*LIST_KEYS, *lists) if key in lists), None)


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match
    return match.end()
