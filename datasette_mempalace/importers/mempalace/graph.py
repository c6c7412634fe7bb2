"""Hallways, tunnels and the knowledge graph as rows of their tables, linked to the drawers and closets that they refer to.

The tables (`beside`) are made by the first import that has something to put there. Their integer keys are this database's own, so
that Datasette shows every reference as a link; MemPalace's ids stand beside them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ... import beside
from ...errors import BadInput
from ...text import text_hash
from .records import Row, as_json
from .report import Tally


def key_of(table: str) -> str:
    """The column with MemPalace's id."""
    return beside.KEYS[table]


def columns_of(table: str) -> list[str]:
    """The columns of a row as this module makes and takes them: not those that are found here, its number and links."""
    names = [part.split()[0] for part in beside.COLUMNS[table].split(", ")]
    linked = {column for column, *_ in beside.LINKS.get(table, ())}
    return [name for name in names if name not in {"id", "origin"} | linked]


def read_list(file: Path, name: str) -> list[Row]:
    """The records of hallways.json or tunnels.json: a list, alone or under its name.

    Raises:
        BadInput: when the file holds no such list.
    """
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{file} cannot be read as JSON ({error}), so it was left out.") from error
    records = content.get(name) if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise BadInput(f"{file} holds no list of {name}, so it was left out.")
    return [record for record in records if isinstance(record, dict)]


def hallway(record: Mapping[str, Any]) -> Row:
    """A row of the table `hallways`."""
    return _row("hallways", {**record, "hallway_id": _id(record)}, drop=("id",))


def tunnel(record: Mapping[str, Any]) -> Row:
    """A row of the table `tunnels`; what its two ends say becomes columns."""
    flat = {**record, "tunnel_id": _id(record)}
    for end in ("source", "target"):
        place = record.get(end)
        if isinstance(place, dict):
            flat |= {f"{end}_{key}": value for key, value in place.items()}
            del flat[end]
    return _row("tunnels", flat, drop=("id",))


def read_graph(file: Path) -> tuple[list[Row], list[Row]]:
    """Entities and triples of a copied knowledge graph; `subject` and `object` are MemPalace's ids.

    Raises:
        BadInput: when its tables are not those of a knowledge graph.
    """
    connection = sqlite3.connect(str(file))
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        entities, triples = _rows(connection, "entities"), _rows(connection, "triples")
    except sqlite3.Error as error:
        raise BadInput(f"the knowledge graph cannot be read ({error}), so it was left out.") from error
    finally:
        connection.close()
    rows = [_row("kg_entities", {**entity, "entity_id": entity["id"]}, drop=("id",)) for entity in entities]
    known = {row["entity_id"] for row in rows}
    for triple in triples:
        for key in (triple["subject"], triple["object"]):
            if key not in known:  # the graph's own commands tolerate it, and the fact must not be lost
                known.add(key)
                rows.append(_row("kg_entities", {"entity_id": key, "name": key}))
    facts = [
        _row(
            "kg_triples",
            {**triple, "triple_id": triple["id"], "source_closet_id": triple.get("source_closet")},
            drop=("id", "source_closet"),
        )
        for triple in triples
    ]
    return rows, facts


def put_rows(connection: Any, table: str, origin: int, rows: Iterable[Row], prune: bool) -> Tally:
    """Bring a table in step with what one origin has; other origins' rows are left alone.

    Args:
        connection: a connection in a write transaction.
        table: its name.
        origin: the origin's id.
        rows: rows as this module makes them.
        prune: whether to take out what the origin no longer has.
    """
    beside.make(connection, table)
    tally, key = Tally(), beside.KEYS[table]
    stored = {row[key]: row for row in _rows(connection, table, origin)}
    # A file that was written by hand may have an id twice; the last counts.
    wanted = {row[key]: row for row in rows}
    for row in _linked(connection, table, origin, wanted.values()):
        old = stored.get(row[key])
        if old is None:
            names = ["origin", *row]
            connection.execute(
                f"insert into {table} ({', '.join(names)}) values ({', '.join('?' * len(names))})",
                [origin, *row.values()],
            )
            tally.added += 1
        elif any(old[name] != value for name, value in row.items()):
            connection.execute(
                f"update {table} set {', '.join(f'{name} = :{name}' for name in row)} where id = :id",
                {**row, "id": old["id"]},
            )
            tally.updated += 1
        else:
            tally.unchanged += 1
    gone = [old["id"] for name, old in stored.items() if name not in wanted]
    tally.gone = len(gone)
    if prune:
        connection.executemany(f"delete from {table} where id = ?", [[row_id] for row_id in gone])
        tally.removed = len(gone)
    return tally


def _linked(connection: Any, table: str, origin: int, rows: Iterable[Row]) -> Iterator[Row]:
    entities: dict[str, int] = {}
    if table == "kg_triples":
        entities = dict(
            connection.execute("select entity_id, id from kg_entities where origin = ?", [origin]).fetchall()
        )
    for row in rows:
        for column, theirs, target, key in beside.LINKS.get(table, ()):
            found = connection.execute(f"select id from {target} where {key} = ?", [row[theirs]]).fetchone()
            row[column] = found[0] if found else None
        if table == "kg_triples":
            row |= {end: entities.get(row[end]) for end in ("subject", "object")}
        yield row


def _row(table: str, content: Mapping[str, Any], drop: tuple[str, ...] = ()) -> Row:
    """A row with every column of a table; what has none goes to `metadata`."""
    named = [name for name in columns_of(table) if name != "metadata"]
    rest = {key: value for key, value in content.items() if key not in named and key not in drop}
    row = {name: _plain(content.get(name)) for name in named}
    return {**row, "metadata": as_json(rest)}


def _id(record: Mapping[str, Any]) -> str:
    """MemPalace's id of a record, or one made of what it says."""
    return str(record.get("id") or text_hash(as_json(record)))


def _plain(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def _rows(connection: Any, table: str, origin: int | None = None) -> list[Row]:
    where = "" if origin is None else " where origin = :origin"
    cursor = connection.execute(f"select * from {table}{where}", {"origin": origin} if where else {})
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]
