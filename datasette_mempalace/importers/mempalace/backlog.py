"""Chroma's write-ahead queue: rows that were acknowledged, and that a Chroma which was stopped has not filed yet.

Works on the copied database only, and files them there as Chroma would when it is next opened.
"""

from __future__ import annotations

import json
from typing import Any

from .chroma_sql import Collection, as_number

ADD, UPDATE, UPSERT, DELETE = 0, 1, 2, 3
FETCH = 500


def prepare_queue(connection: Any) -> None:
    """Give the copied queue an index by id, so that it can be read in any order; a palace without a queue is fine."""
    if has_queue(connection):
        connection.execute("create index if not exists import_queue on embeddings_queue(topic, id, seq_id)")


def has_queue(connection: Any) -> bool:
    """Whether the database has a queue at all."""
    query = "select count(*) from pragma_table_info('embeddings_queue') where name in ('seq_id', 'topic', 'id', 'vector')"
    return bool(connection.execute(query).fetchone()[0] == 4)


def topic_of(connection: Any, collection: Collection) -> str | None:
    """The name under which the queue holds a collection's rows."""
    topics = connection.execute("select topic from embeddings_queue group by topic")
    return next((topic for (topic,) in topics if topic.rsplit("/", 1)[-1] == collection.id), None)


def file_backlog(connection: Any, collection: Collection) -> int:
    """File the queue's rows that the collection does not hold yet.

    Args:
        connection: the copied database.
        collection: a collection with a segment of rows.
    Returns:
        how many rows of the queue were waiting.
    """
    if not has_queue(connection) or collection.rows_segment is None:
        return 0
    topic, position = topic_of(connection, collection), _position(connection, collection)
    waiting = 0
    while topic is not None:
        rows = connection.execute(
            "select seq_id, operation, id, metadata from embeddings_queue"
            " where +topic = ? and seq_id > ? order by seq_id limit ?",
            [topic, position, FETCH],
        ).fetchall()
        if not rows:
            break
        connection.execute("begin")
        for seq_id, operation, key, metadata in rows:
            _file(connection, collection, seq_id, operation, key, json.loads(metadata or "{}") or {})
        connection.execute("commit")
        position, waiting = rows[-1][0], waiting + len(rows)
    return waiting


def _position(connection: Any, collection: Collection) -> int:
    """The last row of the queue that the collection holds.

    Some versions of MemPalace left a number here that lies far beyond the queue, and Chroma then files nothing more. The
    newest row that is filed tells it as well; filing a row twice, in order, changes nothing.
    """
    if not connection.execute("select count(*) from pragma_table_info('max_seq_id')").fetchone()[0]:
        recorded = None
    else:
        recorded = connection.execute(
            "select seq_id from max_seq_id where segment_id = ?", [collection.rows_segment]
        ).fetchone()
    newest = connection.execute("select coalesce(max(seq_id), 0) from embeddings_queue").fetchone()[0]
    if recorded is not None and as_number(recorded[0]) <= newest:
        return as_number(recorded[0])
    rows = connection.execute("select seq_id from embeddings where segment_id = ?", [collection.rows_segment])
    return max((as_number(seq_id) for (seq_id,) in rows), default=0)


def _file(
    connection: Any, collection: Collection, seq_id: int, operation: int, key: str, metadata: dict[str, Any]
) -> None:
    found = connection.execute(
        "select id from embeddings where segment_id = ? and embedding_id = ?", [collection.rows_segment, key]
    ).fetchone()
    if operation == DELETE:
        if found:
            for table in _metadata_tables(connection):
                connection.execute(f"delete from {table} where id = ?", found)
            connection.execute("delete from embeddings where id = ?", found)
        return
    if (operation == ADD and found) or (operation == UPDATE and not found):
        return  # as Chroma does: what is there is not added, what is not there is not updated
    if not found:
        found = connection.execute(
            "insert into embeddings(segment_id, embedding_id, seq_id) values (?, ?, ?) returning id",
            [collection.rows_segment, key, seq_id],
        ).fetchone()
    else:
        connection.execute("update embeddings set seq_id = ? where id = ?", [seq_id, found[0]])
    for name, value in metadata.items():
        _set(connection, found[0], name, value)


def _set(connection: Any, row_id: int, key: str, value: Any) -> None:
    for table in _metadata_tables(connection):
        connection.execute(f"delete from {table} where id = ? and key = ?", [row_id, key])
    if value is None:
        return
    table = "embedding_metadata_array" if isinstance(value, list) else "embedding_metadata"
    for single in value if isinstance(value, list) else [value]:
        connection.execute(
            f"insert into {table}(id, key, {_column(single)}) values (?, ?, ?)", [row_id, key, single]
        )


def _column(value: Any) -> str:
    if isinstance(value, bool):
        return "bool_value"
    if isinstance(value, int):
        return "int_value"
    return "float_value" if isinstance(value, float) else "string_value"


def _metadata_tables(connection: Any) -> list[str]:
    rows = connection.execute(
        "select name from sqlite_master where name in ('embedding_metadata', 'embedding_metadata_array')"
    )
    return [name for (name,) in rows]
