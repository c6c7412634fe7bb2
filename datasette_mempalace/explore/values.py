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


def largest(part: Part, column: str, limit: int) -> list[dict[str, Any]]:
    """The values of a column that most drawers have.

    Args:
        part: the part of the palace.
        column: a column of drawers; never from a request.
        limit: how many.
    Returns:
        {value, count}, largest first; drawers without a value are not among them.
    """
    rows = part.rows(
        f"cast({column} as text), count(*)",
        f"and {column} is not null and {column} <> '' group by {column}"
        f" order by count(*) desc, {column} limit :limit",
        limit=limit,
    )
    return [_named(column, value) | {"count": number} for value, number in rows]


def list_values(palace: Palace, what: str, scope: Scope, limit: int, offset: int) -> dict[str, Any]:
    """A page of all values.

    Args:
        palace: the palace.
        what: a name of `LISTS`.
        scope: the part of it to look at.
        limit: how many.
        offset: how many were shown before.
    Returns:
        `total`, `drawers` in all, the `greatest` count, and `rows`, largest first: the columns, `count`, `first_filed` and
        `last_filed`. Drawers without a value are one entry, null.
    """

    def read(part: Part) -> dict[str, Any]:
        columns = ", ".join(LISTS[what])
        cast = ", ".join(f"cast({column} as text)" for column in LISTS[what])
        total, drawers, greatest = part.connection.execute(
            "select count(*), coalesce(sum(number), 0), coalesce(max(number), 0) from"
            f" (select count(*) as number from {part.table} where {part.where} group by {columns})",
            part.parameters,
        ).fetchone()
        rows = part.connection.execute(
            f"select {cast}, count(*), cast(min(filed_at) as text), cast(max(filed_at) as text)"
            f" from {part.indexed} where {part.where} group by {columns}"
            f" order by count(*) desc, {columns} limit :limit offset :offset",
            {**part.parameters, "limit": limit, "offset": offset},
        )
        names = (*LISTS[what], "count", "first_filed", "last_filed")
        return {
            "total": total,
            "drawers": drawers,
            "greatest": greatest,
            "rows": [dict(zip(names, row, strict=True)) for row in rows],
        }

    return kept(palace, f"{what} {limit} {offset}", scope, read)


def _named(column: str, value: str) -> dict[str, Any]:
    return {"value": value, "name": source_name(value)} if column == "source_file" else {"value": value}
