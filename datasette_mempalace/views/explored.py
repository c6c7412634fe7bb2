"""The JSON of the pages to look around, as JSON Schema; what the keys mean stands in `docs/pages.md`."""

from __future__ import annotations

from .schemas import (
    CHUNK,
    COUNT,
    FILED,
    FILTERS_IN_FORCE,
    NAMED,
    NULLABLE_COUNT,
    NULLABLE_TEXT,
    OF_SOURCE,
    TEXT,
    URL,
    WHERE,
    Schema,
    items,
    nullable,
    record,
)

_COUNTED = record("A value and how many drawers have it.", value=TEXT, count=COUNT)
_BUCKET = record("Some days that are counted together.", since=TEXT, before=TEXT, count=COUNT, url=URL)
_TIMELINE: dict[str, Schema] = {
    "date_column": TEXT,
    "unit": TEXT,
    "buckets": items(_BUCKET),
    "dated": COUNT,
    "undated": COUNT,
    "unreadable": COUNT,
}
EXPLORED: dict[str, Schema] = {
    "Overview": record(
        "What a palace or a part of it holds.",
        ok={"const": True},
        filters=FILTERS_IN_FORCE,
        embedder=record("What the vectors are made with.", model=NULLABLE_TEXT, dimension=NULLABLE_COUNT),
        mirror={"enum": ["in step", "behind", "none", "not checked"]},
        drawers=COUNT,
        wing_count=COUNT,
        room_count=COUNT,
        source_count=COUNT,
        without_wing=COUNT,
        closet_count=NULLABLE_COUNT,
        **FILED,
        wings=items(
            record(
                "A wing.",
                wing=NULLABLE_TEXT,
                count=COUNT,
                room_count=COUNT,
                without_room=COUNT,
                url=URL,
                rooms=items(record("A room of it.", room=NULLABLE_TEXT, count=COUNT, url=URL)),
            )
        ),
        largest_sources=items(record("A source.", value=TEXT, name=TEXT, count=COUNT, url=URL)),
        halls=items(_COUNTED),
        authors=items(_COUNTED),
        timeline=record("When the drawers were filed, or another date of theirs.", **_TIMELINE),
        latest=items(
            record(
                "A source that was filed lately, or a drawer without one.",
                **NAMED,
                **WHERE,
                **OF_SOURCE,
                filed_at=NULLABLE_TEXT,
                drawers=COUNT,
                head=TEXT,
                url=URL,
            )
        ),
        topics=items(TEXT),
        source_topics=items(
            record(
                "What a source is about.",
                **OF_SOURCE,
                url=nullable(URL),
                topics=items(
                    record(
                        "A topic and the drawer that it is in.",
                        text=TEXT,
                        drawer_id=NULLABLE_TEXT,
                        url=nullable(URL),
                    )
                ),
            )
        ),
    ),
    "DatedCounts": record(
        "A timeline of drawers, or of a search's candidates.",
        ok={"const": True},
        counts={"enum": ["drawers", "candidates"]},
        filters=FILTERS_IN_FORCE,
        **_TIMELINE,
    ),
    "List": record(
        "Wings, rooms, sources, halls or authors, largest first.",
        ok={"const": True},
        filters=FILTERS_IN_FORCE,
        total=COUNT,
        drawers=COUNT,
        rows=items(
            record(
                "An entry.",
                dict.fromkeys(("wing", "room", "source_file", "hall", "added_by"), NULLABLE_TEXT),
                count=COUNT,
                first_filed=NULLABLE_TEXT,
                last_filed=NULLABLE_TEXT,
                url=URL,
            )
        ),
        next=NULLABLE_COUNT,
        next_url=nullable(URL),
    ),
    "Source": record(
        "A part of a source.",
        ok={"const": True},
        source_path=TEXT,
        source_file=NULLABLE_TEXT,
        drawers=COUNT,
        offset=COUNT,
        previous=NULLABLE_COUNT,
        next=NULLABLE_COUNT,
        next_url=nullable(URL),
        places=items(record("Where drawers of it lie.", **WHERE, count=COUNT)),
        **FILED,
        outline=items(record("A heading and the drawer it stands in, from 1.", heading=TEXT, number=COUNT)),
        parts=items(
            record(
                "A drawer of the source.",
                number=COUNT,
                **CHUNK,
                heading=NULLABLE_TEXT,
                shared=COUNT,
                text=TEXT,
                cut=COUNT,
                url=URL,
            )
        ),
    ),
}
