"""What a palace holds and whether it can be searched by meaning: counts from SQLite, nothing loaded or opened."""

from __future__ import annotations

from typing import Any

from .change_log import last_change
from .errors import MempalaceError
from .mirror.folder import NO_MIRROR
from .mirror.state import read_position
from .palace import Palace
from .schema import applied_migrations, get_setting
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
        mirror {state, position, path (of a folder), server (its address), reason}; the mirror's state is "in step", "behind" or "none".
    """
    with palace.reader() as connection:
        cursor = connection.execute(_COUNTS)
        counts = dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))
        counts["changes"] = last_change(connection)
        pending = count_pending(connection)
        dimension = stored_dimension(connection)
        model = get_setting(connection, "embedding_model")
        position = read_position(connection)
        version = applied_migrations(connection)[-1]
    return {
        "path": palace.path,
        "read_only": palace.read_only,
        "schema_version": version,
        **counts,
        "pending_vectors": pending,
        "embedder": _embedder(palace, model, dimension),
        "mirror": _mirror(palace, position, counts["changes"]),
    }


def vectors_state(palace: Palace) -> dict[str, Any]:
    """What the vectors are made with and whether the mirror is in step: what anybody may know who sees the palace.

    Returns:
        `embedder` {model, dimension} and `mirror`: "in step", "behind" or "none". Nothing is counted.
    """
    with palace.reader() as connection:
        dimension = stored_dimension(connection)
        model = get_setting(connection, "embedding_model")
        position, changes = read_position(connection), last_change(connection)
    return {
        "embedder": {"model": model, "dimension": dimension},
        "mirror": _mirror(palace, position, changes)["state"],
    }


def _embedder(palace: Palace, model: str | None, dimension: int | None) -> dict[str, Any]:
    try:
        reason = palace.embedder.missing()
    except MempalaceError as error:
        reason = error.message
    return {"model": model, "dimension": dimension, "available": reason is None, "reason": reason}


def _mirror(palace: Palace, position: int, changes: int) -> dict[str, Any]:
    path, server, reason = palace.mirror_path, palace.settings.chroma, palace.mirror.trouble
    if not palace.mirror.is_used:
        state, reason = "none", NO_MIRROR
    elif position < 0 or (server is None and not path.is_dir()):
        state = "none"
        reason = reason or "it has not been filled yet, or its folder is gone; search reads SQLite meanwhile"
    elif position < changes:
        state, reason = "behind", reason or f"{changes - position:,} changes to go"
    else:
        state = "in step"
    return {
        "state": state,
        "position": position,
        "path": None if server else str(path),
        "server": server.url if server else None,
        "reason": reason,
    }
