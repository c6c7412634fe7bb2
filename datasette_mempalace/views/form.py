"""The search form as a page shows it again: every field as it was sent, and what has no field hidden in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..filters import is_filter
from ..palace import Palace
from ..request import PARAMETERS
from ..scope import DATE_COLUMNS

PAGE_SIZES = (10, 20, 50, 100)
PLACES = ("wing", "room", "wing__isnull", "room__isnull", "source_file__isnull", "ids")
NARROWING = (*PLACES, "source_file", "since", "before", "max_distance")
FIELDS = ("hall", "added_by")  # column filters with a field of their own in the form
# What a date or a number field of a browser keeps; it silently drops anything else.
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)?$")
_NUMBER = re.compile(r"(\d+(\.\d+)?)?$")


def form_view(given: Mapping[str, list[str]], palace: Palace) -> dict[str, Any]:
    """The form as it was sent, whether or not it could be used.

    Args:
        given: the URL's parameters.
        palace: whose settings are the defaults.
    """
    first = {name: next((value for value in values if value), "") for name, values in given.items()}
    sources = [value for value in given.get("source_file", []) if value]
    filters = [name for name in given if name not in PARAMETERS and is_filter(name)]
    fields = {name: _values(given, name, f"{name}__exact") for name in FIELDS}
    hidden = [(name, value) for name in PLACES for value in _values(given, name)]
    hidden += [
        (name, value)
        for name in filters
        if name.removesuffix("__exact") not in FIELDS
        for value in _values(given, name)
    ]
    hidden += [(f"{name}__exact", value) for name, values in fields.items() for value in values[1:]]
    size = first.get("n_results") or str(palace.settings.n_results)
    sizes = dict.fromkeys([*map(str, PAGE_SIZES), size])
    return {
        "q": first.get("q", ""),
        "hidden": hidden + [("source_file", value) for value in sources[1:]],
        "source_file": sources[0] if sources else "",
        "fields": {name: values[0] if values else "" for name, values in fields.items()},
        "date_column": first.get("date_column") or DATE_COLUMNS[0],
        "dates": [_date_field(name, first.get(name, "")) for name in ("since", "before")],
        "max_distance": first.get("max_distance", ""),
        "distance_type": "number" if _NUMBER.match(first.get("max_distance", "")) else "text",
        "n_results": size,
        "sizes": sorted(sizes, key=lambda text: (not text.isdecimal(), len(text), text)),
        "candidate_strategy": first.get("candidate_strategy") or palace.settings.candidate_strategy,
        "ranking": first.get("ranking") or palace.settings.ranking,
        "words_only": first.get("vector_disabled", "").lower() in ("1", "true", "on", "yes"),
        "narrowed": any(_values(given, *NARROWING, *filters)),
        "wrong": None,
    }


def _values(given: Mapping[str, list[str]], *names: str) -> list[str]:
    """What some parameters hold, blanks left out."""
    return [value for name in names for value in given.get(name, []) if value]


def _date_field(name: str, value: str) -> dict[str, str]:
    """A date picker, unless it would lose what was given: a time, or something that is no date."""
    return {"name": name, "value": value, "type": "date" if _DATE.match(value) else "text"}
