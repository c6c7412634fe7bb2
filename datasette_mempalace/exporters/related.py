"""What `import-palace` has filed beside drawers, as lines of an NDJSON export: origins, hallways, tunnels, knowledge graph.

Rows refer to each other and to drawers by the ids that MemPalace gave them; the tables' own numbers stay behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..interchange import ORIGIN, ORIGIN_IDS, RELATED, as_json, metadata_as_json

IDS = 1_000  # in a line
# A table's own numbers, found again by the import.
_OWN = frozenset({"id", "origin", "source_drawer", "target_drawer", "source_closet"})
_ENTITY = "(select entity_id from kg_entities e where e.id = kg_triples.{end}) as {end}"


def count(connection: Any) -> int:
    """How many lines there are."""
    return sum(1 for _ in lines(connection))


def lines(connection: Any) -> Iterator[dict[str, Any]]:
    """Origins, what came from each, and the rows of the tables that there are, each line with its `kind`."""
    found = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
    if "mempalace_origins" not in found:
        return
    for row in _rows(connection, "select * from mempalace_origins order by id"):
        yield {"kind": ORIGIN, **row}
        for of, kind in ORIGIN_IDS.items():
            yield from _ids(connection, kind, of, row["id"])
    for table in RELATED:
        if table in found:
            ends = ", ".join(_ENTITY.format(end=end) for end in ("subject", "object"))
            more = f", {ends}" if table == "kg_triples" else ""
            for row in _rows(connection, f"select *{more} from {table} order by id"):
                own = {name: value for name, value in row.items() if name not in _OWN}
                yield {"kind": table, "origin": row["origin"], "row": own}


def _ids(connection: Any, kind: str, of: str, origin: int) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(
        f"select {of}_id from origin_{of}s where origin = ? order by {of}_id", [origin]
    )
    while rows := cursor.fetchmany(IDS):
        yield {"kind": kind, "origin": origin, "ids": [as_json(row[0]) for row in rows]}


def _rows(connection: Any, query: str) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        # Of two columns of one name the last counts: a triple's ends by their names.
        values = dict(zip(names, row, strict=True))
        yield {
            name: metadata_as_json(value) if name == "metadata" else as_json(value)
            for name, value in values.items()
        }
