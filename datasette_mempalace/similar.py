"""Similar drawers: those whose stored vectors lie nearest to one drawer's. Every face comes through `run_similar`.

By default drawers of other sources come first: neighbours in the same source share words and even passages with a
drawer, and whoever reads it has them before and after it anyway.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import ranking
from .answer import chunk_totals, heading_of, place_of, rounded
from .config import Settings
from .errors import (
    BadInput,
    BadParameter,
    DrawerNotFound,
    EmbedderMismatch,
    EmbedderUnavailable,
    NoVector,
    sentences,
)
from .nearest import Nearest, nearest
from .palace import Palace
from .parameter_values import read_flag
from .request import SearchRequest, parse_request
from .rows import count_in_scope, read_rows
from .scope import Scope, scope_as_json
from .snippets import snippet
from .text import clean_text, shortened
from .time_limit import limited_reader
from .vectors import read_vectors, stored_dimension, told_pending

PARAMETERS = (
    "drawer_id", "n_results", "other_sources_first", "max_distance", "wing", "room", "source_file", "since", "before",
    "date_column", "ids", "wing__isnull", "room__isnull", "source_file__isnull",
)  # fmt: skip
# Parameters of a search that have no meaning where nothing is searched for.
_OF_SEARCH = frozenset({
    "q", "candidate_strategy", "ranking", "vector_disabled", "next", "facets", "context", "explain",
})  # fmt: skip
MULTIPLE = 4  # times as many are looked at as wanted, so that mostly enough are of other sources
READ_CHARACTERS = 8_000  # of a text that has no vector yet: no model reads more than its beginning
_WHOLE = re.compile(r"-?\d{1,18}")


@dataclass(frozen=True)
class SimilarRequest:
    """One question, checked.

    Attributes:
        drawer: a `drawer_id`, else the `id` of a row as text; an integer is always the `id` of a row.
        search: where to look (`scope`), how many are wanted (`n_results`), how far they may lie (`max_distance`).
        other_sources_first: whether all drawers of other sources come before those of the drawer's own.
    """

    drawer: str | int
    search: SearchRequest = field(default_factory=lambda: SearchRequest(query=""))
    other_sources_first: bool = True


def parse_similar(
    parameters: Mapping[str, Any], settings: Settings, *, strict: bool = False
) -> SimilarRequest:
    """Read a question from parameters as any face has them.

    Args:
        parameters: names of `PARAMETERS`, or of a column filter, to a text, a number, a flag, or a list of them.
        settings: where the defaults and the greatest `n_results` come from.
        strict: whether a name that is not known is refused (SQL options, command line) or left alone (a URL).
    Raises:
        BadInput: naming the parameter, its value and what is allowed.
    """
    own = {"drawer_id", "other_sources_first"}
    if strict and (foreign := sorted(_OF_SEARCH & parameters.keys())):
        allowed = f"it must be one of {', '.join(PARAMETERS)}, or a filter such as added_by__exact"
        raise BadParameter("options", foreign[0], allowed)
    rest = {name: value for name, value in parameters.items() if name not in own | _OF_SEARCH}
    return SimilarRequest(
        drawer=_drawer(parameters.get("drawer_id")),
        search=parse_request(rest, settings, strict=strict, allow_blank=True),
        other_sources_first=read_flag("other_sources_first", parameters, True),
    )


def similar_drawers(
    drawer_id: str | int, palace_path: str | os.PathLike[str], **parameters: Any
) -> dict[str, Any]:
    """The drawers most like one.

    Args:
        drawer_id: the drawer's `drawer_id`, or the integer `id` of its row.
        palace_path: the palace's database.
        parameters: any other of `PARAMETERS`, or column filters.
    Returns:
        the answer that `docs/api.md` describes.
    Raises:
        PalaceNotFound: when there is no palace.
        DrawerNotFound: when there is no such drawer.
        NoVector: when it cannot be compared.
        BadInput: for a value that is not allowed.
    """
    with Palace.open(palace_path) as palace:
        given = {**parameters, "drawer_id": drawer_id}
        return run_similar(palace, parse_similar(given, palace.settings, strict=True))


def run_similar(palace: Palace, request: SimilarRequest, connection: Any = None) -> dict[str, Any]:
    """The drawers whose vectors lie nearest to one drawer's.

    Args:
        palace: the palace.
        request: what is asked, as `parse_similar` reads it.
        connection: an open connection to read through; None takes one of the palace's.
    Returns:
        the answer, of plain JSON types; `docs/api.md` describes its keys.
    Raises:
        DrawerNotFound: when there is no such drawer.
        NoVector: when the drawer has no vector and none can be made now, or says nothing.
        TookTooLong: when it took longer than the setting `time_limit_ms`.
    """
    started = time.perf_counter()
    with limited_reader(palace, connection) as reader:
        drawer = find_drawer(reader, request.drawer)
        vector, origin = _vector_of(palace, reader, drawer)
        in_scope = count_in_scope(reader, request.search.scope)
        rows, found = _in_order(palace, reader, drawer, vector, request, in_scope)
        totals = chunk_totals(reader, [row["source_file"] for row in (drawer, *rows)])
        note = sentences(found.note, told_pending(reader))
    return {
        "ok": True,
        "drawer": {
            **place_of(drawer),
            "chunk_total": totals.get(drawer["source_file"]),
            "heading": heading_of(drawer),
        },
        "filters": {
            **scope_as_json(
                request.search.scope, dict(zip(("since", "before"), request.search.dates, strict=True))
            ),
            "max_distance": request.search.max_distance,
        },
        "n_results": request.search.n_results,
        "other_sources_first": request.other_sources_first,
        "in_scope": in_scope,
        "results": [
            _hit(row, rank, drawer, found.distances[row["id"]], totals) for rank, row in enumerate(rows, 1)
        ],
        "vector": origin,
        "engine": found.engine,
        "vector_note": note,
        "timings_ms": {"total": round((time.perf_counter() - started) * 1000, 1)},
    }


def find_drawer(connection: Any, drawer: str | int) -> dict[str, Any]:
    """The row of a drawer.

    Args:
        connection: an open connection.
        drawer: its `drawer_id`, else the `id` of its row as text; an integer is always the `id` of its row.
    Raises:
        DrawerNotFound: when there is none.
    """
    found = None
    if isinstance(drawer, str):
        found = connection.execute("select id from drawers where drawer_id = ?", [drawer]).fetchone()
    if found is None and _WHOLE.fullmatch(str(drawer)):
        found = connection.execute("select id from drawers where id = ?", [int(drawer)]).fetchone()
    if found is None:  # a name that another program left as a BLOB or a number, and pages show as text
        query = "select id from drawers where typeof(drawer_id) <> 'text' and cast(drawer_id as text) = ?"
        found = connection.execute(query, [str(drawer)]).fetchone()
    if found is None and "\ufffd" in str(drawer):  # a name with bytes that are no text, as pages show it
        names = connection.execute("select id, cast(drawer_id as text) from drawers order by id")
        found = next((row for row in names if row[1] == drawer), None)
    if found is None:
        raise DrawerNotFound(
            f"There is no drawer {shortened(drawer)} in this palace. It may have been deleted, or its text was changed and "
            "mined again, which gives a passage a new id; search for its words."
        )
    rows: dict[int, dict[str, Any]] = read_rows(connection, [found[0]])
    return rows[found[0]]


def is_same_source(drawer: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two drawers come from one source; a drawer without a source shares it with no other."""
    return bool(drawer["source_file"]) and drawer["source_file"] == other["source_file"]


