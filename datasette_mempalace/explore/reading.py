"""How a part of a palace is read for counting: through the index that holds all that is counted, never the texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..change_log import last_change
from ..palace import Palace
from ..schema import PLACES_INDEX
from ..scope import Scope

COVERED = frozenset(
    ("id", "wing", "room", "filed_at", "authored_at", "content_date", "hall", "added_by", "source_file")
)

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Part:
    """A scope ready to stand in a statement: `select ... from {table} where {where}`.

    Attributes:
        connection: with one view of the data.
        scope: the scope.
        table: drawers, perhaps with the index to read.
        indexed: the same for what no smaller index holds together.
        where: the condition.
        parameters: its values.
    """

    connection: Any
    scope: Scope
    table: str
    indexed: str
    where: str
    parameters: dict[str, Any]

    def rows(self, select: str, rest: str = "", **more: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement over the part.

        Args:
            select: what stands between `select` and `from`.
            rest: what follows the condition: further conditions, grouping, order.
            more: values of further parameters.
        """
        statement = f"select {select} from {self.table} where {self.where} {rest}"
        return list(self.connection.execute(statement, {**self.parameters, **more}))


def part_of(connection: Any, scope: Scope) -> Part:
    """A scope to read from a connection.

    The index is named where SQLite, which keeps no statistics here, would take one that leads back to every row. A
    few sources or ids are looked up; a condition on a text needs the texts.
    """
    where, parameters = scope.where()
    narrow = scope.source_files or scope.ids is not None
    covered = all(condition.column in COVERED for condition in scope.filters)
    named = covered and not narrow and _has_index(connection)
    indexed = f"drawers indexed by {PLACES_INDEX}" if named else "drawers"
    # Of the whole palace one column is counted sooner from that column's own index.
    table = "drawers" if scope.is_everything else indexed
    return Part(connection, scope, table, indexed, where, parameters)


def kept(palace: Palace, what: str, scope: Scope, read: Callable[[Part], Answer]) -> Answer:
    """What `read` makes of a part, read once for every state of the palace.

    Args:
        palace: the palace.
        what: a name for the question, with all that it depends on besides the scope.
        scope: the part.
        read: reads the answer; nobody may change it afterwards.
    """
    with palace.reader() as connection:
        part = part_of(connection, scope)
        return palace.kept_answers.get(last_change(connection), (what, scope), lambda: read(part))


def _has_index(connection: Any) -> bool:
    """Whether the index is there: any program may have dropped it, and a page without it is only slower."""
    query = "select 1 from sqlite_master where type = 'index' and name = ?"
    return connection.execute(query, [PLACES_INDEX]).fetchone() is not None
