"""Vector candidates: the drawers or closets nearest to a query, by the engine that is best for the scope.

Chroma proposes, SQLite disposes: distances always come from the stored vectors, so that both engines give the same
numbers, and what the mirror does not hold yet is scored here.
"""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .change_log import changed_since, last_change
from .errors import LogTooShort, MatrixUnavailable, MirrorUnavailable
from .mirror.state import State, refuse_stranger
from .palace import Palace
from .scope import Scope
from .vectors import Kind, as_matrix, read_vectors

ROWS = 10_000
WIDER = 4
TRIES = 3
# So few vectors are read from SQLite faster than anything else could be asked.
FEW = 300


@dataclass
class Nearest:
    """Vector candidates.

    Attributes:
        distances: id to cosine distance, nearest first.
        engine: "exact" (vectors read from SQLite), "matrix" (vectors in memory) or "chroma".
        note: what the person should know of how they were found, or None.
    """

    distances: dict[int, float] = field(default_factory=dict)
    engine: str = "exact"
    note: str | None = None


def nearest(
    palace: Palace,
    connection: Any,
    kind: Kind,
    vector: NDArray[np.float32],
    scope: Scope,
    limit: int,
    in_scope: int,
) -> Nearest:
    """The nearest drawers or closets of a scope.

    Args:
        palace: the palace, for its mirror and limits.
        connection: an open connection to its database.
        kind: "drawer" or "closet".
        vector: the query, of unit length.
        scope: where to look.
        limit: how many at most.
        in_scope: how many drawers or closets the scope holds.
    Returns:
        the nearest with their true distances.
    """
    notes: list[str] = []
    for engine in _engines(palace, kind, scope, in_scope):
        try:
            if engine == "exact":
                break
            through = _through_matrix if engine == "matrix" else _through_chroma
            ids = through(palace, connection, kind, vector, scope, limit, notes)
            return Nearest(_best(true_distances(connection, kind, vector, ids), limit), engine, _told(notes))
        except MatrixUnavailable:
            continue
        except (MirrorUnavailable, LogTooShort) as error:
            notes.append(error.message)
    return Nearest(_exact(connection, kind, vector, scope, limit), "exact", _told(notes))


def _engines(palace: Palace, kind: Kind, scope: Scope, in_scope: int) -> list[str]:
    """The engines worth trying for a scope, in order; `docs/architecture.md` has the times they are chosen by."""
    if scope.is_everything and palace.mirror.is_open:
        return ["chroma", "matrix", "exact"]
    if in_scope <= FEW:
        return ["exact"]
    if in_scope <= palace.settings.exact_limit and not palace.matrices.is_loaded(kind):
        return ["exact"]
    if not palace.mirror.is_used or (not scope.is_everything and scope.chroma_where() is None):
        return ["matrix", "exact"]
    return ["chroma", "matrix", "exact"] if scope.is_everything else ["matrix", "chroma", "exact"]


def true_distances(
    connection: Any, kind: Kind, vector: NDArray[np.float32], ids: list[int]
) -> dict[int, float]:
    """The cosine distances between a query and stored vectors; ids without a vector of its length are left out."""
    known, matrix = read_vectors(connection, kind, ids, len(vector))
    distances = _distances(matrix, vector)
    return {row_id: float(distance) for row_id, distance in zip(known, distances, strict=True)}


def _through_matrix(
    palace: Palace,
    connection: Any,
    kind: Kind,
    vector: NDArray[np.float32],
    scope: Scope,
    limit: int,
    notes: list[str],
) -> list[int]:
    """The nearest by the matrix in memory, and all of the scope that has changed since it was loaded."""
    matrix, changed = palace.matrices.get(connection, kind, len(vector))
    among = None if scope.is_everything else _ids_in_scope(connection, kind, scope)
    found = matrix.nearest(vector, limit, among, changed)
    return _within(connection, kind, scope, found + changed)


def _ids_in_scope(connection: Any, kind: Kind, scope: Scope) -> NDArray[np.int64]:
    where, parameters = scope.where()
    rows = connection.execute(f"select id from {kind}s where {where}", parameters)
    return np.fromiter((row[0] for row in rows), dtype=np.int64)


