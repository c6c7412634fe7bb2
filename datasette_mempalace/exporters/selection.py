"""What an export holds: the drawers of a scope or of a search, and their closets, read in one transaction, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..palace import Palace
from ..schema import CLOSET_COLUMNS, DRAWER_COLUMNS, get_setting
from ..scope import Scope
from ..vectors import Kind, stored_dimension

COLUMNS: dict[Kind, tuple[str, ...]] = {"drawer": DRAWER_COLUMNS, "closet": CLOSET_COLUMNS}
BY_ID = "id"
BY_PLACE = "wing, room, source_file, chunk_index, id"
Row = dict[str, Any]


@dataclass(frozen=True)
class Selection:
    """Which drawers are exported.

    Attributes:
        scope: the drawers.
        ranked: the hits of a search, best first, by their integer ids; None without a search.
    """

    scope: Scope = field(default_factory=Scope)
    ranked: tuple[int, ...] | None = None

    @property
    def is_everything(self) -> bool:
        """Whether the whole palace is exported."""
        return self.ranked is None and self.scope.is_everything


class View:
    """A selection of a palace as of one moment.

    Attributes:
        connection: with that moment's view of the data.

    A text comes with `surrogateescape` for bytes that are not UTF-8, so that nothing of it is lost.
    """

    def __init__(self, connection: Any, selection: Selection):
        self.connection, self._selection = connection, selection
        condition, self._parameters = selection.scope.where()
        self._drawers = f"from drawers where {condition}"
        if selection.ranked is not None:
            self._parameters["ranked"] = json.dumps(selection.ranked)
            self._drawers = (
                f"from (select value as ranked_id, key as place from json_each(:ranked))"
                f" join drawers on drawers.id = ranked_id where {condition}"
            )
        self._closets = "from closets where 1"
        if not selection.is_everything:
            # A closet belongs to a source: it goes where a drawer of its source goes.
            self._closets = f"from closets where source_file in (select source_file {self._drawers})"
            narrowed, more = Scope(selection.scope.wings, selection.scope.rooms).where()
            self._closets += f" and ({narrowed})"
            self._parameters |= more

    @property
    def is_everything(self) -> bool:
        """Whether it is the whole palace."""
        return self._selection.is_everything

    @property
    def model(self) -> str | None:
        """The model of the palace's vectors."""
        return get_setting(self.connection, "embedding_model")

    @property
    def dimension(self) -> int | None:
        """How many numbers its vectors have."""
        return stored_dimension(self.connection)

    def count(self, kind: Kind) -> int:
        """How many drawers or closets there are."""
        row = self.connection.execute(f"select count(*) {self._from(kind)}", self._parameters).fetchone()
        return int(row[0])

    def rows(self, kind: Kind, order: str = BY_ID, vectors: bool = False) -> Iterator[Row]:
        """The drawers or closets, each with its integer `id` and every column.

        Args:
            kind: "drawer" or "closet".
            order: `BY_ID`, where the hits of a search come best first instead, or `BY_PLACE`.
            vectors: whether with `vector` and `text_hash`, null where there is none.
        """
        names: Sequence[str] = ("id", *COLUMNS[kind])
        wanted = [f"{kind}s.{name}" for name in names]
        if vectors:
            names = (*names, "vector", "text_hash")
            wanted += [
                f"(select {name} from {kind}_vectors where {kind}_vectors.id = {kind}s.id)"
                for name in ("vector", "text_hash")
            ]
        if kind == "drawer" and order == BY_ID and self._selection.ranked is not None:
            order = "place"
        query = f"select {', '.join(wanted)} {self._from(kind)} order by {order}"
        for row in self.connection.execute(query, self._parameters):
            yield dict(zip(names, row, strict=True))

    def _from(self, kind: Kind) -> str:
        return self._drawers if kind == "drawer" else self._closets


@contextmanager
def viewed(palace: Palace, selection: Selection) -> Iterator[View]:
    """A view of a palace that no writer changes while it is open."""
    with palace.reader() as connection:
        before = connection.text_factory
        connection.text_factory = _kept
        try:
            yield View(connection, selection)
        finally:
            connection.text_factory = before


def _kept(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
