"""What a palace, or a part of it, holds: the page before the first search. It reads SQLite and nothing else."""

from __future__ import annotations

from typing import Any

from ..palace import Palace
from ..scope import Scope
from ..snippets import snippet
from ..text import source_name

LATEST = 8
HEAD = 180  # characters
LATEST_ROWS = 2000  # drawers looked through for the latest sources: one large source must not hide the others


def overview(palace: Palace, scope: Scope) -> dict[str, Any]:
    """Count and list what lies in a scope.

    Args:
        palace: the palace.
        scope: the part of it to look at.
    Returns:
        drawers, rooms, sources, closets (None for a part), first_filed, last_filed, wings (largest first, each with
        its rooms) and latest (the sources filed last).
    """
    with palace.reader() as connection:
        wings = _wings(connection, scope)
        where, parameters = scope.where()
        sources, first, last = connection.execute(
            "select count(distinct nullif(source_file, '')), min(filed_at), max(filed_at)"
            f" from drawers where {where}",
            parameters,
        ).fetchone()
        closets = (
            connection.execute("select count(*) from closets").fetchone()[0] if scope.is_everything else None
        )
        return {
            "drawers": sum(wing["count"] for wing in wings),
            "rooms": sum(len(wing["rooms"]) for wing in wings),
            "sources": sources,
            "closets": closets,
            "first_filed": first,
            "last_filed": last,
            "wings": wings,
            "latest": _latest(connection, scope),
        }


def count_drawers(palace: Palace) -> int:
    """How many drawers a palace has."""
    with palace.reader() as connection:
        return int(connection.execute("select count(*) from drawers").fetchone()[0])


def _wings(connection: Any, scope: Scope) -> list[dict[str, Any]]:
    where, parameters = scope.where()
    rows = connection.execute(
        f"select cast(wing as text), cast(room as text), count(*) from drawers where {where} group by wing, room"
        " order by count(*) desc, room",
        parameters,
    )
    wings: dict[str | None, dict[str, Any]] = {}
    for wing, room, number in rows:
        entry = wings.setdefault(wing, {"wing": wing, "count": 0, "rooms": []})
        entry["count"] += number
        entry["rooms"].append({"room": room, "count": number})
    return sorted(wings.values(), key=lambda entry: (-entry["count"], entry["wing"] or ""))


def _latest(connection: Any, scope: Scope) -> list[dict[str, Any]]:
    """The sources filed last, each by its first drawer; a drawer without a source stands for itself."""
    where, parameters = scope.where()
    rows = connection.execute(
        "select id, cast(nullif(source_file, '') as text), cast(filed_at as text), cast(wing as text) from drawers"
        f" where {where} order by datetime(filed_at) desc, id desc limit {LATEST_ROWS}",
        parameters,
    )
    latest: dict[Any, dict[str, Any]] = {}
    for row_id, source, filed_at, wing in rows:
        key = (source, wing) if source else row_id
        if key in latest:
            continue
        if len(latest) == LATEST:
            break
        latest[key] = {"id": row_id, "source_path": source, "filed_at": filed_at, "wing": wing}
    return [_first_drawer(connection, scope, entry) for entry in latest.values()]


def _first_drawer(connection: Any, scope: Scope, entry: dict[str, Any]) -> dict[str, Any]:
    where, parameters = scope.where()
    same = "(source_file = :path and wing is :wing or id = :id)" if entry["source_path"] else "id = :id"
    row_id, room, text, drawers = connection.execute(
        "select id, cast(room as text), cast(substr(text, 1, 1000) as text), count(*) over () from drawers"
        f" where {same} and {where} order by chunk_index, id limit 1",
        parameters | {"path": entry["source_path"], "wing": entry["wing"], "id": entry["id"]},
    ).fetchone()
    return entry | {
        "id": row_id,
        "room": room,
        "source_file": source_name(entry["source_path"]),
        "head": snippet(text, [], HEAD),
        "drawers": drawers,
    }
