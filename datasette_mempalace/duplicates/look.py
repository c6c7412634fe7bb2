"""One call's look at a scope: which of its drawers say the same, as sets of their ids.

Exact copies are found by the hash beside each vector, near copies by the stored vectors: each drawer is held against
all that come after it by id, block by block, read from SQLite.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..equal_texts import equal_groups
from ..vectors import as_matrix, read_vectors, stored_dimension
from .request import DuplicatesRequest

WINDOW = 2_000  # drawers looked at together
PART = 4_000  # held against at a time
LEAST = 500  # looked at in one call at the least
NEIGHBOURS = 20  # that a drawer is joined with in each part: chains of copies hold together with far fewer
ROUNDING = 1e-5  # single precision chooses, double precision decides

Progress = Callable[[int, int], None]


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


class Look:
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
                yield from self._checked(alike(own, window, np.asarray(others), part, self.request.threshold))

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


def alike(
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
