"""A snippet's marked words as parts for the template. Text stays text: the template escapes it, nothing here is markup."""

from __future__ import annotations

import re
from typing import TypedDict

from ..snippets import MARK_END, MARK_START, plain

_MARKED = re.compile(f"{MARK_START}([^{MARK_START}{MARK_END}]*){MARK_END}")


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
