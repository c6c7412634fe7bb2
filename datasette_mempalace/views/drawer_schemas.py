"""The JSON of a drawer, of similar drawers and of duplicates, as JSON Schema; beside `schemas`, whose words it uses."""

from __future__ import annotations

from .schemas import (
    CHUNK,
    COUNT,
    DATES,
    DISTANCE,
    FLAG,
    INTEGER,
    NULLABLE_COUNT,
    NULLABLE_TEXT,
    PLACE,
    SCHEMAS,
    SHARE,
    TEXT,
    URL,
    WHERE,
    Schema,
    items,
    nullable,
    record,
    ref,
)

NUMBER: Schema = {"type": "number"}
TIMES: Schema = {"type": "object", "additionalProperties": NUMBER}
NUMBERED: dict[str, Schema] = {**PLACE, "chunk_total": NULLABLE_COUNT, "heading": NULLABLE_TEXT, "url": URL}
BESIDE = nullable(
    record("A drawer before or after, and how many characters both share.", **CHUNK, url=URL, overlap=COUNT)
)
_IN_FORCE = SCHEMAS["Answer"]["properties"]["filters"]
FILTERS: Schema = {
    **_IN_FORCE,
    "required": [name for name in _IN_FORCE["required"] if name != "max_distance"],
}

DRAWER_SCHEMAS: dict[str, Schema] = {
    "Drawer": record(
        "A drawer among its neighbours, with its copies, closets, facts and similar drawers.",
        ok={"const": True},
        drawer=record(
            "Every column of its row.",
            **CHUNK,
            **WHERE,
            text=TEXT,
            source_file=NULLABLE_TEXT,
            parent_drawer_id=NULLABLE_TEXT,
            hall=NULLABLE_TEXT,
            added_by=NULLABLE_TEXT,
            **DATES,
            metadata={"type": "object"},
            url=URL,
        ),
        place=COUNT,
        total=COUNT,
        previous=BESIDE,
        next=BESIDE,
        outline=items(
            record(
                "A heading and the first drawer under it.",
                heading=TEXT,
                **CHUNK,
                url=URL,
                place=COUNT,
                current=FLAG,
            )
        ),
        outline_cut=FLAG,
        copies=items(record("A drawer with the same text.", **PLACE, chunk_total=NULLABLE_COUNT, url=URL)),
        closets=items(record("A closet of its source.", id=INTEGER, text=TEXT, points_here=FLAG)),
        facts=items(
            record(
                "A fact of an imported knowledge graph.",
                id=INTEGER,
                subject=NULLABLE_TEXT,
                predicate=NULLABLE_TEXT,
                object=NULLABLE_TEXT,
                valid_from=NULLABLE_TEXT,
                valid_to=NULLABLE_TEXT,
                confidence=nullable(NUMBER),
                why={"enum": ["drawer", "source", "name"]},
            )
        ),
        similar=nullable(items(ref("SimilarDrawer"))),
        no_similar=NULLABLE_TEXT,
    ),
    "SimilarDrawer": record(
        "A drawer whose vector lies near another's.",
        rank={"type": "integer", "minimum": 1},
        **NUMBERED,
        text=TEXT,
        snippet=TEXT,
        similarity=SHARE,
        distance=DISTANCE,
        same_source=FLAG,
        same_text=FLAG,
        **DATES,
        hall=NULLABLE_TEXT,
        added_by=NULLABLE_TEXT,
    ),
    "Similar": record(
        "The drawers most like one.",
        ok={"const": True},
        drawer=record("The drawer asked about.", **NUMBERED),
        filters=_IN_FORCE,
        n_results=COUNT,
        other_sources_first=FLAG,
        in_scope=COUNT,
        results=items(ref("SimilarDrawer")),
        vector={"enum": ["stored", "embedded"]},
        engine=SCHEMAS["Answer"]["properties"]["engine"],
        vector_note=NULLABLE_TEXT,
        timings_ms=TIMES,
    ),
    "Duplicates": record(
        "Clusters of drawers that say the same, and what was looked at.",
        ok={"const": True},
        filters=FILTERS,
        threshold=SHARE,
        min_characters=COUNT,
        n_results=COUNT,
        in_scope=COUNT,
        without_vector=COUNT,
        looked_at=COUNT,
        complete=FLAG,
        next=NULLABLE_TEXT,
        next_url=nullable(URL),
        found=COUNT,
        drawers_found=COUNT,
        clusters=items(
            record(
                "Drawers that say the same.",
                size=COUNT,
                kind={"enum": ["exact", "near"]},
                characters=COUNT,
                snippet=TEXT,
                members=items(
                    record(
                        "One of them, held against the first.",
                        **NUMBERED,
                        filed_at=NULLABLE_TEXT,
                        same_text=FLAG,
                        similarity=nullable(SHARE),
                    )
                ),
            )
        ),
        timings_ms=TIMES,
    ),
}
