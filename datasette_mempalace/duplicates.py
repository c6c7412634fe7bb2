"""Duplicates: drawers that say the same, as clusters of exact and near copies. It only looks; nothing is ever changed.

Exact copies are found by the hash beside each vector, near copies by the stored vectors: each drawer is held against
all that come after it by id, block by block, read from SQLite. That is quadratic, so one call looks at a bounded
number of drawers and says at how many, and where the next one goes on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .answer import chunk_totals, heading_of, place_of
from .config import Settings
from .equal_texts import equal_groups
from .errors import BadParameter
from .nearest import true_distances
from .palace import Palace
from .pool import count_in_scope, read_rows
from .ranking import similarity
from .request import SearchRequest, parse_request, read_whole
from .scope import scope_as_json
from .snippets import snippet
from .time_limit import limited_reader
from .vectors import as_matrix, read_vectors, stored_dimension

PARAMETERS = (
    "threshold", "min_characters", "n_results", "next", "wing", "room", "source_file", "since", "before", "date_column",
    "ids", "wing__isnull", "room__isnull", "source_file__isnull",
)  # fmt: skip
_OF_SEARCH = frozenset({
    "q", "candidate_strategy", "ranking", "vector_disabled", "facets", "context", "explain", "max_distance",
})  # fmt: skip
THRESHOLD, LOWEST = 0.95, 0.5
MIN_CHARACTERS = 40  # "Thanks!" twice is no duplicate worth a look
CLUSTERS = 20
# Pairs of vectors that one call over HTTP compares: about three seconds of two cores.
PAIRS = 200_000_000
WINDOW, PART, LEAST = (
    2_000,
    4_000,
    500,
)  # drawers looked at together; held against at a time; looked at in one call at the least
NEIGHBOURS = 20  # that a drawer is joined with in each part: chains of copies hold together with far fewer
MEMBERS = 50  # of a cluster that are listed
ROUNDING = 1e-5  # single precision chooses, double precision decides

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class DuplicatesRequest:
    """One question, checked.

    Attributes:
        search: where to look (`scope`) and how many clusters are wanted (`n_results`).
        threshold: from which similarity on two drawers are near copies; 1 finds equal texts alone.
        min_characters: shorter texts are left out.
        after: the id that the call before had come to; 0 begins.
    """

    search: SearchRequest = field(default_factory=lambda: SearchRequest(query="", n_results=CLUSTERS))
    threshold: float = THRESHOLD
    min_characters: int = MIN_CHARACTERS
    after: int = 0


def parse_duplicates(
    parameters: Mapping[str, Any], settings: Settings, *, strict: bool = False
) -> DuplicatesRequest:
    """Read a question from parameters as any face has them.

    Args:
        parameters: names of `PARAMETERS`, or of a column filter, to a text, a number, a flag, or a list of them.
        settings: where the greatest `n_results` comes from.
        strict: whether a name that is not known is refused (command line, Python) or left alone (a URL).
    Raises:
        BadInput: naming the parameter, its value and what is allowed.
    """
    if strict and (foreign := sorted(_OF_SEARCH & parameters.keys())):
        allowed = f"it must be one of {', '.join(PARAMETERS)}, or a filter such as added_by__exact"
        raise BadParameter("options", foreign[0], allowed)
    own = {"threshold", "min_characters", "next", "n_results"}
    rest = {name: value for name, value in parameters.items() if name not in own | _OF_SEARCH}
    wanted = read_whole(
        "n_results", parameters, 1, settings.max_n_results, min(CLUSTERS, settings.max_n_results)
    )
    return DuplicatesRequest(
        search=parse_request({**rest, "n_results": wanted}, settings, strict=strict, allow_blank=True),
        threshold=_threshold(parameters.get("threshold")),
        min_characters=read_whole("min_characters", parameters, 0, 1_000_000, MIN_CHARACTERS),
        after=read_whole("next", parameters, 0, 2**53, 0),
    )


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
        look = _Look(reader, request, pairs, deadline)
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


class Sets:
    """Disjoint sets of ids: what is joined, directly or through others, is one set (union-find with halved paths)."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def join(self, one: int, other: int) -> None:
        """Make the sets of two ids one; the lowest id stands for a set."""
        low, high = sorted((self.root(one), self.root(other)))
        self._parents[high] = low

    def root(self, member: int) -> int:
        """The lowest id of a member's set."""
        parents = self._parents
        while (parent := parents.setdefault(member, member)) != member:
            parents[member] = member = parents[parent]
        return member

    def all(self) -> list[list[int]]:
        """The sets of two or more, each ascending."""
        found: dict[int, list[int]] = {}
        for member in sorted(self._parents):
            found.setdefault(self.root(member), []).append(member)
        return [members for members in found.values() if len(members) > 1]


