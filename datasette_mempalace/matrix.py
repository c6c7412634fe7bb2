"""A palace's stored vectors as one matrix in memory: exact nearest neighbours of any part of the palace in milliseconds.

Loaded when a search first needs it, shared by threads, bounded by the setting `matrix_mb`. What has changed since it
was loaded is left out of it and scored from SQLite; when that is much, it is loaded anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .brief_lock import BriefLock
from .change_log import changed_since, last_change
from .errors import LogTooShort, MatrixUnavailable
from .minilm import Vectors
from .vectors import Kind, as_matrix

ROWS = 10_000
RELOAD_AFTER = 500
# Beyond this share of the matrix one product over all rows is quicker than copying the rows wanted.
ALL_ROWS_SHARE = 0.125
# Products in single precision choose; the rows chosen are scored again in double precision.
MARGIN = 32


@dataclass(frozen=True)
class Matrix:
    """Vectors as of one moment.

    Attributes:
        ids: the drawers' or closets' ids, ascending.
        vectors: a (len(ids), dimension) array of float32 of unit length.
        position: the last change of the log that it holds.
    """

    ids: NDArray[np.int64]
    vectors: Vectors
    position: int

    def nearest(
        self, vector: Vectors, limit: int, among: NDArray[np.int64] | None, without: list[int]
    ) -> list[int]:
        """Ids of the rows nearest to a vector, and a few more, in no order.

        Args:
            vector: the query, of unit length.
            limit: how many are wanted.
            among: the only ids allowed, or None for all.
            without: ids that are left out.
        """
        if not len(self.ids) or self.vectors.shape[1] != len(vector):
            return []
        rows = None if among is None else self._rows(among)
        if rows is not None and len(rows) < ALL_ROWS_SHARE * len(self.ids):
            products = self.vectors[rows] @ vector
        else:
            products = self.vectors @ vector
            products = products if rows is None else products[rows]
        ids = self.ids if rows is None else self.ids[rows]
        if without:
            products = np.where(np.isin(ids, without), -np.inf, products)
        wanted = min(limit + MARGIN, len(ids))
        if not wanted:
            return []
        chosen = np.argpartition(-products, wanted - 1)[:wanted]
        return [int(row_id) for row_id in ids[chosen[products[chosen] > -np.inf]]]

    def _rows(self, among: NDArray[np.int64]) -> NDArray[np.int64]:
        places = np.searchsorted(self.ids, among)
        places = np.minimum(places, len(self.ids) - 1)
        return places[self.ids[places] == among]


class MatrixKeeper:
    """The matrices of one palace, at most one of drawers and one of closets.

    Args:
        most_bytes: how large one may be; 0 for none at all.
    """

    def __init__(self, most_bytes: int):
        self.most_bytes = most_bytes
        self._lock = BriefLock(MatrixUnavailable)
        self._matrices: dict[Kind, Matrix] = {}

    def is_loaded(self, kind: Kind) -> bool:
        """Whether a matrix is there, perhaps a stale one."""
        return kind in self._matrices

    def get(self, connection: Any, kind: Kind, dimension: int) -> tuple[Matrix, list[int]]:
        """The matrix, and the ids that have changed since it was loaded.

        Args:
            connection: an open connection to the palace.
            kind: "drawer" or "closet".
            dimension: of the vectors wanted.
        Raises:
            MatrixUnavailable: when it would be larger than allowed, or is still being loaded by another search.
        """
        matrix = self._matrices.get(kind)
        changed = None if matrix is None else _changed_since(connection, kind, matrix.position)
        if matrix is None or changed is None:
            with self._lock:
                if self._matrices.get(kind) is matrix:
                    self._check_size(connection, kind, dimension)
                    self._matrices[kind] = load(connection, kind, dimension)
                matrix = self._matrices[kind]
            changed = _changed_since(connection, kind, matrix.position)
        return matrix, changed or []

    def drop(self) -> None:
        """Give the memory back."""
        with self._lock:
            self._matrices = {}

    def _check_size(self, connection: Any, kind: Kind, dimension: int) -> None:
        rows = connection.execute(f"select count(*) from {kind}_vectors").fetchone()[0]
        if rows * dimension * 4 > self.most_bytes:
            self._matrices.pop(kind, None)
            raise MatrixUnavailable(
                f"{rows:,} vectors would take more memory than the setting matrix_mb allows "
                f"({self.most_bytes // 2**20:,} MB)."
            )


def load(connection: Any, kind: Kind, dimension: int) -> Matrix:
    """Read every stored vector of a dimension; a row of another length is left out."""
    position = last_change(connection)
    rows = connection.execute(f"select count(*) from {kind}_vectors").fetchone()[0]
    vectors = np.empty((rows, dimension), dtype=np.float32)
    ids = np.empty(rows, dtype=np.int64)
    cursor = connection.execute(
        f"select id, vector from {kind}_vectors where length(vector) = ? order by id", [4 * dimension]
    )
    filled = 0
    while part := cursor.fetchmany(ROWS):
        part_ids, matrix = as_matrix(part, dimension)
        vectors[filled : filled + len(part_ids)] = matrix
        ids[filled : filled + len(part_ids)] = part_ids
        filled += len(part_ids)
    return Matrix(ids[:filled], vectors[:filled], position)


def _changed_since(connection: Any, kind: Kind, position: int) -> list[int] | None:
    """What has changed since a matrix was loaded; None when it must be loaded anew."""
    if position > last_change(connection):  # a backup was restored
        return None
    try:
        changed = changed_since(connection, kind, position, RELOAD_AFTER + 1)
    except LogTooShort:
        return None
    return changed if len(changed) <= RELOAD_AFTER else None
