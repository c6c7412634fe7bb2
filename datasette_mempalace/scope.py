"""Which drawers a search may look at: one `Scope`, turned into SQL for SQLite and a filter for Chroma.

Pure: it builds texts and parameters and runs nothing. A value never becomes part of a statement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .filters import Filter
from .moments import moment_of

DATE_COLUMNS = ("filed_at", "authored_at", "content_date")
DIMENSIONS = {"wing": "wings", "room": "rooms", "source_file": "source_files"}


@dataclass(frozen=True)
class Scope:
    """A set of drawers, described.

    Attributes:
        wings, rooms, source_files: the values allowed in each column; empty means any; None inside means "has none".
        since, before: UTC "YYYY-MM-DD HH:MM:SS" bounds on `date_column`, the first inclusive, the second exclusive.
        ids: the drawers' integer ids allowed, or None for any.
        date_column: which of `DATE_COLUMNS` the bounds hold for.
        filters: conditions on further columns, all of which must hold.
    """

    wings: tuple[str | None, ...] = ()
    rooms: tuple[str | None, ...] = ()
    source_files: tuple[str | None, ...] = ()
    since: str | None = None
    before: str | None = None
    ids: tuple[int, ...] | None = None
    date_column: str = "filed_at"
    filters: tuple[Filter, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether no drawer is left out."""
        return replace(self, date_column="filed_at") == Scope()

    def without(self, dimension: str) -> Scope:
        """The same scope with the filter on `wing`, `room` or `source_file` taken away."""
        emptied: dict[str, Any] = {DIMENSIONS[dimension]: ()}
        return replace(self, **emptied)

    def for_closets(self) -> Scope:
        """The part of the scope that closets can be held against: they have no dates and ids of their own."""
        return Scope(self.wings, self.rooms, self.source_files)

    def where(self) -> tuple[str, dict[str, Any]]:
        """The scope as an SQL condition on a table with drawers' columns.

        Returns:
            the condition ("1" when nothing is left out) and its named parameters, all beginning with `scope_` or `filter_`.
        """
        conditions: list[str] = []
        parameters: dict[str, Any] = {}
        for column, attribute in DIMENSIONS.items():
            self._where_values(column, getattr(self, attribute), conditions, parameters)
        for bound, operator in (("since", ">="), ("before", "<")):
            if getattr(self, bound) is not None:
                conditions.append(f"{moment_of(self.date_column)} {operator} :scope_{bound}")
                parameters[f"scope_{bound}"] = getattr(self, bound)
        if self.ids is not None:
            conditions.append("id in (select value from json_each(:scope_ids))")
            parameters["scope_ids"] = json.dumps(self.ids)
        for number, condition in enumerate(self.filters):
            text, given = condition.where(number)
            conditions.append(text)
            parameters.update(given)
        return " and ".join(conditions) or "1", parameters

    @staticmethod
    def _where_values(
        column: str, values: tuple[str | None, ...], conditions: list[str], parameters: dict[str, Any]
    ) -> None:
        if not values:
            return
        named = [value for value in values if value is not None]
        choices = []
        if len(named) == 1:
            choices.append(f"{column} = :scope_{column}")
            parameters[f"scope_{column}"] = named[0]
        elif named:
            choices.append(f"{column} in (select value from json_each(:scope_{column}))")
            parameters[f"scope_{column}"] = json.dumps(named)
        if None in values:
            choices.append(f"{column} is null")
        conditions.append(choices[0] if len(choices) == 1 else f"({' or '.join(choices)})")

    def chroma_where(self) -> dict[str, Any] | None:
        """The scope as a Chroma `where`, or None when Chroma cannot say it (dates, ids, sources, "has none")."""
        if self.since or self.before or self.ids is not None or self.source_files or self.filters:
            return None
        if None in self.wings or None in self.rooms:
            return None
        parts = [
            {column: values[0] if len(values) == 1 else {"$in": list(values)}}
            for column, values in (("wing", self.wings), ("room", self.rooms))
            if values
        ]
        return parts[0] if len(parts) == 1 else {"$and": parts} if parts else {}


def build_where_filter(wing: str | None = None, room: str | None = None) -> dict[str, Any]:
    """MemPalace's filter for one wing and one room.

    Returns:
        {} / {"wing": w} / {"room": r} / {"$and": [{"wing": w}, {"room": r}]}; an empty string is no filter.
    """
    return Scope(wings=(wing,) if wing else (), rooms=(room,) if room else ()).chroma_where() or {}


def scope_as_json(scope: Scope, given: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """The filters of an answer, as every face shows them.

    Args:
        scope: the scope in force.
        given: the dates as the person wrote them, shown instead of their UTC form.
    """
    given = given or {}
    shown: dict[str, Any] = {
        "wing": list(scope.wings),
        "room": list(scope.rooms),
        "source_file": list(scope.source_files),
        "since": given.get("since") or scope.since,
        "before": given.get("before") or scope.before,
        "date_column": scope.date_column,
        "ids": None if scope.ids is None else len(scope.ids),
    }
    for condition in scope.filters:
        shown.setdefault(condition.name, []).append(condition.value)
    return shown
