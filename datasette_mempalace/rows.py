"""Drawers as rows: how many a scope holds, and those with some ids as dictionaries, whoever wrote them."""

from __future__ import annotations

import json
from typing import Any

from .schema import DRAWER_COLUMNS
from .scope import Scope

# SQLite keeps what it is given: a BLOB in a column of texts would otherwise reach functions of texts.
_PROMISED = tuple(
    f"cast({column} as integer)" if column == "chunk_index" else f"cast({column} as text)"
    for column in DRAWER_COLUMNS
)


def count_in_scope(connection: Any, scope: Scope, table: str = "drawers") -> int:
    """How many drawers (or closets) a scope holds."""
    where, parameters = scope.where()
    return int(connection.execute(f"select count(*) from {table} where {where}", parameters).fetchone()[0])


def read_rows(connection: Any, ids: list[int]) -> dict[int, dict[str, Any]]:
    """Drawers by id, every column, each value of the kind that its column promises, whoever wrote it."""
    rows = connection.execute(
        f"select id, {', '.join(_PROMISED)} from drawers where id in (select value from json_each(?))",
        [json.dumps(ids)],
    )
    return {row[0]: dict(zip(("id", *DRAWER_COLUMNS), row, strict=True)) for row in rows}
