"""Filters carried between two pages: Datasette's table of drawers and the ranked search page. Pure.

What a table page can say in its own syntax stays a column filter there; everything else that a search can be told
travels as one JSON object in `_mempalace_options`, under the names of the HTTP API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import BadParameter
from ..filters import COLUMNS, Filter, is_filter, make_filter, split_name
from ..request import MAX_FILTERS, SearchRequest
from ..scope import DIMENSIONS

Pair = tuple[str, str]
WORDS = "_mempalace"
OPTIONS = "_mempalace_options"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
# Datasette takes these characters of a value for wildcards, a search takes them as they are.
_PATTERNS = frozenset({"contains", "notcontains", "startswith", "endswith"})
_WILD = re.compile(r"[%_\\]")


def options_of(text: str | None) -> dict[str, Any]:
    """What `_mempalace_options` says.

    Args:
        text: a JSON object, or nothing.
    Raises:
        BadParameter: when it is something else.
    """
    if not text:
        return {}
    try:
        options = json.loads(text)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise BadParameter(OPTIONS, text, 'it must be a JSON object such as {"max_distance": 0.8}')
    if "q" in options:
        raise BadParameter(OPTIONS, text, f"the words stand in {WORDS}, not in q")
    return options


def narrowing_filters(pairs: Iterable[Pair]) -> list[Pair]:
    """The column filters of a table page that mean the same to a search, so that it may look at nothing else.

    The table still applies all of them: one that is left out here only narrows less.

    Args:
        pairs: the table page's parameters.
    Returns:
        names with their operator, and values.
    """
    found: list[Pair] = []
    for name, value in pairs:
        column, operator = split_name(name)
        if column not in COLUMNS or not is_filter(name):
            continue
        made = make_filter(f"{column}__{operator}", value) if value else None
        if made is not None and _means_the_same(made):
            found.append((made.name, made.value))
    return list(dict.fromkeys(found))[:MAX_FILTERS]


def to_search(pairs: Iterable[Pair], with_filters: bool = True) -> list[Pair]:
    """A table page's state as one of the search page.

    Args:
        pairs: the table page's parameters.
        with_filters: whether the table's columns are those of drawers.
    Returns:
        the search page's parameters; what only a table has (its order, its own search) is left out.
    Raises:
        BadParameter: when the options are no JSON object.
    """
    given = [pair for pair in pairs if pair[1]]
    found = [("q", value) for name, value in given if name == WORDS]
    options = next((value for name, value in given if name == OPTIONS), None)
    found += _as_pairs(options_of(options))
    if not with_filters:
        return found
    taken = {name.removesuffix("__isnull") for name, _ in found}
    for name, value in given:
        if name.startswith("_") or not is_filter(name):
            continue
        column, operator = split_name(name)
        if column in DIMENSIONS and column not in taken and operator in ("exact", "in", "isnull"):
            # On the search page several values mean "any of these", so only the first condition becomes some.
            taken.add(column)
            found += _as_dimension(column, operator, value)
        else:
            found.append((f"{column}__{operator}", value))
    return found


def to_table(request: SearchRequest, pairs: Iterable[Pair]) -> list[Pair]:
    """A search as a state of the table of drawers, which then holds its best hits.

    Args:
        request: the search.
        pairs: its parameters, what is default left out.
    Returns:
        the table page's parameters.
    """
    scope = request.scope
    found: list[Pair] = [(WORDS, request.query)]
    options: dict[str, Any] = {
        name: value
        for name, value in pairs
        if name in ("candidate_strategy", "ranking", "max_distance", "vector_disabled")
    }
    for column, attribute in DIMENSIONS.items():
        values = getattr(scope, attribute)
        named = [value for value in values if value is not None]
        if None in values and named:  # no filter of a table says "this one or none"
            options |= {column: named, f"{column}__isnull": 1}
        elif None in values:
            found.append((f"{column}__isnull", "1"))
        elif len(named) == 1:
            found.append((column, named[0]))
        elif named:
            found.append((f"{column}__in", _as_list(named)))
    for name, operator, text in zip(("since", "before"), ("gte", "lt"), request.dates, strict=True):
        if text and _DAY.fullmatch(text):
            found.append((f"{scope.date_column}__{operator}", text))
        elif text:
            options |= {name: text, "date_column": scope.date_column}
    if scope.ids is not None:
        found.append(("id__in", ",".join(map(str, scope.ids))))
    for condition in scope.filters:
        if condition.column in COLUMNS and _means_the_same(condition):
            found.append((condition.name, condition.value))
        else:
            options.setdefault(condition.name, []).append(condition.value)
    if options:
        found.append((OPTIONS, json.dumps(options, ensure_ascii=False)))
    return found


def said(options: Mapping[str, Any]) -> str:
    """Options as the end of a sentence: "with max_distance 0.8"; "" without any. Words only is said elsewhere."""
    clauses = []
    for name, value in options.items():
        if name == "vector_disabled":
            continue
        values = value if isinstance(value, list) else [value]
        clauses.append(f"{name} {' or '.join(map(str, values))}")
    return f"with {', '.join(clauses)}" if clauses else ""


def _means_the_same(condition: Filter) -> bool:
    if condition.operator == "notcontains":  # 0.65 has no such filter
        return False
    return condition.operator not in _PATTERNS or not _WILD.search(condition.value)


def _as_pairs(options: Mapping[str, Any]) -> list[Pair]:
    return [
        (name, str(int(value)) if isinstance(value, bool) else str(value))
        for name, values in options.items()
        for value in (values if isinstance(values, list) else [values])
        if value is not None
    ]


def _as_dimension(column: str, operator: str, value: str) -> list[Pair]:
    if operator == "isnull":
        return [(f"{column}__isnull", "1")]
    if operator == "exact":
        return [(column, value)]
    made = make_filter(f"{column}__in", value)
    return [(column, str(part)) for part in json.loads(made.value)] if made else []


def _as_list(values: list[str]) -> str:
    """Values of an `__in`: with commas between where that is clear, else a JSON array."""
    plain = all(value == value.strip() and not re.search(r"[,\[\]]", value) for value in values)
    return ",".join(values) if plain else json.dumps(values, ensure_ascii=False)