class _Look:
    """One call's look at a scope.

    Attributes:
        looked_at: how many drawers were held against the others.
        next: the id to go on behind, or None at the end.
        with_vector: how many drawers of the scope have a vector.
        exact: the first of the drawers with the same text, by id, for all that have copies.
    """

    def __init__(
        self, connection: Any, request: DuplicatesRequest, pairs: int | None, deadline: float | None
    ):
        self.connection, self.request, self.deadline = connection, request, deadline
        self.looked_at = 0
        self.next: int | None = None
        self.exact: dict[int, int] = {}
        self.dimension = stored_dimension(connection) or 0
        where, self.parameters = request.search.scope.where()
        everything = request.search.scope.is_everything
        self.narrowed = "" if everything else f"and id in (select id from drawers where {where})"
        self.with_vector = self._count()
        self.most = None if pairs is None else max(LEAST, pairs // max(1, self.with_vector))

    def clusters(self, progress: Progress | None) -> list[list[int]]:
        """Clusters of two or more drawers that are long enough, of which at least one was looked at."""
        sets, looked_at = Sets(), set()
        groups = [
            self._long_enough(group) for group in equal_groups(self.connection, self.request.search.scope)
        ]
        for first, *copies in (group for group in groups if len(group) > 1):
            self.exact[first] = first
            for copy in copies:
                self.exact[copy] = first
                sets.join(first, copy)
        if self.request.threshold >= 1:
            self.looked_at = self.with_vector
            return sets.all()
        for ids in self._windows():
            looked_at.update(ids)
            self.looked_at += len(ids)
            if progress:
                progress(self.looked_at, self.with_vector)
            for one, other in self._near(ids):
                sets.join(one, other)
        return [members for members in sets.all() if not looked_at.isdisjoint(members)]

    def _count(self) -> int:
        query = f"select count(*) from drawer_vectors where 1 {self.narrowed}"
        return int(self.connection.execute(query, self.parameters).fetchone()[0])

    def _windows(self) -> Iterator[list[int]]:
        """The drawers to look at, by id, until the call's share or its time is used up."""
        after = self.request.after
        while True:
            size = WINDOW if self.most is None else min(WINDOW, self.most - self.looked_at)
            late = self.deadline is not None and time.monotonic() > self.deadline
            if size <= 0 or (late and self.looked_at):
                self.next = after
                return
            rows = self.connection.execute(
                f"select id from drawer_vectors where id > :after {self.narrowed} order by id limit :size",
                {**self.parameters, "after": after, "size": size + 1},
            ).fetchall()
            ids = [row[0] for row in rows[:size]]
            if not ids:
                return
            yield ids
            after = ids[-1]
            if len(rows) <= size:
                return

    def _near(self, ids: list[int]) -> Iterator[tuple[int, int]]:
        """Pairs of near copies: one of a window with one that comes after it. Of equal texts only the first is compared."""
        known, window = read_vectors(self.connection, "drawer", self._firsts(ids), self.dimension)
        order = np.argsort(known)
        own, window = np.asarray(known, dtype=np.int64)[order], window[order]
        cursor = self.connection.execute(
            f"select id, vector from drawer_vectors where id >= :first {self.narrowed} order by id",
            {**self.parameters, "first": ids[0]},
        )
        while rows := cursor.fetchmany(PART):
            firsts = set(self._firsts(row[0] for row in rows))
            others, part = as_matrix([row for row in rows if row[0] in firsts], self.dimension)
            if len(own) and others:
                yield from self._checked(
                    _alike(own, window, np.asarray(others), part, self.request.threshold)
                )

    def _firsts(self, ids: Iterable[int]) -> list[int]:
        return [row_id for row_id in ids if self.exact.get(row_id, row_id) == row_id]

    def _checked(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The pairs of which both texts are long enough."""
        long = set(self._long_enough(list({row_id for pair in pairs for row_id in pair}))) if pairs else set()
        return [pair for pair in pairs if long.issuperset(pair)]

    def _long_enough(self, ids: list[int]) -> list[int]:
        rows = self.connection.execute(
            "select id from drawers where id in (select value from json_each(:ids)) and length(text) >= :least"
            " order by id",
            {"ids": json.dumps(ids), "least": self.request.min_characters},
        )
        return [row[0] for row in rows]


def _alike(
    own: NDArray[np.int64],
    window: NDArray[np.float32],
    others: NDArray[np.int64],
    part: NDArray[np.float32],
    threshold: float,
) -> list[tuple[int, int]]:
    """Pairs of rows whose similarity reaches the threshold, the second with the greater id.

    Args:
        own, others: ids of the rows, ascending.
        window, part: their vectors, of unit length: (len(own), dimension) and (len(others), dimension).
        threshold: the least similarity.
    Returns:
        pairs of ids; of each row's many at most the `NEIGHBOURS` nearest of the part.
    """
    products = window @ part.T
    products[others[None, :] <= own[:, None]] = -1.0
    hits = products >= threshold - ROUNDING
    crowded = np.flatnonzero(hits.sum(axis=1) > NEIGHBOURS)
    for row in crowded:
        nearest_columns = np.argpartition(-products[row], NEIGHBOURS)[:NEIGHBOURS]
        hits[row] = False
        hits[row, nearest_columns] = True
    rows, columns = np.nonzero(hits)
    exactly = np.einsum("ij,ij->i", window[rows], part[columns], dtype=np.float64)
    sure = np.round(exactly, 6) >= threshold
    return [
        (int(own[row]), int(others[column])) for row, column in zip(rows[sure], columns[sure], strict=True)
    ]


def _described(connection: Any, members: list[int], look: _Look) -> dict[str, Any]:
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


def _threshold(value: Any) -> float:
    values = [
        item for item in (value if isinstance(value, (list, tuple)) else [value]) if item not in (None, "")
    ]
    if not values:
        return THRESHOLD
    try:
        if len(values) > 1 or isinstance(values[0], bool) or "_" in str(values[0]):
            raise ValueError
        number = float(values[0])
        if not LOWEST <= number <= 1:
            raise ValueError
    except (TypeError, ValueError):
        shown = values[0] if len(values) == 1 else values
        raise BadParameter(
            "threshold", shown, f"it must be a number from {LOWEST} to 1 (equal texts alone)"
        ) from None
    return number
