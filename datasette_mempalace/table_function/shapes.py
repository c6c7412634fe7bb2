"""What a table-valued function looks like, and which conditions of a statement it takes over. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

BOUNDS = ("limit", "offset")
COST = 1e6  # of one call: more than what it is joined with, not so much that the rest is lost in rounding
DEARER = 30.0  # see `_cost`
ROWS = 20


class TableError(Exception):
    """Raise it in a function to tell the person who wrote the statement what is wrong."""


class Condition(NamedTuple):
    """A condition of the statement that the function takes over; `value` is a tuple for the operator "in"."""

    column: str
    operator: str
    value: Any


class Rows:
    """What a function returns: mappings of column names to values; lists and mappings are shown as JSON."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]):
        self.rows = rows
        self._places: dict[Any, Mapping[str, Any]] | None = None

    def with_key(self, key: str, value: Any) -> Sequence[Mapping[str, Any]]:
        """The row whose key has a value, if there is one."""
        if self._places is None:
            self._places = {row[key]: row for row in self.rows}
        return [self._places[value]] if value in self._places else []


Function = Callable[[dict[str, Any], tuple[Condition, ...], "int | None"], Rows]


@dataclass(frozen=True, eq=False)
class Shape:
    """What a table-valued function looks like.

    Attributes:
        name: its name in SQL.
        columns: the visible columns with their types.
        parameters: its arguments, as hidden columns; the first must be given.
        key: an integer column whose values differ. `key = ...` looks a row up among those of the whole call.
        narrowing: columns with the operators (=, in, is, is null, <, <=, >, >=) that the function takes over. SQLite
            still checks every row, so that the function may bring too many rows, but must not miss any.
        order: the column by which rows come out, ascending, or None.
    """

    name: str
    columns: Mapping[str, str]
    parameters: Sequence[str]
    key: str
    narrowing: Mapping[str, frozenset[str]] = field(default_factory=dict)
    order: str | None = None

    @property
    def schema(self) -> str:
        """The statement that declares it to SQLite."""
        visible = [f'"{name}" {kind}' for name, kind in self.columns.items()]
        hidden = [f'"{name}" hidden' for name in self.parameters]
        return f"create table x({', '.join(visible + hidden)})"


class Offer(NamedTuple):
    """A condition as SQLite offers it; one that is not usable needs a table that is not read yet."""

    column: str
    operator: str
    usable: bool = True
    binary: bool = True


@dataclass
class Plan:
    """How a statement reads the table: the offers taken, in the order of their values, and what that means."""

    taken: list[int]
    text: str
    cost: float
    rows: int
    ordered: bool


def plan(shape: Shape, offers: Sequence[Offer], order: Sequence[tuple[str, bool]]) -> Plan | None:
    """Choose the conditions that the function takes over.

    Args:
        shape: the function.
        offers: the conditions of the statement.
        order: what the statement orders by: column, and whether descending.
    Returns:
        the plan, or None when an argument is not there yet and SQLite must ask again.
    """
    taken: dict[int, str] = {}
    for place, offer in enumerate(offers):
        if offer.column in shape.parameters and offer.operator in ("=", "in"):
            if not offer.usable:
                return None
            if f"{offer.column} =" not in taken.values():
                taken[place] = f"{offer.column} ="  # of a list SQLite gives one value after the other
    for place, offer in enumerate(offers):
        narrows = offer.operator in shape.narrowing.get(offer.column, ())
        if offer.usable and offer.binary and (narrows or (offer.column, offer.operator) == (shape.key, "=")):
            taken[place] = f"{offer.column} {offer.operator}"
    ordered = bool(order) and order[0] == (
        shape.order,
        False,
    )  # its values differ: what follows does not matter
    others = [place for place, offer in enumerate(offers) if offer.operator not in BOUNDS]
    looked_up = f"{shape.key} =" in taken.values()
    if all(place in taken for place in others) and not looked_up and (ordered or not order):
        taken.update(
            {place: o.operator for place, o in enumerate(offers) if o.usable and place not in others}
        )
    return Plan(list(taken), ", ".join(taken.values()), _cost(offers), 1 if looked_up else ROWS, ordered)


def _cost(offers: Sequence[Offer]) -> float:
    """A call's cost: the more it waits for other tables, the dearer, or it would be called for each of their rows.

    SQLite asks first with every condition usable and then with fewer, so that a share tells the two apart.
    """
    return float(COST * DEARER ** (sum(offer.usable for offer in offers) / max(len(offers), 1)))
