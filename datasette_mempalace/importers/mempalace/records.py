"""A row of MemPalace's as a row of ours: known keys become columns, every key stays in `metadata`. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...schema import CLOSET_COLUMNS, DRAWER_COLUMNS
from .chroma_sql import Record

Row = dict[str, Any]
_NOT_KEYS = {"drawer_id", "closet_id", "text", "metadata", "chunk_index"}


def bookkeeping(record: Record) -> str | None:
    """Why a row is MemPalace's bookkeeping and no text of anybody's, or None."""
    if record.id.startswith("_reg_") or record.metadata.get("ingest_mode") == "registry":
        return "notes of MemPalace's that a conversation has been read"
    if record.id.startswith("sentinel_") or record.metadata.get("is_sentinel") is True:
        return "notes of MemPalace's that a file holds no text"
    return None


def as_drawer(record: Record) -> Row:
    """A row of the table `drawers`; what MemPalace does not know is NULL, and its "" counts as that."""
    row = _columns(record, DRAWER_COLUMNS)
    row["drawer_id"] = record.id
    row["chunk_index"] = _whole(record.metadata.get("chunk_index"))
    return row


def as_closet(record: Record) -> Row:
    """A row of the table `closets`."""
    return {**_columns(record, CLOSET_COLUMNS), "closet_id": record.id}


def _columns(record: Record, columns: tuple[str, ...]) -> Row:
    known: Row = {column: _text(record.metadata.get(column)) for column in columns if column not in _NOT_KEYS}
    return {**known, "text": record.document or "", "metadata": as_json(record.metadata)}


def as_json(content: Mapping[str, Any]) -> str:
    """A mapping as JSON that does not depend on the order of its keys: equal rows must be equal."""
    return json.dumps(dict(content), ensure_ascii=False, sort_keys=True, default=str)


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
