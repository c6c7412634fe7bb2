"""What a palace holds and whether it can be searched by meaning: counts from SQLite, nothing loaded."""

from __future__ import annotations

from typing import Any

from .change_log import last_change
from .errors import MempalaceError
from .mirror.folder import NO_MIRROR
from .mirror.state import State, read_position
from .palace import Palace
from .schema import applied_migrations, get_setting
from .text import counted
from .vectors import count_pending, stored_dimension

_COUNTS = """
    select count(*) as drawers, count(distinct wing) as wings, count(distinct nullif(source_file, '')) as sources,
    (select count(*) from (select distinct wing, room from drawers where room is not null)) as rooms,
    (select count(*) from closets) as closets, (select count(*) from drawer_vectors) as vectors,
    cast(min(filed_at) as text) as first_filed, cast(max(filed_at) as text) as last_filed
    from drawers
"""


def palace_status(palace: Palace) -> dict[str, Any]:
    """The state of a palace, of plain JSON types.

    Args:
        palace: the palace.
    Returns:
        path, read_only, schema_version, counts (drawers, closets, wings, rooms, sources, vectors, pending_vectors,
        changes), first_filed and last_filed, embedder {model, dimension, available, reason} and
        mirror {state, position, path (of a folder), server (its address), reason}; the mirror's state is "in step",
        "behind", "none", or "not checked" where the palace has it as in step and the mirror cannot be looked at quickly.
    """
    held = palace.mirror.recorded()  # first: what the palace records can only be ahead of it
    with palace.reader() as connection:
        cursor = connection.execute(_COUNTS)
        counts = dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))
        counts["changes"] = last_change(connection)
        pending = count_pending(connection)
        dimension = stored_dimension(connection)
        model = get_setting(connection, "embedding_model")
        mirror_id, position = get_setting(connection, "mirror_id"), read_position(connection)
        version = applied_migrations(connection)[-1]
    return {
        "path": palace.path,
        "read_only": palace.read_only,
        "schema_version": version,
        **counts,
        "pending_vectors": pending,
        "embedder": _embedder(palace, model, dimension),
        "mirror": _mirror(palace, held, mirror_id, position, counts["changes"]),
    }


def vectors_state(palace: Palace) -> dict[str, Any]:
    """What the vectors are made with and whether the mirror is in step: what anybody may know who sees the palace.

    Returns:
        `embedder` {model, dimension} and `mirror`: "in step", "behind", "none" or "not checked". Nothing is counted.
    """
    held = palace.mirror.recorded()
    with palace.reader() as connection:
        dimension = stored_dimension(connection)
        model = get_setting(connection, "embedding_model")
        mirror_id, position = get_setting(connection, "mirror_id"), read_position(connection)
        changes = last_change(connection)
    return {
        "embedder": {"model": model, "dimension": dimension},
        "mirror": _mirror(palace, held, mirror_id, position, changes)["state"],
    }


def _embedder(palace: Palace, model: str | None, dimension: int | None) -> dict[str, Any]:
    try:
        reason = palace.embedder.missing()
    except MempalaceError as error:
        reason = error.message
    return {"model": model, "dimension": dimension, "available": reason is None, "reason": reason}


def _mirror(
    palace: Palace, held: State | None, mirror_id: str | None, position: int, changes: int
) -> dict[str, Any]:
    path, server = palace.mirror_path, palace.settings.chroma
    state, position, reason = _mirror_state(palace, held, mirror_id, position, changes)
    return {
        "state": state,
        "position": position,
        "path": None if server else str(path),
        "server": server.url if server else None,
        "reason": palace.mirror.trouble or reason if palace.mirror.is_used else reason,
    }


def _mirror_state(
    palace: Palace, held: State | None, mirror_id: str | None, position: int, changes: int
) -> tuple[str, int, str | None]:
    """The state, the position and a reason: the palace's record of its mirror, and what the mirror says itself."""
    if not palace.mirror.is_used:
        return "none", position, NO_MIRROR
    if position < 0 or (palace.settings.chroma is None and not palace.mirror_path.is_dir()):
        return (
            "none",
            position,
            "it has not been filled yet, or its folder is gone; searches read SQLite meanwhile",
        )
    if held is not None and (held.mirror_id != mirror_id or held.position > position):
        return (
            "none",
            -1,
            "what is there is incomplete, or belongs to another palace or state; the next sync fills it again",
        )
    reached = position if held is None else held.position
    if reached < changes:
        return "behind", reached, f"{counted(changes - reached, 'change')} to go"
    if held is None:
        return (
            "not checked",
            position,
            "it is in step by the palace's own record; the mirror itself was not asked",
        )
    return "in step", position, None
