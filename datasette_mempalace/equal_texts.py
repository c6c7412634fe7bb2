"""Which drawers have the same text: by the hash that stands beside a vector, so that no other text is read."""

from __future__ import annotations

from typing import Any

from .scope import Scope
from .text import text_hash


def drawers_with_text(connection: Any, text: str, limit: int) -> list[int]:
    """The drawers with just this text; those that have no vector yet are looked through."""
    rows = connection.execute(
        "select id from drawers where text = :text and id in (select id from drawer_vectors where text_hash = :hash)"
        " union select id from drawers where text = :text and id not in (select id from drawer_vectors)"
        " order by id limit :limit",
        {"text": text, "hash": text_hash(text), "limit": limit},
    )
    return [row[0] for row in rows]


def copies_of(connection: Any, row_id: int, limit: int) -> list[int]:
    """The other drawers with the text of one, among those that have a vector."""
    rows = connection.execute(
        "select other.id from drawer_vectors as own join drawer_vectors as other on other.text_hash = own.text_hash"
        " where own.id = :id and other.id <> :id order by other.id limit :limit",
        {"id": row_id, "limit": limit},
    )
    return [row[0] for row in rows]


def equal_groups(connection: Any, scope: Scope) -> list[list[int]]:
    """The drawers of a scope in groups of equal texts, as far as they have vectors; groups of one are left out.

    Returns:
        ids, ascending within a group; the groups by their first.
    """
    where, parameters = scope.where()
    narrowed = "" if scope.is_everything else f"where id in (select id from drawers where {where})"
    rows = connection.execute(
        f"select group_concat(id) from (select id, text_hash from drawer_vectors {narrowed})"
        " group by text_hash having count(*) > 1",
        parameters,
    )
    return sorted(sorted(map(int, row[0].split(","))) for row in rows)
