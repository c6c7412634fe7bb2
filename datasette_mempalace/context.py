"""The passage around a hit: its source's chunk that says most of the query, with one neighbour on each side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .words import MOST_CHARACTERS

MAX_CHARACTERS = 10_000
MAX_DRAWERS = 2_000
LONGEST_OVERLAP = 400
SHORTEST_OVERLAP = 8


@dataclass(frozen=True)
class Passage:
    """Stitched neighbours of one source.

    Attributes:
        text: the passage, the chunks' overlap shown once.
        pieces: the chunks it is made of, as they are stored.
        drawer_ids: their ids.
        drawer_index: the place of the middle chunk among the source's drawers, from 0.
        total_drawers: how many drawers the source has.
    """

    text: str
    pieces: tuple[str, ...]
    drawer_ids: tuple[str, ...]
    drawer_index: int
    total_drawers: int


def read_passage(
    connection: Any, source_file: str | None, parent_drawer_id: str | None, words: Sequence[str]
) -> Passage | None:
    """The passage of a source that holds most of a query's words.

    Args:
        connection: an open connection to the palace.
        source_file: the full stored path; together with the parent it says which drawers belong together.
        parent_drawer_id: the drawer they were cut from, or None.
        words: the query's words, lower case.
    Returns:
        the passage, or None where the source has a single drawer or no name: drawers without one are no neighbours.
    """
    if not source_file:
        return None
    rows = connection.execute(
        "select drawer_id, text from drawers where source_file = :source_file"
        " and (:parent is null or parent_drawer_id = :parent) order by chunk_index, id limit :limit",
        {"source_file": source_file, "parent": parent_drawer_id, "limit": MAX_DRAWERS},
    ).fetchall()
    if len(rows) <= 1:
        return None
    different = set(words)
    counts = [_count(text[:MOST_CHARACTERS].lower(), different) for _, text in rows]
    middle = counts.index(max(counts))
    near = rows[max(0, middle - 1) : middle + 2]
    pieces = tuple(text for _, text in near)
    return Passage(stitch(pieces), pieces, tuple(drawer_id for drawer_id, _ in near), middle, len(rows))


def _count(text: str, words: set[str]) -> int:
    return sum(word in text for word in words)


def stitch(pieces: Sequence[str]) -> str:
    """Chunks that follow each other as one text of at most 10,000 characters, what they share shown once."""
    text = pieces[0] if pieces else ""
    for before, piece in zip(pieces, pieces[1:], strict=False):
        shared = overlap(before, piece)
        text += piece[shared:] if shared else "\n\n" + piece
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + " […]"


def overlap(before: str, after: str) -> int:
    """How many characters the end of one chunk and the start of the next have in common."""
    for length in range(min(LONGEST_OVERLAP, len(before), len(after)), SHORTEST_OVERLAP - 1, -1):
        if before.endswith(after[:length]):
            return length
    return 0
