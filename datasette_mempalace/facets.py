"""Wing and room counts over the candidate pool, for narrowing a search and widening it again."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .pool import Pool, Search, count_in_scope, unite
from .scope import DIMENSIONS

FACETS = ("wing", "room")


def count_facets(search: Search, pool: Pool, in_scope: int) -> dict[str, list[dict[str, Any]]]:
    """How many candidates lie in each wing and room.

    Args:
        search: the search under way.
        pool: its candidate pool.
        in_scope: how many drawers its scope holds.
    Returns:
        for "wing" and "room" a list of {value, count, selected}, the commonest first. The counts of a dimension come
        from a pool without that dimension's own filter, so that a second value can be added; values that are chosen
        are listed even when they count 0.
    """
    return {dimension: _count(search, pool, in_scope, dimension) for dimension in FACETS}


def _count(search: Search, pool: Pool, in_scope: int, dimension: str) -> list[dict[str, Any]]:
    scope = search.request.scope
    chosen = getattr(scope, DIMENSIONS[dimension])
    if chosen:
        wider = scope.without(dimension)
        candidates = unite(
            search, wider, search.request.n_results, count_in_scope(search.connection, wider)
        ).candidates
    else:
        candidates = pool.candidates
    counts: Counter[str | None] = Counter(candidate.row[dimension] for candidate in candidates)
    counts.update(dict.fromkeys(chosen, 0))
    values = sorted(counts, key=lambda value: (-counts[value], value is None, value or ""))
    return [{"value": value, "count": counts[value], "selected": value in chosen} for value in values]
