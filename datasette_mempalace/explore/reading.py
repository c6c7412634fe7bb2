"""How a part of a palace is read for counting: through the index that holds all that is counted, never the texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..change_log import last_change, only_vectors_since
from ..palace import Palace
from ..schema import PLACES, PLACES_INDEX, moment_index
from ..scope import Scope

COVERED = frozenset(("id", *PLACES))

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Part:
    """A scope ready to stand in a statement: `select ... from {table} where {where}`.

    Attributes:
        connection: with one view of the data.
        scope: the scope.
        table: drawers, perhaps with the index to read.
        where: the condition.
        parameters: its values.
    """

    connection: Any
    scope: Scope
    table: str
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
    """A scope to read from a connection."""
    where, parameters = scope.where()
    return Part(connection, scope, _table(connection, scope), where, parameters)


def by_moment(part: Part) -> str:
    """The part's table in the order of the moments that its drawers were filed at, where an index has it."""
    return _with_index(part.connection, moment_index("filed_at")) if _is_covered(part.scope) else part.table


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
        return palace.kept_answers.get(
            last_change(connection),
            (what, scope),
            lambda: read(part),
            lambda position: only_vectors_since(connection, position),
        )


def _table(connection: Any, scope: Scope) -> str:
    """Drawers, with an index named where SQLite, which keeps no statistics here, would take one that leads back to every row.

    Of the whole palace any column is counted soonest from that column's own index.
    """
    if scope.is_everything or not _is_covered(scope):
        return "drawers"
    if not scope.wings and (scope.since or scope.before):
        return _with_index(connection, moment_index(scope.date_column))
    return _with_index(connection, PLACES_INDEX)


def _is_covered(scope: Scope) -> bool:
    """Whether the indexes hold all that a scope asks for: a few sources or ids are looked up, a text is read."""
    narrow = scope.source_files or scope.ids is not None
    return not narrow and all(condition.column in COVERED for condition in scope.filters)


def _with_index(connection: Any, name: str) -> str:
    """Drawers with an index that is there: any program may have dropped it, and a page without it is only slower."""
    query = "select 1 from sqlite_master where type = 'index' and name = ?"
    return f"drawers indexed by {name}" if connection.execute(query, [name]).fetchone() else "drawers"
