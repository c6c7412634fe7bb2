"""Each page's numbers as a statement for Datasette's SQL page, to be read and changed there. Pure.

What `explore` runs is made for speed; these are made for reading, and give the same rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..explore.source import PART
from ..explore.values import LISTS
from ..moments import day_of
from ..scope import Scope
from ..timeline import LAST

_SPACE = "\n  "
# The first day of a timeline's bucket, by its unit; weeks begin on Monday.
_BUCKETS = {
    "day": "date({column})",
    "week": "date({column}, 'weekday 0', '-6 days')",
    "month": "date({column}, 'start of month')",
    "year": "date({column}, 'start of year')",
    "decade": "printf('%04d-01-01', max(1, strftime('%Y', {column}) / 10 * 10))",
    "century": "printf('%04d-01-01', max(1, strftime('%Y', {column}) / 100 * 100))",
}


@dataclass(frozen=True)
class Statement:
    """SQL with named parameters, and their values as the texts that a URL has."""

    sql: str
    parameters: dict[str, str]


def of_places(scope: Scope) -> Statement:
    """The drawers of every wing and room in a scope: wing, room, count."""
    return _statement(
        scope,
        select=["wing", "room", "count(*) as count"],
        rest="group by\n  wing,\n  room\norder by\n  count desc,\n  wing,\n  room",
    )


def of_list(what: str, scope: Scope, limit: int, offset: int) -> Statement:
    """A page of a list, as `explore.values` has it.

    Args:
        what: a name of `LISTS`.
        scope: the part of the palace.
        limit, offset: which page.
    """
    columns = LISTS[what]
    return _statement(
        scope,
        select=[
            *columns,
            "count(*) as count",
            "min(filed_at) as first_filed",
            "max(filed_at) as last_filed",
        ],
        rest=f"group by{_SPACE}{_lines(columns)}\norder by\n  count desc,{_SPACE}{_lines(columns)}"
        "\nlimit :n_results offset :next",
        n_results=limit,
        next=offset,
    )


def of_timeline(scope: Scope, unit: str) -> Statement:
    """The buckets of a timeline that hold any drawers: since, count.

    Args:
        scope: the part of the palace, with its date column.
        unit: how long a bucket is, a name of `timeline.UNITS`.
    """
    column = scope.date_column
    bucket = _BUCKETS[unit].format(column=column)
    return _statement(
        scope,
        select=[f"{bucket} as since", "count(*) as count"],
        condition=f"{day_of(column)} between '0001-01-01' and '{LAST}'",
        rest="group by\n  since\norder by\n  since",
    )


def of_source(source_file: str, offset: int) -> Statement:
    """The drawers of a part of a source, in order.

    Args:
        source_file: the full stored path.
        offset: how many of its drawers come before.
    """
    return _statement(
        Scope(source_files=(source_file,)),
        select=["id", "drawer_id", "chunk_index", "text"],
        rest=f"order by\n  chunk_index,\n  id\nlimit {PART} offset :next",
        next=offset,
    )


def of_equal_texts(scope: Scope) -> Statement:
    """Drawers of a scope that have the same text, as far as they have vectors: count, first_id, ids."""
    return _statement(
        scope,
        select=["count(*) as count", "min(id) as first_id", "group_concat(id) as ids"],
        table="drawers\n  join drawer_vectors using (id)",
        rest="group by\n  text_hash\nhaving\n  count(*) > 1\norder by\n  count desc,\n  first_id",
    )


def _statement(
    scope: Scope, select: list[str], rest: str, condition: str = "", table: str = "drawers", **more: int
) -> Statement:
    where, given = scope.where()
    for name, value in given.items():
        # A parameter of the SQL page is a text, which no column's type turns into a number everywhere.
        place = f"cast(:{name} as numeric)" if isinstance(value, int | float) else f":{name}"
        where = re.sub(rf":{name}\b", place, where)
    conditions = [part for part in ("" if where == "1" else where, condition) if part]
    together = "\n  and ".join(conditions)
    narrowed = f"where\n  {together}\n" if conditions else ""
    sql = f"select\n  {_lines(select)}\nfrom\n  {table}\n{narrowed}{rest}"
    parameters = {_short(name): str(value) for name, value in (given | more).items()}
    return Statement(re.sub(r":(scope_\w+)", lambda found: f":{_short(found[1])}", sql), parameters)


def _short(name: str) -> str:
    return name.removeprefix("scope_")


def _lines(parts: Any) -> str:
    return f",{_SPACE}".join(parts)
