"""Whole lists of a palace or a part of it, largest first: its wings, rooms, sources, halls, authors; as page, JSON and CSV."""

from __future__ import annotations

from typing import Any

from ..explore.values import LISTS, list_values
from ..palace import Palace
from ..parameter_values import read_whole
from ..registry import run
from ..request import SearchRequest, parse_request, request_parameters
from ..scope import scope_as_json
from ..text import source_name
from . import present
from .access import parameters_of
from .api import data_links
from .csv_data import Table, as_csv, csv_of_palace
from .data import NEXT, data_of_palace
from .frame import page_of_palace
from .links import Links
from .operation import Operation, described
from .parameters import SCOPE
from .pictures import named
from .statements import of_list

PER_PAGE = 100
MOST_ROWS = 1_000
MOST_OFFSET = 10**9
NOUNS = {"wings": "wing", "rooms": "room", "sources": "source", "halls": "hall", "authors": "author"}


@page_of_palace
async def list_page(datasette: Any, request: Any, palace: Palace, context: dict[str, Any]) -> dict[str, Any]:
    """All wings, rooms, sources, halls or authors of a palace or a part of it, largest first."""
    what = request.url_vars["what"]
    found, asked, limit, offset = await _list(datasette, request, palace)
    links = Links(datasette, context["database"], request_parameters(asked, palace.settings))
    filters = present.filters_of(asked)
    shown = offset + len(found["rows"])
    return {
        "template": "mempalace_list.html",
        "what": what,
        "noun": NOUNS[what],
        "named": found["named"],
        "drawers": found["drawers"],
        "rows": [_list_row(what, row, found["greatest"], links) for row in found["rows"]],
        "chips": present.chips(filters, links),
        "conditions": present.conditions(filters),
        "part_url": links.to(links.pairs),
        "json_url": links.beside(what, ".json"),
        "csv_url": links.beside(what, ".csv"),
        "sql_url": links.sql(of_list(what, asked.scope, limit, offset)),
        "first_url": links.beside(what) if offset else None,
        "next_url": links.beside(what, next=str(shown)) if shown < found["total"] else None,
    }


@described(
    Operation(
        "A whole list of wings, rooms, sources, halls or authors.",
        "List",
        (*SCOPE, "n_results", "next"),
        headers=NEXT,
    )
)
@data_of_palace
async def list_json(datasette: Any, request: Any, database: str, palace: Palace) -> dict[str, Any]:
    """A list as JSON, a page of at most `n_results` at a time."""
    found, asked, limit, offset = await _list(datasette, request, palace)
    what = request.url_vars["what"]
    links = data_links(datasette, request, database, asked, palace, "")
    shown = offset + len(found["rows"])
    more = shown < found["total"]
    going_on = {"next": str(shown)} | ({"n_results": str(limit)} if limit != PER_PAGE else {})
    return {
        "filters": scope_as_json(asked.scope),
        "total": found["total"],
        "drawers": found["drawers"],
        "rows": [{**row, "url": _url_of(what, row, links)} for row in found["rows"]],
        "next": shown if more else None,
        "next_url": links.beside(what, ".json", **going_on) if more else None,
    }


@described(as_csv("The same list as CSV.", (*SCOPE, "n_results", "next")))
@csv_of_palace
async def list_csv(datasette: Any, request: Any, database: str, palace: Palace) -> Table:
    """A list as CSV."""
    found, _, _, _ = await _list(datasette, request, palace)
    what = request.url_vars["what"]
    return Table(what, (*LISTS[what], "count", "first_filed", "last_filed"), found["rows"])


async def _list(
    datasette: Any, request: Any, palace: Palace
) -> tuple[dict[str, Any], SearchRequest, int, int]:
    """A part of the list that a URL names, the state, how many entries are asked for, and how many come before."""
    given = dict(parameters_of(request))
    offset = read_whole("next", given, 0, MOST_OFFSET, 0)
    limit = read_whole("n_results", given, 1, MOST_ROWS, PER_PAGE)
    state = {name: values for name, values in given.items() if name not in ("next", "n_results", "q")}
    asked = parse_request(state, palace.settings, allow_blank=True)
    what = request.url_vars["what"]
    found = await run(datasette, list_values, palace, what, asked.scope, limit, offset)
    return found, asked, limit, offset


def _list_row(what: str, row: dict[str, Any], greatest: int, links: Links) -> dict[str, Any]:
    value = row[LISTS[what][-1]]
    name = source_name(value) if what == "sources" else value
    return {
        **row,
        "name": named(name, NOUNS[what]),
        "title": value if what == "sources" else None,
        "url": _url_of(what, row, links),
        "wing_url": links.place(row["wing"]) if what == "rooms" else None,
        "share": row["count"] / (greatest or 1),
        "first_day": present.day(row["first_filed"]),
        "last_day": present.day(row["last_filed"]),
    }


def _url_of(what: str, row: dict[str, Any], links: Links) -> str:
    """The page of what an entry of a list stands for."""
    if what == "wings":
        return links.place(row["wing"])
    if what == "rooms":
        return links.place(row["wing"], row["room"])
    if what == "sources" and row["source_file"]:
        return links.source(row["source_file"])
    return links.having(LISTS[what][0], row[LISTS[what][0]])
