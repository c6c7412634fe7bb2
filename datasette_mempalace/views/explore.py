"""What a palace or a part of it holds, and its timeline, as JSON and CSV: the data of the palace's page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..explore.days import timeline_of
from ..explore.holdings import holdings
from ..palace import Palace
from ..registry import run
from ..request import SearchRequest, parse_request
from ..scope import scope_as_json
from ..searcher import run_search
from ..status import vectors_state
from .access import may_read_closets, parameters_of
from .api import data_links
from .csv_data import Table, as_csv, csv_of_palace
from .data import data_of_palace
from .links import Links
from .operation import Operation, described
from .parameters import SCOPE


@described(Operation("What a palace or a part of it holds.", "Overview", SCOPE))
@data_of_palace
async def overview_json(datasette: Any, request: Any, database: str, palace: Palace) -> dict[str, Any]:
    """What a palace or a part of it holds."""
    asked = parse_request(parameters_of(request), palace.settings, allow_blank=True)
    closet_texts = await may_read_closets(datasette, request, database)
    found = await run(datasette, holdings, palace, asked.scope, closet_texts)
    links = data_links(datasette, request, database, asked, palace, "")
    return {
        "filters": scope_as_json(asked.scope),
        **await run(datasette, vectors_state, palace),
        **found,
        "wings": [
            {
                **wing,
                "url": links.place(wing["wing"]),
                "rooms": [{**room, "url": links.place(wing["wing"], room["room"])} for room in wing["rooms"]],
            }
            for wing in found["wings"]
        ],
        "largest_sources": [
            {**source, "url": links.source(source["value"])} for source in found["largest_sources"]
        ],
        "source_topics": [
            {
                **source,
                "url": links.source(source["source_path"]) if source["source_path"] else None,
                "topics": [
                    {**topic, "url": links.drawer(topic) if topic["drawer_id"] else None}
                    for topic in source["topics"]
                ],
            }
            for source in found["source_topics"]
        ],
        "timeline": with_urls(found["timeline"], links),
        "latest": [{**drawer, "url": links.drawer(drawer)} for drawer in found["latest"]],
    }


@described(
    Operation("When drawers, or the candidates of a search, were filed.", "DatedCounts", ("q", *SCOPE))
)
@data_of_palace
async def timeline_json(datasette: Any, request: Any, database: str, palace: Palace) -> dict[str, Any]:
    """When the drawers of a part, or with `q` the candidates of a search, were filed, written, or what day they are about."""
    found, asked = await _timeline(datasette, request, database, palace)
    counts = "candidates" if asked.query else "drawers"
    return {"counts": counts, "filters": scope_as_json(asked.scope), **found}


@described(as_csv("The same timeline as CSV, a row for each stretch of time.", ("q", *SCOPE)))
@csv_of_palace
async def timeline_csv(datasette: Any, request: Any, database: str, palace: Palace) -> Table:
    """The buckets of a timeline as CSV."""
    found, _ = await _timeline(datasette, request, database, palace)
    return Table("timeline", ("since", "before", "count", "url"), found["buckets"])


async def _timeline(
    datasette: Any, request: Any, database: str, palace: Palace
) -> tuple[dict[str, Any], SearchRequest]:
    """The timeline that a URL asks for, and the request that it is."""
    asked = parse_request(parameters_of(request), palace.settings, allow_blank=True)
    links = data_links(datasette, request, database, asked, palace, "")
    if asked.query:
        answer = await run(datasette, run_search, palace, replace(asked, facets=True, context=False))
        return with_urls(answer["timeline"], links), asked
    return with_urls(await run(datasette, timeline_of, palace, asked.scope), links), asked


def with_urls(timeline: dict[str, Any], links: Links) -> dict[str, Any]:
    """A timeline whose buckets say which page shows them alone."""
    return {
        **timeline,
        "buckets": [
            {**bucket, "url": links.narrowed(bucket["since"], bucket["before"], timeline["date_column"])}
            for bucket in timeline["buckets"]
        ],
    }
