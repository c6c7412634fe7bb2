"""Closets: short pointer documents about a source, built when it is filed and read when a search looks for a boost.

Pure. A closet's text is lines of `topic|entity;entity|→drawer_id,drawer_id`, as MemPalace writes them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .chunking import Chunk
from .stop_words import LANGUAGES
from .text import make_id

MAX_LINES = 12
MAX_POINTERS = 3
MAX_ENTITIES = 5
PREVIEW = 200

_WORD = re.compile(r"[^\W\d_][\w-]{3,}")
_ENTITY = re.compile(
    r"\b(?:[A-Z][a-z]+(?:[A-Z][a-z0-9]+)+|[a-z0-9]+(?:_[a-z0-9]+)+(?=\()?|[A-Z][\w]+(?:[ \t]+[A-Z][\w]+)+|[A-Z]{2,}[A-Z0-9]*)\b"
)
_QUOTE = re.compile(r"[“\"]([^“”\"\n]{20,120})[”\"]")


@dataclass(frozen=True)
class Place:
    """Where a source lies and who filed it."""

    source_file: str
    wing: str | None = None
    room: str | None = None
    added_by: str | None = None


def build_closets(place: Place, chunks: Sequence[Chunk], drawer_ids: Sequence[str]) -> list[dict[str, Any]]:
    """The closets of one source.

    Args:
        place: where the source lies.
        chunks: its chunks, in order.
        drawer_ids: the drawers' ids, one a chunk.
    Returns:
        rows of the table `closets`: at present one, or none for a source without words.
    """
    topics = _topics(chunks)
    if not topics:
        return []
    lines = []
    for topic, found in topics:
        near = " ".join(chunks[index].text for index in found)
        pointers = ",".join(drawer_ids[index] for index in found)
        lines.append(f"{topic}|{';'.join(_entities(near))}|→{pointers}")
    text = "\n".join(lines)
    return [
        {
            "closet_id": make_id("closet", place.source_file, place.added_by),
            "wing": place.wing,
            "room": place.room,
            "source_file": place.source_file,
            "text": text,
            "metadata": json.dumps({"added_by": place.added_by}),
        }
    ]


def closet_words(text: str) -> str:
    """What a closet says, without its pointers: this is what is embedded and shown."""
    lines = [
        line.split("→")[0].strip("| \t").replace("|", ": ").replace(";", ", ") for line in text.splitlines()
    ]
    return "\n".join(line for line in lines if line)


def has_pointer(text: str) -> bool:
    """Whether a closet points to any drawer; one that does not is kept but lifts nothing."""
    return "→" in text


def _topics(chunks: Sequence[Chunk]) -> list[tuple[str, list[int]]]:
    """Headings, else a quote and the commonest words, each with the first chunks that hold it."""
    places: dict[str, list[int]] = {}
    for index, piece in enumerate(chunks):
        if piece.heading:
            places.setdefault(_plain(piece.heading), []).append(index)
    if not places:
        for index, piece in enumerate(chunks[:MAX_LINES]):
            quote = _QUOTE.search(piece.text)
            if quote:
                places.setdefault(_plain(quote[1]), []).append(index)
        for word in _key_words(chunks):
            places.setdefault(
                word, [index for index, piece in enumerate(chunks) if word in piece.text.casefold()]
            )
    return [
        (topic, found[:MAX_POINTERS]) for topic, found in list(places.items())[:MAX_LINES] if topic and found
    ]


def _key_words(chunks: Sequence[Chunk]) -> list[str]:
    counts = Counter(
        word
        for piece in chunks
        for word in (match.casefold() for match in _WORD.findall(piece.text))
        if word not in LANGUAGES["english"]
    )
    return [word for word, _ in counts.most_common(6)]


def _entities(text: str) -> list[str]:
    counts = Counter(_plain(match) for match in _ENTITY.findall(text))
    return [entity for entity, _ in counts.most_common(MAX_ENTITIES)]


def _plain(text: str) -> str:
    """A text without what separates the parts of a closet line."""
    return " ".join(re.sub(r"[|;→\r\n]", " ", text).split())[:PREVIEW]
