"""What a palace, or a part of it, holds, in a reader's words: every element a link to the drawers behind it. Pure."""

from __future__ import annotations

from typing import Any

from ..scope import Scope
from . import present
from .links import Links
from .pictures import histogram, named, rooms_of, treemaps
from .statements import of_places, of_timeline

TABLE_WINGS = 40
TABLE_ROOMS = 12
DATE_COLUMNS = {"filed_at": "filed", "authored_at": "written", "content_date": "about"}
TIMES = {
    "filed_at": "Filed over time",
    "authored_at": "Written over time",
    "content_date": "What days it is about",
}


def overview_view(found: dict[str, Any], scope: Scope, links: Links) -> dict[str, Any]:
    """Holdings for the template.

    Args:
        found: as `explore.holdings` reads them; not changed.
        scope: the part that they are of.
        links: out of this state.
    """
    buckets = found["timeline"]["buckets"]
    entries = found["wing_count"] + bool(found["without_wing"])
    return {
        **found,
        "asks": [{"text": topic, "url": links.with_value("q", topic)} for topic in found["topics"]],
        "topic_rows": [_topics_row(source, links) for source in found["source_topics"]],
        "pictures": treemaps(found["wings"], entries, found["drawers"], links),
        "wing_rows": [_wing_row(wing, links) for wing in found["wings"][:TABLE_WINGS]],
        "more_wings": max(0, entries - TABLE_WINGS),
        "one_wing": entries == 1,
        "first_day": present.day(found["first_filed"]),
        "last_day": present.day(found["last_filed"]),
        "time": timeline_view(found["timeline"], links, scope) if buckets or found["drawers"] else None,
        "sources": _shares(found["largest_sources"], links, "source_file"),
        # One value says nothing that sets drawers apart.
        "hall_rows": _shares(found["halls"], links, "hall") if len(found["halls"]) > 1 else [],
        "author_rows": _shares(found["authors"], links, "added_by") if len(found["authors"]) > 1 else [],
        "latest_rows": [_latest_row(drawer, links) for drawer in found["latest"]],
        "lists": {name: links.beside(name) for name in ("wings", "rooms", "sources", "halls", "authors")},
        "json_url": links.beside("overview", ".json"),
        "csv_url": links.beside("rooms", ".csv"),
        "sql_url": links.sql(of_places(scope)),
    }


def timeline_view(timeline: dict[str, Any], links: Links, scope: Scope | None = None) -> dict[str, Any]:
    """A timeline for the template: its picture, the other dates it can be seen by, what has no date.

    Args:
        timeline: as `timeline.as_json` has it.
        links: out of this state.
        scope: the part that is counted; None where it counts candidates, which no plain statement finds.
    """
    column = timeline["date_column"]
    return {
        "heading": TIMES[column],
        "picture": histogram(timeline, links),
        "dated": timeline["dated"],
        "undated": timeline["undated"],
        "undated_url": links.to([*links.pairs, (f"{column}__isnull", "1")]) if timeline["undated"] else None,
        "unreadable": timeline["unreadable"],
        "columns": [
            {"name": name, "url": None if other == column else links.with_value("date_column", other)}
            for other, name in DATE_COLUMNS.items()
        ],
        "json_url": links.beside("timeline", ".json"),
        "csv_url": links.beside("timeline", ".csv"),
        "sql_url": links.sql(of_timeline(scope, timeline["unit"])) if scope else None,
    }


def _wing_row(wing: dict[str, Any], links: Links) -> dict[str, Any]:
    rooms = wing["rooms"][:TABLE_ROOMS]
    return {
        "wing": wing["wing"],
        "count": wing["count"],
        "url": links.place(wing["wing"]),
        "rooms": [
            {"room": room["room"], "count": room["count"], "url": links.place(wing["wing"], room["room"])}
            for room in rooms
        ],
        "more_rooms": rooms_of(wing) - len(rooms),
    }


def _shares(values: list[dict[str, Any]], links: Links, column: str) -> list[dict[str, Any]]:
    """Values with bars, as wide as their share of the largest."""
    most = values[0]["count"] if values else 1
    return [
        {
            "name": named(value.get("name") or value["value"], column),
            "title": value["value"],
            "count": value["count"],
            "share": value["count"] / most,
            "url": links.source(value["value"])
            if column == "source_file"
            else links.having(column, value["value"]),
        }
        for value in values
    ]


def _topics_row(source: dict[str, Any], links: Links) -> dict[str, Any]:
    """A source with its topics, each leading to its drawer, else to the source."""
    url = links.source(source["source_path"]) if source["source_path"] else None
    topics = [
        {"text": topic["text"], "url": links.drawer(topic) if topic["drawer_id"] else url}
        for topic in source["topics"]
    ]
    return {**source, "url": url, "topics": topics}


def _latest_row(drawer: dict[str, Any], links: Links) -> dict[str, Any]:
    return {
        **drawer,
        "url": links.source(drawer["source_path"]) if drawer["source_path"] else links.drawer(drawer),
        "wing_url": links.place(drawer["wing"]),
        "room_url": links.place(drawer["wing"], drawer["room"]),
        "filed": present.day(drawer["filed_at"]),
        "label": drawer["source_file"] or f"Drawer {drawer['id']}",
    }
