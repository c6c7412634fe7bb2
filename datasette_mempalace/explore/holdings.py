"""What a palace or a part of it holds: drawers, wings, rooms, sources, halls, authors, time, topics."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..palace import Palace
from ..scope import Scope
from .days import read_timeline
from .latest import latest_sources
from .reading import Part, kept
from .topics import shown, source_topics, to_ask
from .values import largest

MOST_WINGS = 300
MOST_ROOMS = 60  # of one wing
LARGEST = 8


def holdings(palace: Palace, scope: Scope, closet_texts: bool = True) -> dict[str, Any]:
    """Count and list what lies in a scope.

    Args:
        palace: the palace.
        scope: the part of it to look at.
        closet_texts: whether topics may come from closets; else they come from headings.
    Returns:
        drawers, closets, and how many wings, rooms (of a wing each) and sources there are; `without_wing`, the drawers
        that lie in none; `wings`, largest first, each with its rooms, "none" among them; `largest_sources`, `halls` and `authors`; `timeline`; `latest`, the sources filed last;
        `topics` worth asking about, and `source_topics` of the largest sources. Nobody may change it.
    """
    what = "holdings" if closet_texts else "holdings without texts of closets"
    return kept(palace, what, scope, partial(_read, closet_texts=closet_texts))


def count_drawers(palace: Palace) -> int:
    """How many drawers a palace has."""
    with palace.reader() as connection:
        return int(connection.execute("select count(*) from drawers").fetchone()[0])


def _read(part: Part, closet_texts: bool) -> dict[str, Any]:
    wings = _wings(part)
    drawers = sum(wing["count"] for wing in wings)
    sources, source_count = largest(part, "source_file", 5 * LARGEST)
    topics = source_topics(part, [source["value"] for source in sources], closet_texts)
    return {
        "drawers": drawers,
        "wing_count": sum(wing["wing"] is not None for wing in wings),
        "room_count": sum(wing["room_count"] for wing in wings),
        "source_count": source_count,
        "without_wing": sum(wing["count"] for wing in wings if wing["wing"] is None),
        "first_filed": _filed(part, "min"),
        "last_filed": _filed(part, "max"),
        "closet_count": _count_closets(part),
        "wings": wings[:MOST_WINGS],
        "largest_sources": sources[:LARGEST],
        "halls": largest(part, "hall", LARGEST + 1)[0],
        "authors": largest(part, "added_by", LARGEST + 1)[0],
        "timeline": read_timeline(part),
        "latest": latest_sources(part, drawers),
        "topics": to_ask(topics),
        "source_topics": shown(topics),
    }


def _filed(part: Part, end: str) -> str | None:
    """The least ("min") or the greatest ("max") moment of filing, as it is stored."""
    return part.rows(f"cast({end}(filed_at) as text)")[0][0]  # type: ignore[no-any-return]


def _wings(part: Part) -> list[dict[str, Any]]:
    rows = part.rows(
        "cast(wing as text), cast(room as text), count(*)",
        "group by wing, room order by count(*) desc, room",
    )
    wings: dict[str | None, dict[str, Any]] = {}
    for wing, room, number in rows:
        entry = wings.setdefault(
            wing, {"wing": wing, "count": 0, "room_count": 0, "without_room": 0, "rooms": []}
        )
        entry["count"] += number
        if room is None:
            entry["without_room"] = number
        else:
            entry["room_count"] += 1
        if len(entry["rooms"]) < MOST_ROOMS:
            entry["rooms"].append({"room": room, "count": number})
    return sorted(wings.values(), key=lambda entry: (-entry["count"], entry["wing"] or ""))


def _count_closets(part: Part) -> int | None:
    """The closets of the part; None where it is bound by what closets do not have."""
    if part.scope != part.scope.for_closets():
        return None
    query = f"select count(*) from closets where {part.where}"
    return int(part.connection.execute(query, part.parameters).fetchone()[0])
