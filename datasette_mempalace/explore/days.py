"""When the drawers of a part were filed, written, or what day they are about."""

from __future__ import annotations

from typing import Any

from ..moments import day_of
from ..palace import Palace
from ..scope import Scope
from ..timeline import as_json, make_timeline
from .reading import Part, kept


def timeline_of(palace: Palace, scope: Scope) -> dict[str, Any]:
    """A scope's timeline by its date column, as `timeline.as_json` has it. Nobody may change it."""
    return kept(palace, "timeline", scope, read_timeline)


def read_timeline(part: Part) -> dict[str, Any]:
    """A part's timeline. Equal moments are counted before they become days: that is what takes the time."""
    scope = part.scope
    column = scope.date_column
    rows = part.connection.execute(
        f"select {day_of('moment')}, sum(number), moment is null from (select {column} as moment, count(*) as number"
        f" from {part.table} where {part.where} group by {column}) group by 1, 3",
        part.parameters,
    ).fetchall()
    undated = sum(number for _, number, none in rows if none)
    days = {day: number for day, number, none in rows if not none}
    return as_json(make_timeline(days, undated, scope.since, scope.before), column)
