"""A snippet's marked words as parts for the template. Text stays text: the template escapes it, nothing here is markup."""

from __future__ import annotations

import re
from typing import TypedDict

START, END = "\u0001", "\u0002"
_MARKED = re.compile(f"{START}([^{START}{END}]*){END}")
_STRAY = re.compile(f"[{START}{END}]")
_RULE = re.compile(r"([=\-_*~#+|.^])\1{2,}|[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Part(TypedDict):
    """A piece of text and whether it was searched for."""

    text: str
    hit: bool


def parts(snippet: str | None) -> list[Part]:
    """Split a snippet at its marks.

    Args:
        snippet: text with a start and an end character around each word found.
    Returns:
        the pieces in order, none empty, none with a mark left in it.
    """
    pieces = _MARKED.split(snippet or "")
    split = [Part(text=plain(piece), hit=bool(number % 2)) for number, piece in enumerate(pieces)]
    return [part for part in split if part["text"]]


def plain(snippet: str | None) -> str:
    """The snippet without its marks."""
    return _STRAY.sub("", snippet or "")


def head(text: str, length: int = 180) -> str:
    """The beginning of a text on one line, cut at a word, without the rules and borders that only a fixed width shows.

    Args:
        text: any text.
        length: the greatest number of characters.
    """
    line = " ".join(_RULE.sub(" ", text).split())
    if len(line) <= length:
        return line
    cut = line[: length + 1].rsplit(" ", 1)[0] if " " in line[: length + 1] else line[:length]
    return cut[:length].rstrip(" ,;:") + " …"
