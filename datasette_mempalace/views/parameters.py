"""The parameters of the JSON API as OpenAPI describes them, with the limits and choices that `request` checks by."""

from __future__ import annotations

from typing import Any

from ..config import RANKINGS, STRATEGIES, Settings
from ..duplicates.request import CLUSTERS, LOWEST, MIN_CHARACTERS, THRESHOLD
from ..explore.values import LISTS
from ..filters import COLUMNS, OPERATORS
from ..parameter_values import FLAGS
from ..request import MAX_FILTERS, MAX_ID, MAX_QUERY, MAX_VALUES
from ..request import PARAMETERS as SEARCH
from ..scope import DATE_COLUMNS

__all__ = ["FILTERS", "PARAMETERS", "PATH_PARAMETERS", "SCOPE", "SEARCH"]

Schema = dict[str, Any]
FILTERS = "filters"  # the column filters, whose names are no fixed list
# What narrows a palace to a part, without a search.
SCOPE = (
    "wing", "room", "source_file", "wing__isnull", "room__isnull", "source_file__isnull", "since", "before",
    "date_column", "ids", FILTERS,
)  # fmt: skip
DEFAULTS = Settings()
LARGEST = 1000


def _query(name: str, description: str, schema: Schema, **more: Any) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": schema, **more}


def _names(name: str, of: str) -> Schema:
    description = f"Only drawers of this {of}: exact names, case-sensitive; repeated, any of these."
    schema = {"type": "array", "items": {"type": "string"}, "maxItems": MAX_VALUES}
    return _query(name, description, schema, style="form", explode=True)


def _flag(name: str, description: str, default: bool) -> Schema:
    return _query(name, description, {"type": "string", "enum": sorted(FLAGS), "default": str(int(default))})


def _choice(name: str, description: str, allowed: tuple[str, ...], default: str) -> Schema:
    return _query(name, description, {"type": "string", "enum": list(allowed), "default": default})


def _date(name: str, description: str) -> Schema:
    moment = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
    return _query(name, description, moment, examples={"day": {"value": "2026-03-14"}})


_DESCRIBED = (
    _query(
        "q", "The words to search for.", {"type": "string", "minLength": 1, "maxLength": MAX_QUERY, "pattern": r"\S"},
        required=True, examples={"words": {"value": "spare key"}},
    ),
    _names("wing", "wing"),
    _names("room", "room"),
    _names("source_file", "source, by its whole stored path"),
    *(
        _flag(f"{name}__isnull", f"Whether drawers without a {noun} are allowed.", False)
        for name, noun in (("wing", "wing"), ("room", "room"), ("source_file", "source"))
    ),
    _date("since", "Only drawers filed then or later; a time with a zone is turned into UTC."),
    _date("before", "Only drawers filed earlier than this; it must be later than since."),
    _choice("date_column", "The date that since and before are about.", DATE_COLUMNS, DATE_COLUMNS[0]),
    _query(
        "ids", "Only the drawers with these ids.",
        {"type": "array", "items": {"type": "integer", "minimum": -MAX_ID, "maximum": MAX_ID}},
        style="form", explode=False,
    ),
    _query(
        "n_results", "How many hits at most; the setting max_n_results may allow fewer.",
        {"type": "integer", "minimum": 1, "maximum": LARGEST, "default": DEFAULTS.n_results},
    ),
    _query(
        "max_distance", "The farthest cosine distance; 0 is no limit.",
        {"type": "number", "minimum": 0, "maximum": 2, "default": 0},
    ),
    _choice(
        "candidate_strategy", "Candidates by meaning and by words, or by meaning alone.", STRATEGIES,
        DEFAULTS.candidate_strategy,
    ),
    _choice("ranking", "Which of the two rankings orders the hits.", RANKINGS, DEFAULTS.ranking),
    _flag("vector_disabled", "Whether to search by words alone.", False),
    _query(
        "next", "The next of the answer before, to carry on after it.",
        {"type": "integer", "minimum": 0, "maximum": LARGEST},
    ),
    _flag("facets", "Whether wings and rooms are counted.", True),
    _flag("context", "Whether passages around hits are read.", True),
    _flag("explain", "Whether each hit says how it was found and what its score is made of.", False),
    _query(
        FILTERS,
        f"Conditions on columns of drawers, at most {MAX_FILTERS}: column__operator=value, or metadata.key__operator=value "
        "for a key of a drawer's metadata. Each is a parameter of its own name.",
        {
            "type": "object",
            "maxProperties": MAX_FILTERS,
            "propertyNames": {
                "pattern": rf"^({'|'.join(COLUMNS)}|metadata\.[^&=_.]+)__({'|'.join(OPERATORS)})$"
            },
            "additionalProperties": {"type": "string"},
        },
        style="form", explode=True, examples={"author": {"value": {"added_by__exact": "anna"}}},
    ),
    _flag("doctor", "Whether the palace is examined.", False),
    _flag("all", "Whether every hit is streamed rather than one page of them.", False),
)  # fmt: skip
_OF_DRAWERS = (
    _flag("other_sources_first", "Whether all drawers of other sources come before those of the drawer's own.", True),
    _choice("as", "The text as it was written, or rendered as Markdown.", ("written", "rendered"), "written"),
    _choice(
        "similar", "Where similar drawers are looked for; the last two are the drawer's own.",
        ("everywhere", "wing", "room"), "everywhere",
    ),
    _query(
        "threshold", "From which similarity on two drawers are near copies; 1 finds equal texts alone.",
        {"type": "number", "minimum": LOWEST, "maximum": 1, "default": THRESHOLD},
    ),
    _query(
        "min_characters", "Shorter texts are left out.",
        {"type": "integer", "minimum": 0, "maximum": 1_000_000, "default": MIN_CHARACTERS},
    ),
)  # fmt: skip
# Names that mean something else elsewhere, under keys of their own.
_ALSO = {
    "of_drawer": _query(
        "drawer_id",
        "The drawer to compare with: its lasting name, or its id.",
        {"type": "string", "minLength": 1},
        required=True,
        examples={"row": {"value": "1"}},
    ),
    "clusters": _query(
        "n_results",
        "How many clusters at most, the largest first.",
        {"type": "integer", "minimum": 1, "maximum": LARGEST, "default": CLUSTERS},
    ),
    "next_drawers": _query(
        "next",
        "The next of the answer before, to look at the drawers after it.",
        {"type": "integer", "minimum": 0},
    ),
}
PARAMETERS: dict[str, Schema] = {
    **{parameter["name"]: parameter for parameter in (*_DESCRIBED, *_OF_DRAWERS)},
    **_ALSO,
}

PATH_PARAMETERS: dict[str, Schema] = {
    name: {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", **({"enum": list(LISTS)} if name == "what" else {})},
    }
    for name, description in {
        "database": "The name of the palace's database, tilde-encoded as in Datasette's own URLs.",
        "what": "What is listed.",
        "drawer_id": "The drawer's lasting name or its id, tilde-encoded.",
    }.items()
}