def _drawer(value: Any) -> str | int:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    given = [item for item in values if item not in (None, "")]
    if not given:
        raise BadInput(
            "drawer_id is missing: give it the drawer_id, or the id, of the drawer to compare with."
        )
    if len(given) > 1:
        raise BadParameter("drawer_id", given, "it must be given once")
    if isinstance(given[0], bool) or not isinstance(given[0], (str, int)):
        raise BadParameter("drawer_id", given[0], "it must be the drawer_id, or the id, of a drawer")
    return given[0] if isinstance(given[0], int) else clean_text(given[0])[0]


def _vector_of(palace: Palace, connection: Any, drawer: Mapping[str, Any]) -> tuple[NDArray[np.float32], str]:
    """A drawer's vector, and whether it was "stored" or had to be "embedded" now.

    Raises:
        NoVector: when there is none to be had.
    """
    name = f"The drawer {drawer['drawer_id']!r}"
    dimension = stored_dimension(connection)
    if dimension is None:
        raise NoVector(
            "No drawer of this palace has a vector yet; make them with: datasette mempalace sync, "
            "or leave that to a running server."
        )
    if not drawer["text"].strip():
        raise NoVector(f"{name} is blank, so it is like no other.")
    ids, matrix = read_vectors(connection, "drawer", [drawer["id"]], dimension)
    if ids:
        return matrix[0], "stored"
    try:
        embedder = palace.embedder
        missing = None if embedder.is_loaded else embedder.missing()
        if missing:
            raise EmbedderUnavailable(missing)
        seconds = palace.settings.time_limit_ms / 1000 / 2
        vector = embedder.embed_query(drawer["text"][:READ_CHARACTERS], seconds)
    except (EmbedderMismatch, EmbedderUnavailable) as error:
        raise NoVector(
            f"{name} has no vector yet, and none can be made now: {error.message.rstrip('.')}. "
            "Make it with: datasette mempalace sync"
        ) from error
    return vector, "embedded"


