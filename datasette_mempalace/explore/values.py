"""The names in one column of a part of the palace, each with its drawers: wings, rooms, sources, halls, authors."""

from __future__ import annotations

from typing import Any

from ..palace import Palace
from ..scope import Scope
from ..text import source_name
from .reading import Part, kept

# What a list is called, and the columns that its entries are told apart by.
LISTS = {
    "wings": ("wing",),
    "rooms": ("wing", "room"),
    "sources": ("source_file",),
    "halls": ("hall",),
    "authors": ("added_by",),
}


def largest(part: Part, column: str, limit: int) -> tuple[list[dict[str, Any]], int]:
    """The values of a column that most drawers have.

    Args:
        part: the part of the palace.
        column: a column of drawers; never from a request.
        limit: how many.
    Returns:
        {value, count}, largest first, and how many values there are; drawers without a value are not among them.
    """
    # Greater than '' is neither null nor empty: one comparison a row, for every row of the index.
    rows = part.rows(
        f"cast({column} as text), count(*), count(*) over ()",
        f"and {column} > '' group by {column} order by count(*) desc, {column} limit :limit",
        limit=limit,
    )
    values = [_named(column, value) | {"count": number} for value, number, _ in rows]
    return values, rows[0][2] if rows else 0


def list_values(palace: Palace, what: str, scope: Scope, limit: int, offset: int) -> dict[str, Any]:
    """A page of all values.

    Args:
        palace: the palace.
        what: a name of `LISTS`.
        scope: the part of it to look at.
        limit: how many.
        offset: how many were shown before.
    Returns:
        `total`, how many of them are `named`, `drawers` in all, the `greatest` count, and `rows`, largest first: the columns, `count`, `first_filed` and
        `last_filed`. Drawers without a value are one entry, null.
    """

    def read(part: Part) -> dict[str, Any]:
        rows = part.connection.execute(
            _page(part, LISTS[what]), {**part.parameters, "limit": limit, "offset": offset}
        ).fetchall()
        names = (*LISTS[what], "count", "first_filed", "last_filed")
        total, named, drawers, greatest = rows[0][:4]
        return {
            "total": total,
            "named": named,
            "drawers": drawers,
            "greatest": greatest,
            "rows": [dict(zip(names, row[5:], strict=True)) for row in rows if row[4]],
        }

    return kept(palace, f"{what} {limit} {offset}", scope, read)


def _page(part: Part, columns: tuple[str, ...]) -> str:
    """A statement for a page of values, each row after the totals of all of them, which come even where the page is empty."""
    names = ", ".join(columns)
    grouped = f"{names}, count(*) as number"
    first, last = "first_filed", "last_filed"
    if part.scope.is_everything:  # an index has each value's dates at hand: only those shown are looked up
        same = " and ".join(f"drawers.{column} is page.{column}" for column in columns)
        first, last = (f"(select {end}(filed_at) from drawers where {same})" for end in ("min", "max"))
    else:
        grouped += ", min(filed_at) as first_filed, max(filed_at) as last_filed"
    texts = ", ".join(f"cast(page.{column} as text)" for column in columns)
    return f"""
        with entries as materialized (select {grouped} from {part.table} where {part.where} group by {names}),
        totals as (select count(*), count({columns[-1]}), coalesce(sum(number), 0), coalesce(max(number), 0) from entries),
        page as (select true as present, * from entries order by number desc, {names} limit :limit offset :offset)
        select totals.*, present, {texts}, number, cast({first} as text), cast({last} as text)
        from totals left join page on true order by number desc, {names}
    """


def _named(column: str, value: str) -> dict[str, Any]:
    return {"value": value, "name": source_name(value)} if column == "source_file" else {"value": value}
