"""What stands in a copied chroma.sqlite3, read with SQL alone: collections, their rows, what was not applied yet.

Chroma's sequence numbers may be integers or BLOBs of two kinds; nothing here compares them before `as_number`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import BadInput

PAGE = 1_000
DOCUMENT = "chroma:document"
# Hierarchical navigable small world graphs in Chroma measure by squared Euclidean distance unless told otherwise.
DEFAULT_METRIC = "l2"
_REQUIRED = {
    "collections": {"id", "name"},
    "segments": {"id", "scope", "collection"},
    "embeddings": {"id", "segment_id", "embedding_id"},
    "embedding_metadata": {"id", "key", "string_value", "int_value", "float_value"},
}
_OLD_BLOB = b"\x11\x11"


@dataclass(frozen=True)
class Collection:
    """One collection.

    Attributes:
        id, name: Chroma's own.
        count: its rows.
        metric: "cosine", "l2" or "ip".
        metric_given: whether the metric was chosen, or is only Chroma's default.
        dimension: how many numbers a vector has; None when Chroma did not record it.
        embedder: the embedding function that Chroma recorded; None when it did not.
        rows_segment, index_segment: its segments of rows and of the vector index; None when there is none.
    """

    id: str
    name: str
    count: int
    metric: str
    metric_given: bool
    dimension: int | None
    embedder: str | None
    rows_segment: str | None
    index_segment: str | None


@dataclass
class Record:
    """One row of a collection: its id, text and metadata as they are stored. What is None was not stored."""

    id: str
    document: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def open_copy(file: Path) -> Any:
    """A connection to a copied database; text that is no UTF-8 is read with U+FFFD in it, and loses no row."""
    connection = sqlite3.connect(str(file), isolation_level=None)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.execute("pragma synchronous = off")
    return connection


def check_schema(connection: Any, file: Path) -> None:
    """Raise BadInput, saying what is there, unless the database has the tables that are read."""
    lacking = []
    for table, needed in _REQUIRED.items():
        there = _columns(connection, table)
        if not there:
            lacking.append(f"no table {table}")
        elif needed - there:
            lacking.append(f"no {', '.join(sorted(needed - there))} in {table}")
    if lacking:
        tables = _names(connection, "select name from sqlite_master where type = 'table' order by name")
        raise BadInput(
            f"{file} exists, but its schema is not one that this import knows: it has {'; '.join(lacking)}. "
            f"Tables found: {', '.join(tables) or 'none'}. {_levels(connection)}"
        )


def list_collections(connection: Any) -> list[Collection]:
    """The collections of a database, by name."""
    optional = [
        name if name in _columns(connection, "collections") else f"null as {name}"
        for name in ("dimension", "config_json_str", "schema_str")
    ]
    rows = connection.execute(f"select id, name, {', '.join(optional)} from collections order by name")
    return [_collection(connection, *row) for row in rows.fetchall()]


def count_orphans(connection: Any) -> int:
    """How many rows belong to no collection; MemPalace does not see them either."""
    return int(
        connection.execute(
            "select count(*) from embeddings where segment_id not in (select id from segments)"
        ).fetchone()[0]
    )


def index_segments(connection: Any) -> list[str]:
    """The names of the folders that vector indexes lie in; none in a database of an unknown schema."""
    if not {"id", "scope"} <= _columns(connection, "segments"):
        return []
    return _names(connection, "select id from segments where scope = 'VECTOR' order by id")


def read_pages(connection: Any, collection: Collection) -> Iterator[list[Record]]:
    """Every row of a collection, a page at a time, in the order in which they were filed."""
    flag = "bool_value" if "bool_value" in _columns(connection, "embedding_metadata") else "null"
    scalars = (
        f"select id, key, string_value, int_value, float_value, {flag} from embedding_metadata"
        " where id between ? and ?"
    )
    has_lists = bool(_columns(connection, "embedding_metadata_array"))
    last = -(2**62)
    while True:
        # `+` keeps SQLite from the index by segment, which would sort all rows again for every page.
        rows = connection.execute(
            "select id, embedding_id from embeddings where +segment_id = ? and id > ? order by id limit ?",
            [collection.rows_segment, last, PAGE],
        ).fetchall()
        if not rows:
            return
        first, last = rows[0][0], rows[-1][0]
        records = {row_id: Record(str(key)) for row_id, key in rows}
        for row_id, key, *values in connection.execute(scalars, [first, last]):
            if row_id in records:
                _keep(records[row_id], key, _value(*values))
        if has_lists:
            _read_lists(connection, records, first, last)
        yield list(records.values())


def as_number(value: Any) -> int:
    """A sequence number, however it is stored: an integer, eight bytes, or digits behind two marks; 0 for none."""
    if isinstance(value, bytes):
        if value.startswith(_OLD_BLOB) and value[2:].isdigit():
            return int(value[2:])
        return int.from_bytes(value, "big")
    return int(value or 0)


def _collection(
    connection: Any, key: str, name: str, dimension: int | None, config: str | None, schema: str | None
) -> Collection:
    segments = dict(
        connection.execute("select scope, id from segments where collection = ?", [key]).fetchall()
    )
    count = connection.execute(
        "select count(*) from embeddings where segment_id = ?", [segments.get("METADATA")]
    ).fetchone()[0]
    space = None
    if _columns(connection, "collection_metadata"):
        space = connection.execute(
            "select str_value from collection_metadata where collection_id = ? and key = 'hnsw:space'", [key]
        ).fetchone()
    settings = _vector_settings(schema, config)
    metric = (space and space[0]) or settings.get("space")
    function = settings.get("embedding_function")
    embedder = function.get("name") if isinstance(function, dict) else None
    return Collection(
        id=key,
        name=name,
        count=count,
        metric=str(metric or DEFAULT_METRIC),
        metric_given=bool(space and space[0]),
        dimension=dimension,
        embedder=str(embedder) if embedder else None,
        rows_segment=segments.get("METADATA"),
        index_segment=segments.get("VECTOR"),
    )


def _vector_settings(schema: str | None, config: str | None) -> dict[str, Any]:
    """Metric and embedding function, from where one version of Chroma or another keeps them."""
    found: dict[str, Any] = {}
    described, configured = _json(schema), _json(config)
    for path in (("keys", "#embedding"), ("defaults",)):
        settings: Any = described
        for key in (*path, "float_list", "vector_index", "config"):
            settings = settings.get(key) if isinstance(settings, dict) else None
        if isinstance(settings, dict):
            found = {**settings, **found}
    for part in (configured, configured.get("hnsw"), configured.get("hnsw_configuration")):
        if isinstance(part, dict):
            found = {**part, **found}
    return found


def _json(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _read_lists(connection: Any, records: dict[int, Record], first: int, last: int) -> None:
    rows = connection.execute(
        "select id, key, string_value, int_value, float_value, bool_value from embedding_metadata_array"
        " where id between ? and ? order by rowid",
        [first, last],
    )
    for row_id, key, *values in rows:
        if row_id in records:
            records[row_id].metadata.setdefault(key, []).append(_value(*values))


def _keep(record: Record, key: str, value: Any) -> None:
    if key == DOCUMENT:
        record.document = value if value is None else str(value)
    else:
        record.metadata[key] = value


def _value(text: str | None, whole: int | None, real: float | None, flag: int | None) -> Any:
    if text is not None:
        return text
    if flag is not None:
        return bool(flag)
    return real if whole is None else whole


def _levels(connection: Any) -> str:
    if not {"dir", "version"} <= _columns(connection, "migrations"):
        return "It has no record of Chroma's migrations."
    rows = connection.execute("select dir, max(version) from migrations group by dir order by dir").fetchall()
    return f"Chroma's migrations: {', '.join(f'{name} {version}' for name, version in rows) or 'none'}."


def _columns(connection: Any, table: str) -> set[str]:
    return set(_names(connection, f"select name from pragma_table_info('{table}')"))


def _names(connection: Any, query: str) -> list[str]:
    return [row[0] for row in connection.execute(query)]
