"""What stands around one drawer: its neighbours in the source, the source's outline, its copies and its closets.

A handful of statements, however large the source; of a source with thousands of drawers those near are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .answer import chunk_totals, place_of
from .context import overlap
from .equal_texts import copies_of
from .rows import read_rows
from .words import quoted

NEAR = 4  # chunks on each side that are linked by number
OUTLINE_REACH = 1_000  # drawers on each side that are looked through for headings
COPIES = 20
CLOSETS = 5


@dataclass(frozen=True)
class Neighbour:
    """The drawer before or after one.

    Attributes:
        row: its row.
        shared: how many characters its end and this drawer's start, or its start and this drawer's end, have in common.
    """

    row: dict[str, Any]
    shared: int


@dataclass(frozen=True)
class Around:
    """What stands around a drawer.

    Attributes:
        place: which drawer of its source it is, counted from 1.
        total: how many drawers the source has.
        previous, next: the drawers before and after it.
        near: the few before and after it, itself included: id, drawer_id, chunk_index, place.
        outline: the source's headings in order, each with the first drawer under it: heading, id, drawer_id,
            chunk_index, place, current.
        outline_cut: whether the source goes on where the outline was not looked for.
        copies: the drawers elsewhere with the same text, at most `COPIES`, and one more where there are more.
        closets: the closets of its source, or that point to it: id, text, points_here.
    """

    place: int
    total: int
    previous: Neighbour | None = None
    next: Neighbour | None = None
    near: list[dict[str, Any]] = field(default_factory=list)
    outline: list[dict[str, Any]] = field(default_factory=list)
    outline_cut: bool = False
    copies: list[dict[str, Any]] = field(default_factory=list)
    closets: list[dict[str, Any]] = field(default_factory=list)


def read_around(connection: Any, drawer: Mapping[str, Any]) -> Around:
    """What stands around a drawer.

    Args:
        connection: an open connection to the palace.
        drawer: its row.
    """
    flow = _flow(connection, drawer)
    mine = next((each for each in flow if each["id"] == drawer["id"]), {"place": 1, "total": 1})
    place, total = mine["place"], mine["total"]
    by_place = {each["place"]: each for each in flow}
    sides = {name: by_place.get(place + step) for name, step in (("previous", -1), ("next", 1))}
    copies = copies_of(connection, drawer["id"], COPIES + 1)
    rows = read_rows(connection, [*copies, *(side["id"] for side in sides.values() if side)])
    totals = chunk_totals(connection, {rows[each]["source_file"] for each in copies if each in rows})
    text = drawer["text"]
    neighbours = {
        name: Neighbour(row, overlap(row["text"], text) if name == "previous" else overlap(text, row["text"]))
        for name, side in sides.items()
        if side and (row := rows.get(side["id"]))
    }
    return Around(
        place=place,
        total=total,
        previous=neighbours.get("previous"),
        next=neighbours.get("next"),
        near=[each for each in flow if abs(each["place"] - place) <= NEAR],
        outline=_outline(flow, place),
        outline_cut=bool(flow) and (flow[0]["place"] > 1 or flow[-1]["place"] < total),
        copies=[
            {**place_of(rows[each]), "chunk_total": totals.get(rows[each]["source_file"])}
            for each in copies
            if each in rows
        ],
        closets=_closets(connection, drawer),
    )


def _flow(connection: Any, drawer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The drawers of the same source in order, as far as the outline reaches, each with its heading."""
    # As search takes a passage together: chunks of one split drawer, else of one source.
    column = next((name for name in ("parent_drawer_id", "source_file") if drawer[name]), "id")
    found = connection.execute(
        _FLOW.format(column=column),
        {"value": drawer[column], "id": drawer["id"], "reach": OUTLINE_REACH},
    )
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def _outline(flow: list[dict[str, Any]], place: int) -> list[dict[str, Any]]:
    """The headings in order; one that goes on over several drawers stands once."""
    outline: list[dict[str, Any]] = []
    for each in flow:
        heading = each["heading"]
        if (
            isinstance(heading, str)
            and heading.strip()
            and (not outline or outline[-1]["heading"] != heading)
        ):
            outline.append({key: each[key] for key in ("heading", "id", "drawer_id", "chunk_index", "place")})
    before = [number for number, each in enumerate(outline) if each["place"] <= place]
    for number, each in enumerate(outline):
        each["current"] = bool(before) and number == before[-1]
    return outline


def _closets(connection: Any, drawer: Mapping[str, Any]) -> list[dict[str, Any]]:
    if drawer["source_file"]:
        where, value = "source_file = :value", drawer["source_file"]
    else:  # without a source, whatever closet names it
        where = "id in (select rowid from closets_fts where closets_fts match :value)"
        value = quoted(drawer["drawer_id"].replace("\0", " "))
    rows = connection.execute(
        f"select id, cast(text as text) from closets where {where} order by id limit :limit",
        {"value": value, "limit": CLOSETS},
    ).fetchall()
    closets = [
        {"id": row_id, "text": text, "points_here": _points_to(text, drawer["drawer_id"])}
        for row_id, text in rows
    ]
    return [closet for closet in closets if closet["points_here"] or drawer["source_file"]]


def _points_to(text: str, drawer_id: str) -> bool:
    return any(
        drawer_id in [name.strip() for name in line.partition("→")[2].split(",")]
        for line in text.splitlines()
    )


# {column} is one of three names of our own. The places come from an index alone; headings are read of those near.
_FLOW = """
with places as materialized (
  select
    id,
    row_number() over (order by chunk_index, id) as place,
    count(*) over () as total
  from drawers
  where {column} = :value
)
select
  places.id,
  cast(drawer_id as text) as drawer_id,
  cast(chunk_index as integer) as chunk_index,
  place,
  total,
  iif(json_valid(metadata), json_extract(metadata, '$.heading'), null) as heading
from
  places
  join drawers on drawers.id = places.id
where
  abs(place - (select place from places where id = :id)) <= :reach
order by
  place
"""
