"""Folds copies: one long passage filed from several sources is one hit that names where else it stands. Pure."""

from __future__ import annotations

from typing import Protocol, TypeVar

SHORTEST = 100


class HasRow(Protocol):
    """Anything with an id and a drawer's row."""

    id: int
    row: dict[str, object]


Found = TypeVar("Found", bound=HasRow)


def fold_copies(candidates: list[Found]) -> tuple[list[Found], dict[int, list[Found]]]:
    """Keep the first of equal passages.

    Args:
        candidates: best first.
    Returns:
        the candidates without copies, and for each that has some, by its id, its copies. Texts under 100 characters
        and repeats within one source are never folded.
    """
    kept: list[Found] = []
    copies: dict[int, list[Found]] = {}
    first: dict[str, Found] = {}
    for candidate in candidates:
        text = str(candidate.row["text"]).strip()
        original = first.get(text)
        if original is not None and candidate.row["source_file"] not in _sources(original, copies):
            copies.setdefault(original.id, []).append(candidate)
            continue
        if len(text) >= SHORTEST and candidate.row["source_file"]:
            first.setdefault(text, candidate)
        kept.append(candidate)
    return kept, copies


def _sources(original: HasRow, copies: dict[int, list[Found]]) -> set[object]:
    """Where a passage has been seen: a repeat in one of these is a drawer of its own; no source is no copy."""
    return {
        None,
        "",
        original.row["source_file"],
        *(copy.row["source_file"] for copy in copies.get(original.id, [])),
    }
