"""The JSON of the API as JSON Schema: an answer, a hit, an error. Tests hold real answers against it, key by key.

More keys may come with later versions, so nothing is said to be complete.
"""

from __future__ import annotations

from typing import Any

from ..config import RANKINGS, STRATEGIES
from ..timeline import UNITS
from .meanings import MEANINGS

Schema = dict[str, Any]

INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
URL: Schema = {"type": "string", "format": "uri-reference"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}


def nullable(schema: Schema) -> Schema:
    """A schema whose value may be null, too."""
    return {"anyOf": [schema, {"type": "null"}]}


def items(schema: Schema) -> Schema:
    """A list of it."""
    return {"type": "array", "items": schema}


def ref(name: str) -> Schema:
    """Another schema of `SCHEMAS`, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(description: str, optional: dict[str, Schema] | None = None, /, **keys: Schema) -> Schema:
    """An object.

    Args:
        description: what it is.
        optional: schemas of the keys that may be absent.
        keys: schemas of those that are always there.
    """
    return {
        "type": "object",
        "description": description,
        "properties": {**keys, **(optional or {})},
        "required": list(keys),
    }


NULLABLE_TEXT, NULLABLE_COUNT = nullable(TEXT), nullable(COUNT)
DISTANCE: Schema = nullable({"type": "number", "minimum": 0, "maximum": 2})
# Keys that stand together in many answers.
WHERE: dict[str, Schema] = {"wing": NULLABLE_TEXT, "room": NULLABLE_TEXT}
NAMED: dict[str, Schema] = {"id": INTEGER, "drawer_id": TEXT}
OF_SOURCE: dict[str, Schema] = {"source_file": NULLABLE_TEXT, "source_path": NULLABLE_TEXT}
CHUNK: dict[str, Schema] = {**NAMED, "chunk_index": nullable(INTEGER)}
PLACE: dict[str, Schema] = {**NAMED, **WHERE, **OF_SOURCE, **CHUNK}
DATES: dict[str, Schema] = dict.fromkeys(("filed_at", "authored_at", "content_date"), NULLABLE_TEXT)
FILED: dict[str, Schema] = dict.fromkeys(("first_filed", "last_filed"), NULLABLE_TEXT)
FACET = items(
    record(
        "A value among the candidates, null for none, and the search with it chosen or no longer chosen.",
        value=NULLABLE_TEXT,
        count=COUNT,
        selected=FLAG,
        toggle_url=nullable(URL),
    )
)

COUNTED = ("drawers", "closets", "wings", "rooms", "sources", "vectors", "pending_vectors", "changes")
FILTERS_IN_FORCE: Schema = {
    **record(
        "What was in force; column filters stand under their own names, each a list.",
        wing=items(NULLABLE_TEXT),
        room=items(NULLABLE_TEXT),
        source_file=items(NULLABLE_TEXT),
        since=NULLABLE_TEXT,
        before=NULLABLE_TEXT,
        date_column=TEXT,
        ids=NULLABLE_COUNT,
    ),
    "additionalProperties": items(TEXT),
}

SCHEMAS: dict[str, Schema] = {
    "Error": record(
        "What was wrong, what is allowed, what to do.",
        ok={"const": False},
        error=TEXT,
        errors=items(TEXT),
        status=INTEGER,
        title=TEXT,
    ),
    "Status": record(
        "What a palace holds and whether all is well; what names files and hosts is null for most visitors.",
        ok={"const": True},
        database=TEXT,
        url=URL,
        path=NULLABLE_TEXT,
        read_only=FLAG,
        schema_version=TEXT,
        **dict.fromkeys(COUNTED, COUNT),
        **FILED,
        embedder=record(
            "The embedding model.",
            model=NULLABLE_TEXT,
            dimension=NULLABLE_COUNT,
            available=FLAG,
            reason=NULLABLE_TEXT,
        ),
        mirror=record(
            "The Chroma mirror.",
            {"server": NULLABLE_TEXT},
            state={"enum": ["in step", "behind", "none", "not checked"]},
            position=INTEGER,
            path=NULLABLE_TEXT,
            reason=NULLABLE_TEXT,
        ),
        table_function=record("The table in SQL.", available=FLAG, reason=NULLABLE_TEXT),
        well=nullable(FLAG),
        findings=nullable(
            items(
                record(
                    "What one check has found.",
                    check=TEXT,
                    ok=FLAG,
                    says=TEXT,
                    help=NULLABLE_TEXT,
                    cause=NULLABLE_TEXT,
                )
            )
        ),
    ),
    "Place": record("Which drawer it is and where it lies.", **PLACE, url=URL),
    "Hit": record(
        "A drawer that was found, and why.",
        {
            "explain": record(
                "How it was found and what its score is made of.",
                vector=nullable(record("Among those found by meaning.", rank=COUNT, distance=DISTANCE)),
                lexical=nullable(record("Among those found by words.", rank=COUNT)),
                closet=nullable(record("What lifted it.", boost={"type": "number"}, says=NULLABLE_TEXT)),
                ranked_distance=DISTANCE,
                parts=items(
                    record(
                        "A part of the score.",
                        part={"enum": ["similarity", "bm25"]},
                        value={"type": "number"},
                        weight={"type": "number"},
                        adds={"type": "number"},
                    )
                ),
            )
        },
        rank={"type": "integer", "minimum": 1},
        **PLACE,
        url=URL,
        chunk_total=NULLABLE_COUNT,
        heading=NULLABLE_TEXT,
        text=TEXT,
        snippet=TEXT,
        score={"type": "number"},
        similarity=nullable(SHARE),
        distance=DISTANCE,
        effective_distance=DISTANCE,
        bm25_score={"type": "number"},
        bm25_share=SHARE,
        closet_boost={"type": "number"},
        closet_preview=NULLABLE_TEXT,
        matched_via={"enum": ["drawer", "drawer+closet", "bm25_sqlite"]},
        **DATES,
        hall=NULLABLE_TEXT,
        added_by=NULLABLE_TEXT,
        found_by=items({"enum": ["vector", "lexical"]}),
        context=NULLABLE_TEXT,
        context_drawer_ids=items(TEXT),
        drawer_index=NULLABLE_COUNT,
        total_drawers=NULLABLE_COUNT,
        also_in=items(ref("Place")),
        words_found=items(record("A word of the query in the text.", word=TEXT, count=COUNT)),
        words_missing=items(TEXT),
    ),
    "Answer": record(
        "A search's answer.",
        {
            "facets": record("Counts of wings and rooms; absent with facets=0.", wing=FACET, room=FACET),
            "timeline": record(
                "When the candidates were filed, or another date of theirs; absent with facets=0.",
                date_column=TEXT,
                unit={"enum": list(UNITS)},
                buckets=items(record("Some days together.", since=TEXT, before=TEXT, count=COUNT)),
                dated=COUNT,
                undated=COUNT,
                unreadable=COUNT,
            ),
            "explain": record(
                "With explain=1: how the candidates were found.",
                vector_candidates=COUNT,
                lexical_candidates=COUNT,
                both=COUNT,
                words=items(TEXT),
                substrings=items(TEXT),
            ),
        },
        ok={"const": True},
        query=TEXT,
        filters={
            **FILTERS_IN_FORCE,
            "properties": {**FILTERS_IN_FORCE["properties"], "max_distance": {"type": "number"}},
            "required": [*FILTERS_IN_FORCE["required"], "max_distance"],
        },
        ranking={"enum": list(RANKINGS)},
        candidate_strategy={"enum": list(STRATEGIES)},
        n_results=COUNT,
        in_scope=COUNT,
        candidates=COUNT,
        total_before_filter=COUNT,
        vector_candidates=COUNT,
        lexical_candidates=COUNT,
        copies=COUNT,
        results=items(ref("Hit")),
        best=record(
            "Of the best candidates.", score=nullable({"type": "number"}), bm25_score={"type": "number"}
        ),
        weights=record("Of the score's parts.", similarity=SHARE, bm25=SHARE),
        did_you_mean={
            "type": "object",
            "description": "For a wing or room that no drawer has, the names that are near.",
            "propertyNames": {"enum": ["wing", "room"]},
            "additionalProperties": {"type": "object", "additionalProperties": items(TEXT)},
        },
        unknown_words=items(
            record(
                "A word of the query that no drawer has, and those that are near.",
                word=TEXT,
                near=items(record("A word of the palace.", word=TEXT, drawers=COUNT)),
            )
        ),
        unknown_parameters=items(
            record(
                "A parameter of the URL that is not known, and those that are near.",
                name=TEXT,
                near=items(TEXT),
            )
        ),
        next=NULLABLE_TEXT,
        next_url=nullable(URL),
        engine=nullable({"enum": ["exact", "matrix", "chroma"]}),
        vector_status={
            "enum": [
                "ok",
                "mirror_unavailable",
                "disabled",
                "no_vectors",
                "model_missing",
                "model_unavailable",
                "other_model",
            ]
        },
        vector_note=NULLABLE_TEXT,
        fallback=nullable({"const": "bm25_only_via_sqlite"}),
        fallback_reason=NULLABLE_TEXT,
        timings_ms={"type": "object", "additionalProperties": {"type": "number"}},
    ),
    "End": record(
        "The last line of a stream: whether all hits were sent.",
        ok={"const": True},
        hits=COUNT,
        complete=FLAG,
        limit=COUNT,
        fallback_reason=NULLABLE_TEXT,
        message=TEXT,
    ),
}

for _name, _keys in MEANINGS.items():
    for _key, _meaning in _keys.items():
        _properties = SCHEMAS[_name]["properties"]
        _properties[_key] = {**_properties[_key], "description": _meaning}
