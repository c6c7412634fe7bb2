"""The drawers of one source as one text: what neighbours share stands there once, and what lies between them is marked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..context import overlap
from .selection import Row

PARAGRAPH, GAP = "\n\n", "\n\n[…]\n\n"


def joined(drawers: Iterable[Row]) -> str:
    """The texts of a source's drawers, in their order.

    Args:
        drawers: rows with `text`, `chunk_index` and `metadata`, whose `char_start` and `char_end` say where in the source
            a mined text stands; where they do not, equal characters at the seam tell what is shared.
    Returns:
        the source as far as the drawers hold it. `[…]` stands for drawers that are not among them.
    """
    parts: list[str] = []
    before: Row | None = None
    for row in drawers:
        shared = 0 if before is None else _shared(before, row)
        if shared is None:
            parts.append(PARAGRAPH if _step(before, row) in (None, 0, 1) else GAP)
        parts.append(row["text"][shared or 0 :])
        before = row
    return "".join(parts)


def _shared(before: Row, row: Row) -> int | None:
    """How many characters two neighbours have in common, 0 where one begins where the other ends; None when unknown."""
    if _step(before, row) != 1:
        return None
    (_, end), (start, _) = _place(before), _place(row)
    if end is not None and start is not None:
        shared = end - start
        known = 0 <= shared <= min(len(before["text"]), len(row["text"]))
        if known and before["text"].endswith(row["text"][:shared]):
            return shared
    return overlap(before["text"], row["text"]) or None


def _step(before: Row | None, row: Row) -> int | None:
    """How far one drawer's place in the source is from another's; None when not both have one."""
    first, second = before and before["chunk_index"], row["chunk_index"]
    return second - first if isinstance(first, int) and isinstance(second, int) else None


def _place(row: Row) -> tuple[int | None, int | None]:
    """Where a text stands in its source, in characters."""
    try:
        metadata: Any = json.loads(row["metadata"])
        found = metadata.get("char_start"), metadata.get("char_end")
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None, None
    return found if all(isinstance(place, int) for place in found) else (None, None)
