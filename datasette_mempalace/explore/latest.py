"""The sources that were filed last, each by its beginning; a drawer without a source stands for itself."""

from __future__ import annotations

import json
from typing import Any

from ..moments import moment_of
from ..snippets import snippet
from ..text import source_name
from .reading import Part, by_moment

LATEST = 8
HEAD = 180  # characters
ROWS = 2000  # drawers looked through: one large source must not hide the others
SORTED = 5000  # drawers that are sorted sooner than found among all others in the order of time


def latest_sources(part: Part, drawers: int) -> list[dict[str, Any]]:
    """Those of a part, the latest first.

    Args:
        part: the part of the palace.
        drawers: how many it has.
    Returns:
        id and drawer_id of the source's first drawer, wing and room of the one filed last, source_path,
        source_file, filed_at, head (how it begins) and drawers (of the whole source).
    """
    table = by_moment(part) if drawers > SORTED else part.table
    rows = part.connection.execute(
        "select id, cast(nullif(source_file, '') as text), cast(filed_at as text), cast(wing as text),"
        f" cast(room as text) from {table} where {part.where}"
        f" order by {moment_of('filed_at')} desc, id desc limit :rows",
        {**part.parameters, "rows": ROWS},
    )
    found: dict[Any, dict[str, Any]] = {}
    for row_id, source, filed_at, wing, room in rows:
        if (key := source or row_id) not in found:
            if len(found) == LATEST:
                break
            found[key] = {
                "id": row_id, "wing": wing, "room": room, "filed_at": filed_at,
                "source_path": source, "source_file": source_name(source), "drawers": 1,
            }  # fmt: skip
    _add_firsts(part.connection, found)
    return _with_heads(part.connection, list(found.values()))


def _add_firsts(connection: Any, found: dict[Any, dict[str, Any]]) -> None:
    """Each source's first drawer and number of drawers, from the index of sources alone."""
    sources = [entry["source_path"] for entry in found.values() if entry["source_path"]]
    rows = connection.execute(
        "select source_file, id, count(*), min(coalesce(chunk_index, -1)) from drawers"
        " where source_file in (select value from json_each(?)) group by source_file",
        [json.dumps(sources)],
    )
    for source, row_id, number, _ in rows:
        found[source] |= {"id": row_id, "drawers": number}


def _with_heads(connection: Any, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = connection.execute(
        "select id, cast(drawer_id as text), cast(substr(text, 1, 1000) as text) from drawers"
        " where id in (select value from json_each(?))",
        [json.dumps([entry["id"] for entry in entries])],
    )
    heads = {row_id: {"drawer_id": name, "head": snippet(text, [], HEAD)} for row_id, name, text in rows}
    return [entry | heads[entry["id"]] for entry in entries]
