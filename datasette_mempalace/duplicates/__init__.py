"""Duplicates: drawers that say the same, as clusters of exact and near copies. It only looks; nothing is ever changed.

Holding each drawer against all others is quadratic, so one call looks at a bounded number of drawers and says at how
many, and where the next one goes on. `request` reads the question, `look` finds the clusters, this describes them.
"""

from __future__ import annotations

import os
import time
from typing import Any

from ..answer import chunk_totals, heading_of, place_of
from ..nearest import true_distances
from ..palace import Palace
from ..ranking import similarity
from ..rows import count_in_scope, read_rows
from ..scope import scope_as_json
from ..snippets import snippet
from ..time_limit import limited_reader
from ..vectors import read_vectors
from .look import Look, Progress
from .request import DuplicatesRequest, parse_duplicates

# Pairs of vectors that one call over HTTP compares: about three seconds of two cores.
PAIRS = 200_000_000
MEMBERS = 50  # of a cluster that are listed


def find_duplicates(palace_path: str | os.PathLike[str], **parameters: Any) -> dict[str, Any]:
    """The exact and near copies in a palace; all drawers of the scope are looked at.

    Args:
        palace_path: the palace's database.
        parameters: any of `PARAMETERS`, or column filters.
    Returns:
        the answer that `docs/api.md` describes.
    Raises:
        PalaceNotFound: when there is no palace.
        BadInput: for a value that is not allowed.
    """
    with Palace.open(palace_path) as palace:
        return run_duplicates(palace, parse_duplicates(parameters, palace.settings, strict=True), pairs=None)


def run_duplicates(
    palace: Palace, request: DuplicatesRequest, pairs: int | None = PAIRS, progress: Progress | None = None
) -> dict[str, Any]:
    """Clusters of copies among the drawers of a scope.

    Args:
        palace: the palace.
        request: what is asked, as `parse_duplicates` reads it.
        pairs: how many pairs of vectors may be compared, and the setting `time_limit_ms` holds; None looks at all
            drawers, however long it takes.
        progress: called with (drawers looked at, drawers to look at).
    Returns:
        the answer, of plain JSON types; `docs/api.md` describes its keys.
    Raises:
        TookTooLong: when SQLite took longer than the setting `time_limit_ms`.
    """
    started = time.perf_counter()
    deadline = None if pairs is None else time.monotonic() + palace.settings.time_limit_ms / 1000 / 2
    with palace.reader() if pairs is None else limited_reader(palace) as reader:
        look = Look(reader, request, pairs, deadline)
        clusters = look.clusters(progress)
        clusters.sort(key=lambda members: (-len(members), members[0]))
        shown = [_described(reader, members, look) for members in clusters[: request.search.n_results]]
        in_scope = count_in_scope(reader, request.search.scope)
    return {
        "ok": True,
        "filters": scope_as_json(
            request.search.scope, dict(zip(("since", "before"), request.search.dates, strict=True))
        ),
        "threshold": request.threshold,
        "min_characters": request.min_characters,
        "n_results": request.search.n_results,
        "in_scope": in_scope,
        "without_vector": max(0, in_scope - look.with_vector),
        "looked_at": look.looked_at,
        "complete": look.next is None and not request.after,
        "next": None if look.next is None else str(look.next),
        "found": len(clusters),
        "drawers_found": sum(map(len, clusters)),
        "clusters": shown,
        "timings_ms": {"total": round((time.perf_counter() - started) * 1000, 1)},
    }


def _described(connection: Any, members: list[int], look: Look) -> dict[str, Any]:
    """A cluster as every face shows it."""
    listed = members[:MEMBERS]
    rows = read_rows(connection, listed)
    first = rows[members[0]]
    totals = chunk_totals(connection, {row["source_file"] for row in rows.values()})
    ids, vectors = read_vectors(connection, "drawer", [members[0]], look.dimension)
    distances = true_distances(connection, "drawer", vectors[0], listed) if ids else {}
    same = {row_id for row_id in members if look.exact.get(row_id) == look.exact.get(members[0], -1)}
    return {
        "size": len(members),
        "kind": "exact" if len(same) == len(members) else "near",
        "characters": len(first["text"]),
        "snippet": snippet(first["text"], []),
        "members": [
            {
                **place_of(row),
                "chunk_total": totals.get(row["source_file"]),
                "heading": heading_of(row),
                "filed_at": row["filed_at"],
                "same_text": row["id"] == members[0] or row["id"] in same,
                "similarity": _similarity(distances.get(row["id"])),
            }
            for row in (rows[row_id] for row_id in listed)
        ],
    }


def _similarity(distance: float | None) -> float | None:
    alike = similarity(distance)
    return None if alike is None else round(alike, 6)
