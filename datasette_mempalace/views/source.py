"""One source read from start to end, in parts when it is long: the page and its JSON."""

from __future__ import annotations

from typing import Any

from ..errors import BadInput
from ..explore.source import PART, SourceAsked, read_source
from ..palace import Palace
from ..parameter_values import read_whole
from ..registry import run
from ..request import SearchRequest
from ..text import clean_text
from . import present
from .access import parameters_of
from .api import data_links
from .data import NEXT, data_of_palace
from .frame import page_of_palace
from .links import Links, source_path
from .operation import Operation, described
from .statements import of_source

MOST_OFFSET = 10**9


@page_of_palace
async def source_page(
    datasette: Any, request: Any, palace: Palace, context: dict[str, Any]
) -> dict[str, Any]:
    """A source read from start to end."""
    source = await run(datasette, read_source, palace, _asked_source(request))
    links = Links(datasette, context["database"], [("source_file", source["source_path"])])
    last = source["offset"] + len(source["parts"])
    return {
        "template": "mempalace_source.html",
        "form": {**context["form"], "source_file": source["source_path"], "narrowed": True},
        "source": source,
        "places": [
            {
                **place,
                "wing_url": links.place(place["wing"]),
                "room_url": links.place(place["wing"], place["room"]),
            }
            for place in source["places"]
        ],
        "first_day": present.day(source["first_filed"]),
        "last_day": present.day(source["last_filed"]),
        "parts": [{**part, "url": links.drawer(part)} for part in source["parts"]],
        "outline": [
            {**entry, "url": _part_url(datasette, context["database"], source, entry["number"])}
            for entry in source["outline"]
        ],
        "shown": f"{source['offset'] + 1:,} to {last:,}" if last - source["offset"] > 1 else f"{last:,}",
        "parted": last < source["drawers"] or source["offset"] > 0,
        "scope_url": links.to(links.pairs),
        "table_url": links.table([("source_file__exact", source["source_path"]), ("_sort", "chunk_index")]),
        "json_url": links.beside("source", ".json"),
        "sql_url": links.sql(of_source(source["source_path"], source["offset"])),
        **{
            f"{way}_url": _offset_url(datasette, context["database"], source, source[way])
            for way in ("previous", "next")
        },
    }


@described(Operation("A source, read from start to end.", "Source", ("source_file", "next"), headers=NEXT))
@data_of_palace
async def source_json(datasette: Any, request: Any, database: str, palace: Palace) -> dict[str, Any]:
    """A part of a source as JSON."""
    source = await run(datasette, read_source, palace, _asked_source(request))
    links = data_links(datasette, request, database, SearchRequest(query=""), palace, "")
    more = {} if source["next"] is None else {"next": str(source["next"])}
    path = source_path(datasette, database, source["source_path"], ".json", **more)
    return {
        **source,
        "parts": [{**part, "url": links.drawer(part)} for part in source["parts"]],
        "next_url": datasette.absolute_url(request, path) if more else None,
    }


def _asked_source(request: Any) -> SourceAsked:
    given = [value for value in request.args.getlist("source_file") if value]
    if len(given) != 1:
        raise BadInput("source_file is missing: give it one full path, as drawers have it in source_file.")
    offset = read_whole("next", parameters_of(request), 0, MOST_OFFSET, 0)
    return SourceAsked(clean_text(given[0])[0], offset)


def _part_url(datasette: Any, database: str, source: dict[str, Any], number: int) -> str:
    """Where a drawer of a source stands: on this page, or on the page of the source that it begins on."""
    begin = source["offset"]
    if begin < number <= begin + len(source["parts"]):
        return f"#part-{number}"
    return f"{_offset_url(datasette, database, source, (number - 1) // PART * PART)}#part-{number}"


def _offset_url(datasette: Any, database: str, source: dict[str, Any], offset: int | None) -> str | None:
    if offset is None:
        return None
    return source_path(
        datasette, database, source["source_path"], **({"next": str(offset)} if offset else {})
    )