def _through_chroma(
    palace: Palace,
    connection: Any,
    kind: Kind,
    vector: NDArray[np.float32],
    scope: Scope,
    limit: int,
    notes: list[str],
) -> list[int]:
    """The nearest by the mirror, and all of the scope that has changed since its position.

    The mirror goes on while it is asked. So its state is compared before and after: what it may hold that this
    connection cannot see yet counts as changed, too.
    """
    mirror, most, where = palace.mirror, palace.settings.exact_limit, scope.chroma_where() or {}
    mirror.open(wait=False)
    before = mirror.state(fresh=False)
    if before.position < 0:
        raise MirrorUnavailable("The mirror has not been filled yet.")
    pending = _changed_since(connection, kind, before.position, most)
    for _ in range(TRIES):
        found = _ask_chroma(palace, kind, vector, limit, len(pending), where, notes)
        newer = _unseen(palace, connection, kind, before, mirror.state(), most)
        if newer <= set(pending):
            return _within(connection, kind, scope, list(dict.fromkeys(found + pending)))
        pending += sorted(newer - set(pending))
    raise MirrorUnavailable("The mirror is being changed faster than it can be asked.")


def _ask_chroma(
    palace: Palace,
    kind: Kind,
    vector: NDArray[np.float32],
    limit: int,
    changed: int,
    where: dict[str, Any],
    notes: list[str],
) -> list[int]:
    """Ids that the mirror finds, as many more as it may hold of what has changed."""
    mirror = palace.mirror
    try:
        return [row_id for row_id, _ in mirror.nearest(kind, vector, limit + changed, where)]
    except MirrorUnavailable as error:
        if not where:
            raise
        found = [row_id for row_id, _ in mirror.nearest(kind, vector, WIDER * limit + changed)]
        notes.append(
            f"The filtered vector query failed and was repeated wider without its filter: {error.message}"
        )
        return found


def _unseen(palace: Palace, connection: Any, kind: Kind, before: State, after: State, most: int) -> set[int]:
    """What the mirror may have taken over that stands in the log behind this connection's view of it.

    Raises:
        MirrorUnavailable: when the mirror is not the one that was asked, or knows more than this palace.
    """
    if after.mirror_id != before.mirror_id:
        raise MirrorUnavailable("The mirror was filled anew in the meantime.")
    last = last_change(connection)
    if after.reached <= last and not palace.mirror.store.is_shared:
        return set()
    with palace.reader() as now:
        if palace.mirror.store.is_shared:
            refuse_stranger(now, after)
        return set(_changed_since(now, kind, last, most)) if after.reached > last else set()


def _within(connection: Any, kind: Kind, scope: Scope, ids: list[int]) -> list[int]:
    """Those ids that are in the scope now: the mirror may lag behind, or hold what was deleted."""
    where, parameters = scope.where()
    rows = connection.execute(
        f"select id from {kind}s where id in (select value from json_each(:found)) and {where}",
        {**parameters, "found": json.dumps(ids)},
    )
    return [row[0] for row in rows]


def _changed_since(connection: Any, kind: Kind, position: int, most: int) -> list[int]:
    """What changed after the mirror's position; too much of it makes the mirror useless."""
    changed = changed_since(connection, kind, position, most + 1)
    if len(changed) > most:
        raise MirrorUnavailable("The mirror is far behind; run datasette mempalace sync.")
    return changed


def _exact(
    connection: Any, kind: Kind, vector: NDArray[np.float32], scope: Scope, limit: int
) -> dict[int, float]:
    """Every stored vector of the scope, scored; read in parts so that memory stays bounded."""
    where, parameters = scope.where()
    narrowed = "" if scope.is_everything else f"where id in (select id from {kind}s where {where})"
    cursor = connection.execute(f"select id, vector from {kind}_vectors {narrowed}", parameters)
    best: dict[int, float] = {}
    while rows := cursor.fetchmany(ROWS):
        ids, matrix = as_matrix(rows, len(vector))
        distances = _distances(matrix, vector)
        nearest_rows = np.lexsort((np.asarray(ids), distances))[:limit]
        best.update({ids[row]: float(distances[row]) for row in nearest_rows})
        best = _best(best, limit)
    return best


def _distances(matrix: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosine distances of the rows of a matrix, clamped as `ranking.clamp_distance` does."""
    # einsum, not a BLAS product: its sums do not depend on how many rows are multiplied together.
    products = np.einsum("ij,j->i", matrix, vector, dtype=np.float64)
    return np.clip(np.round(1.0 - products, 7), 0.0, 2.0)


def _best(distances: dict[int, float], limit: int) -> dict[int, float]:
    return dict(heapq.nsmallest(limit, distances.items(), key=lambda pair: (pair[1], pair[0])))


def _told(notes: list[str]) -> str | None:
    return " ".join(notes) or None
