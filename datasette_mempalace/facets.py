"""Wings, rooms and days of the candidate pool, counted, for narrowing a search and widening it again."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from .moments import day_of
from .pool import Pool, Search, unite
from .rows import count_in_scope
from .scope import DIMENSIONS
from .timeline import as_json, make_timeline

FACETS = ("wing", "room")


def count_facets(search: Search, pool: Pool) -> dict[str, list[dict[str, Any]]]:
    """How many candidates lie in each wing and room.

    Args:
        search: the search under way.
        pool: its candidate pool.
    Returns:
        for "wing" and "room" a list of {value, count, selected}, the commonest first. The counts of a dimension come
        from a pool without that dimension's own filter, so that a second value can be added; those of values that are
        chosen come from the pool itself, so that they add up to its size.
    """
    return {dimension: _count(search, pool, dimension) for dimension in FACETS}


def count_days(search: Search, pool: Pool) -> dict[str, Any]:
    """When the candidates were filed, or another date of theirs: the scope's date column.

    Args:
        search: the search under way.
        pool: its candidate pool.
    Returns:
        the timeline, as `timeline.as_json` has it. SQLite reads the dates, as it does for `since` and `before`.
    """
    scope = search.request.scope
    moments = [candidate.row[scope.date_column] for candidate in pool.candidates]
    given = [moment for moment in moments if moment is not None]
    days = search.connection.execute(
        f"select {day_of('value')}, count(*) from json_each(?) group by 1", [json.dumps(given)]
    )
    timeline = make_timeline(dict(days), len(moments) - len(given), scope.since, scope.before)
    return as_json(timeline, scope.date_column)


def _count(search: Search, pool: Pool, dimension: str) -> list[dict[str, Any]]:
    scope = search.request.scope
    chosen = getattr(scope, DIMENSIONS[dimension])
    counts: Counter[str | None] = Counter(candidate.row[dimension] for candidate in pool.candidates)
    if chosen:
        wider = scope.without(dimension)
        size = count_in_scope(search.connection, wider)
        others = unite(search, wider, search.request.n_results, size).candidates
        counts.update(other.row[dimension] for other in others if other.row[dimension] not in chosen)
        counts.update(dict.fromkeys(chosen, 0))
    values = sorted(counts, key=lambda value: (-counts[value], value is None, value or ""))
    return [{"value": value, "count": counts[value], "selected": value in chosen} for value in values]