def _in_order(
    palace: Palace,
    connection: Any,
    drawer: Mapping[str, Any],
    vector: NDArray[np.float32],
    request: SimilarRequest,
    in_scope: int,
) -> tuple[list[dict[str, Any]], Nearest]:
    """The rows of the hits, best first, and how they were found."""
    asked, first = request.search, request.other_sources_first

    def look(limit: int) -> tuple[Nearest, list[int], bool]:
        found = nearest(palace, connection, "drawer", vector, asked.scope, limit, in_scope)
        near = [each for each, far in found.distances.items() if each != drawer["id"] and asked.allows(far)]
        farthest = max(found.distances.values(), default=0.0)
        return found, near, len(found.distances) < limit or not asked.allows(farthest)

    found, near, everything = look((MULTIPLE if first else 1) * (asked.n_results + 1))
    others, same = _by_source(connection, drawer, near)
    if first and len(others) < asked.n_results and not everything:
        # Among so many, however near the drawer's own source lies, enough are of others.
        found, near, _ = look(_count_own(connection, drawer, asked.scope) + asked.n_results + 1)
        others, same = _by_source(connection, drawer, near)
    chosen = [*others, *same] if first else near
    rows = read_rows(connection, chosen[: asked.n_results])
    return [rows[row_id] for row_id in chosen if row_id in rows], found


def _by_source(connection: Any, drawer: Mapping[str, Any], ids: list[int]) -> tuple[list[int], list[int]]:
    """Ids of drawers of other sources and of the drawer's own, each in the order given."""
    if not drawer["source_file"]:
        return ids, []
    rows = connection.execute(
        "select id from drawers where source_file = :source and id in (select value from json_each(:ids))",
        {"source": drawer["source_file"], "ids": json.dumps(ids)},
    )
    own = {row[0] for row in rows}
    return [each for each in ids if each not in own], [each for each in ids if each in own]


def _count_own(connection: Any, drawer: Mapping[str, Any], scope: Scope) -> int:
    """How many drawers of a scope have a drawer's source."""
    where, parameters = scope.where()
    query = f"select count(*) from drawers where source_file = :own_source and {where}"
    return int(connection.execute(query, {**parameters, "own_source": drawer["source_file"]}).fetchone()[0])


def _hit(
    row: Mapping[str, Any], rank: int, drawer: Mapping[str, Any], distance: float, totals: Mapping[Any, int]
) -> dict[str, Any]:
    return {
        "rank": rank,
        **place_of(row),
        "chunk_total": totals.get(row["source_file"]),
        "heading": heading_of(row),
        "text": row["text"],
        "snippet": snippet(row["text"], []),
        "similarity": rounded(ranking.similarity(distance)),
        "distance": rounded(distance),
        "same_source": is_same_source(drawer, row),
        "same_text": row["text"] == drawer["text"],
        "filed_at": row["filed_at"],
        "authored_at": row["authored_at"],
        "content_date": row["content_date"],
        "hall": row["hall"],
        "added_by": row["added_by"],
    }
