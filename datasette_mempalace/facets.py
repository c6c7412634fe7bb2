"""Wing and room counts over the candidate pool, for narrowing a search and widening it again."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .pool import Pool, Search, count_in_scope, unite
from .scope import DIMENSIONS

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
