"""Reads back what an export has beside drawers and closets: origins, hallways, tunnels and the knowledge graph.

They go in behind all drawers, which they refer to by name. An origin that is here already, of the same folder and
collection, keeps what it has, and gets what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..interchange import ORIGIN, ORIGIN_IDS, RELATED, BadValue, from_json, read_columns
from ..origins import make_tables
from ..palace import Palace
from .mempalace import graph

_KINDS = (ORIGIN, *ORIGIN_IDS.values(), *RELATED)
_ORIGIN = (
    "folder", "collection", "collection_id", "embedding_model", "metric", "first_imported", "last_imported",
)  # fmt: skip


def is_related(value: Any) -> bool:
    """Whether a line's JSON value is one of these, rather than a drawer or a closet."""
    return isinstance(value, dict) and value.get("kind") in _KINDS


class Related:
    """The lines of one export; they are few beside its drawers, and held until these are in."""

    def __init__(self) -> None:
        self.count = 0
        self._origins: dict[int, dict[str, Any]] = {}
        self._ids: dict[tuple[int, str], list[Any]] = {}
        self._rows: dict[tuple[int, str], list[dict[str, Any]]] = {}

    def take(self, value: Mapping[str, Any]) -> None:
        """Take one line.

        Raises:
            BadValue: when it cannot be read, or its origin does not stand before it.
        """
        kind = value["kind"]
        if kind == ORIGIN:
            found = read_columns(value, _ORIGIN)
            if not isinstance(value.get("id"), int) or None in (found["folder"], found["collection"]):
                raise BadValue("an origin needs an id, a folder and a collection")
            self._origins[value["id"]] = found
        else:
            self._take_of(kind, value)
        self.count += 1

    def _take_of(self, kind: str, value: Mapping[str, Any]) -> None:
        origin = value.get("origin")
        if not isinstance(origin, int) or origin not in self._origins:
            raise BadValue(f"origin: {str(origin)[:40]!r} is none that stands before it")
        if kind in RELATED:
            given = value.get("row")
            row = read_columns(given if isinstance(given, dict) else {}, graph.columns_of(kind))
            if row[graph.key_of(kind)] is None:
                raise BadValue(f"it has no {graph.key_of(kind)}")
            self._rows.setdefault((origin, kind), []).append(row)
            return
        if not isinstance(value.get("ids"), list):
            raise BadValue("it has no list of ids")
        self._ids.setdefault((origin, kind), []).extend(map(from_json, value["ids"]))

    def put_into(self, palace: Palace) -> None:
        """Write everything that was taken, in one transaction."""
        if not self._origins:
            return
        with palace.writer() as connection:
            make_tables(connection)
            numbers = {given: _origin(connection, row) for given, row in self._origins.items()}
            for of, kind in ORIGIN_IDS.items():
                for given, number in numbers.items():
                    connection.executemany(
                        f"insert into origin_{of}s ({of}_id, origin) select {of}_id, ? from {of}s where {of}_id = ?"
                        " on conflict do nothing",
                        [(number, name) for name in self._ids.get((given, kind), ())],
                    )
            for table in RELATED:
                for given, number in numbers.items():
                    if rows := self._rows.get((given, table)):
                        graph.put_rows(connection, table, number, rows, prune=False)


def _origin(connection: Any, row: Mapping[str, Any]) -> int:
    """The number of an origin here, made when it is new."""
    connection.execute(
        f"insert into mempalace_origins ({', '.join(_ORIGIN)}) values ({', '.join(f':{name}' for name in _ORIGIN)})"
        " on conflict (folder, collection) do nothing",
        row,
    )
    query = "select id from mempalace_origins where folder = :folder and collection = :collection"
    return int(connection.execute(query, row).fetchone()[0])
