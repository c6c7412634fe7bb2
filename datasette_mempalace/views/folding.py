"""Hits that follow each other out of one source: the first stay in sight, the rest is folded behind one line. Pure."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ..text import source_name

OPEN = 3  # of one source in a row
FEWEST = 2  # folded for one hit, a line would take the place that it saves


def fold_runs(hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A page of hits with what to fold.

    Args:
        hits: for the template, best first.
    Returns:
        the runs in order, each with its `hits` in sight, and `folded`, `source`, `first` and `last` (ranks) of the rest.
    """
    runs = []
    for source, found in groupby(hits, lambda hit: hit["source_path"] or f"drawer {hit['id']}"):
        run = list(found)
        # Where the whole page is of one source, there is nothing that it hides.
        shown = OPEN if OPEN + FEWEST <= len(run) < len(hits) else len(run)
        rest = run[shown:]
        runs.append(
            {
                "hits": run[:shown],
                "folded": rest,
                "source": source_name(source),
                "first": rest[0]["rank"] if rest else None,
                "last": rest[-1]["rank"] if rest else None,
            }
        )
    return runs
