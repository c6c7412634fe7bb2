"""One source read from start to end: its drawers in order, what neighbours share shown once, and its outline."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ..context import overlap
from ..errors import SourceNotFound
from ..palace import Palace
from ..text import clean_text, shortened, source_name

PART = 40  # drawers of a page
LONGEST = 40_000  # characters shown of one drawer
OUTLINE = 2_000  # drawers whose headings are looked at
MOST_HEADINGS = 300


@dataclass(frozen=True)
class SourceAsked:
    """Which part of which source is to be read.

    Attributes:
        source_file: the full stored path.
        offset: how many of its drawers come before.
    """

    source_file: str
    offset: int = 0


def read_source(palace: Palace, asked: SourceAsked) -> dict[str, Any]:
    """A part of a source.

    Args:
        palace: the palace.
        asked: which source and where in it.
    Returns:
        source_path, source_file, drawers (in all), offset, next (the next part's offset, or None), previous, `places`
        (the wings and rooms its drawers lie in, with their number), first_filed and last_filed, `outline`
        (headings, each with the number of its first drawer, from 1) and `parts`: number, id, drawer_id, chunk_index, heading,
        text, `shared` (how many characters at its start the drawer before ends with) and `cut` (how many
        characters of a very long text are left out).
    Raises:
        SourceNotFound: when no drawer has it.
    """
    with palace.reader() as connection:
        stored = _as_stored(connection, asked.source_file)
        places = _places(connection, stored)
        drawers = sum(place["count"] for place in places)
        first = max(0, asked.offset - 1)
        rows = _rows(connection, stored, first, PART + asked.offset - first)
        follows = asked.offset + PART
        return {
            "source_path": asked.source_file,
            "source_file": source_name(asked.source_file),
            "drawers": drawers,
            "offset": asked.offset,
            "previous": max(0, asked.offset - PART) if asked.offset else None,
            "next": follows if follows < drawers else None,
            "places": [{name: place[name] for name in ("wing", "room", "count")} for place in places],
            "first_filed": min((place["first"] for place in places if place["first"]), default=None),
            "last_filed": max((place["last"] for place in places if place["last"]), default=None),
            "outline": _outline(connection, stored),
            "parts": _parts(rows, asked.offset, first),
        }


def _as_stored(connection: Any, source_file: str) -> Any:
    """A source as the database has it: the text, or what another program left as a BLOB or a number and pages show as text.

    Raises:
        SourceNotFound: when no drawer has it.
    """
    queries = (
        "select source_file from drawers where source_file = ? limit 1",
        "select source_file from drawers where typeof(source_file) in ('blob', 'integer', 'real')"
        " and cast(source_file as text) = ? limit 1",
    )
    for query in queries:
        found = connection.execute(query, [source_file]).fetchone()
        if found:
            return found[0]
    raise SourceNotFound(
        f"No drawer has the source_file {shortened(source_file)}. Give it a full path as drawers have it in source_file; or the"
        " source was taken out of this palace."
    )


def _places(connection: Any, source_file: Any) -> list[dict[str, Any]]:
    rows = connection.execute(
        "select cast(wing as text), cast(room as text), count(*), cast(min(filed_at) as text),"
        " cast(max(filed_at) as text) from drawers where source_file = ? group by wing, room order by count(*) desc",
        [source_file],
    )
    return [dict(zip(("wing", "room", "count", "first", "last"), row, strict=True)) for row in rows]


def _rows(connection: Any, source_file: Any, offset: int, limit: int) -> list[tuple[Any, ...]]:
    """Some drawers of a source, found by its index before any text is read."""
    return list(
        connection.execute(
            "select id, cast(drawer_id as text), chunk_index, cast(text as text), metadata from drawers where id in"
            " (select id from drawers where source_file = ? order by chunk_index, id limit ? offset ?)"
            " order by chunk_index, id",
            [source_file, limit, offset],
        )
    )


def _parts(rows: list[tuple[Any, ...]], offset: int, first: int) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    before, seen = "", None
    for number, (row_id, drawer_id, chunk_index, text, metadata) in enumerate(rows, first + 1):
        heading = _heading(metadata)
        if number > offset:
            parts.append(
                {
                    "number": number,
                    "id": row_id,
                    "drawer_id": drawer_id,
                    "chunk_index": chunk_index,
                    "heading": heading if heading != seen else None,
                    "shared": overlap(before, text) if before else 0,
                    "text": text[:LONGEST],
                    "cut": max(0, len(text) - LONGEST),
                }
            )
        before, seen = text, heading
    return parts


def _outline(connection: Any, source_file: Any) -> list[dict[str, Any]]:
    """The headings, each with the first drawer that it stands over.

    A drawer knows the heading that it begins under: one in the middle of a drawer is first known to the next.
    """
    rows = connection.execute(
        "select metadata, substr(cast(text as text), 1, :longest) from drawers where source_file = :source_file"
        " order by chunk_index, id limit :limit",
        {"source_file": source_file, "limit": OUTLINE, "longest": LONGEST},
    )
    outline: list[dict[str, Any]] = []
    before = ""
    for number, (metadata, text) in enumerate(rows, 1):
        heading = _heading(metadata)
        if heading and (not outline or outline[-1]["heading"] != heading):
            inside = re.search(rf"(?m)^\W*{re.escape(heading)}\W*$", before)
            outline.append({"heading": heading, "number": number - 1 if inside else number})
        before = text
    return outline[:MOST_HEADINGS]


def _heading(metadata: Any) -> str | None:
    try:
        heading = json.loads(metadata or "{}").get("heading")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None  # any writer may have left there what is no JSON object
    return clean_text(heading)[0] if isinstance(heading, str) and heading.strip() else None
