"""The write side: add, replace and delete drawers and closets. SQLite only; vectors and the mirror follow later.

Rows are committed before anything is embedded: what was acknowledged is found by its words at once, and by its
meaning as soon as `vectors.embed_pending` has run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from .chunking import chunk, find_definitions, find_headings
from .closets import Place, build_closets
from .palace import Palace
from .schema import CLOSET_COLUMNS, DRAWER_COLUMNS
from .scope import Scope
from .text import clean_text, make_id

Item = TypeVar("Item")
Row = dict[str, Any]
BATCH = 500
# Where a line that begins with "#" is a comment, not a heading.
CODE_ENDINGS = (
    ".py", ".pyi", ".js", ".mjs", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".c", ".h", ".cc", ".cpp",
    ".hpp", ".cs", ".rb", ".php", ".pl", ".sh", ".bash", ".zsh", ".fish", ".lua", ".r", ".jl", ".swift", ".scala",
    ".ex", ".exs", ".nim", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".conf", ".mk", ".cmake", ".sql", "dockerfile",
    "makefile",
)  # fmt: skip


@dataclass
class Drawer:
    """One verbatim text and where it lies. What is None is not known; `drawer_id` and `filed_at` are then made."""

    text: str
    drawer_id: str | None = None
    wing: str | None = None
    room: str | None = None
    source_file: str | None = None
    chunk_index: int | None = None
    parent_drawer_id: str | None = None
    hall: str | None = None
    added_by: str | None = None
    filed_at: str | None = None
    authored_at: str | None = None
    content_date: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Source:
    """A whole text to be cut into drawers: a file, a page, a conversation; `is_code` None goes by the name's ending."""

    source_file: str
    text: str
    wing: str | None = None
    room: str | None = None
    added_by: str | None = None
    filed_at: str | None = None
    content_date: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_code: bool | None = None

    @property
    def headings(self) -> list[tuple[int, str]]:
        """(offset, title) of its headings, or of its definitions where it is source code."""
        code = self.source_file.lower().endswith(CODE_ENDINGS) if self.is_code is None else self.is_code
        return find_definitions(self.text) if code else find_headings(self.text)


@dataclass
class Report:
    """What a write did, in drawers; `replaced_characters` counts lone surrogates that became U+FFFD."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    replaced_characters: int = 0

    def __iadd__(self, other: Report) -> Report:
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))
        return self


def put_drawers(palace: Palace, drawers: Iterable[Drawer]) -> Report:
    """Add drawers, or update those whose `drawer_id` is there already.

    Args:
        palace: the palace.
        drawers: any number, taken in batches; each batch is committed as a whole.
    Returns:
        what was done. A drawer that equals the stored one is left untouched, its `filed_at` too.
    Raises:
        PalaceReadOnly: when nothing may be written.
    """
    report = Report()
    for batch in batched(drawers, BATCH):
        rows = [_row(drawer, report) for drawer in batch]
        with palace.writer() as connection:
            _write(connection, "drawers", "drawer_id", DRAWER_COLUMNS, rows, report)
    return report


def put_source(palace: Palace, source: Source) -> Report:
    """File a whole source: chunk it, replace what changed, keep what did not, rebuild its closets.

    Args:
        palace: the palace.
        source: the source; drawers of the same `source_file` and `added_by` that it no longer has are removed.
    Returns:
        what was done.
    Raises:
        PalaceReadOnly: when nothing may be written.
    """
    report = Report()
    text, report.replaced_characters = clean_text(source.text)
    chunks = chunk(text, headings=replace(source, text=text).headings)
    seen: dict[str, int] = {}
    rows = []
    for index, piece in enumerate(chunks):
        # The same passage twice in one source is two drawers: the count keeps their ids apart.
        seen[piece.text] = seen.get(piece.text, 0) + 1
        place = {
            "line_start": piece.line_start,
            "line_end": piece.line_end,
            "char_start": piece.start,
            "char_end": piece.end,
            "heading": piece.heading,
        }
        drawer = Drawer(
            text=piece.text,
            drawer_id=make_id("drawer", source.source_file, seen[piece.text], piece.text),
            wing=source.wing,
            room=source.room,
            source_file=source.source_file,
            chunk_index=index,
            added_by=source.added_by,
            filed_at=source.filed_at,
            content_date=source.content_date,
            metadata={**source.metadata, **{key: value for key, value in place.items() if value is not None}},
        )
        rows.append(_row(drawer, report))
    closets = build_closets(
        Place(source.source_file, source.wing, source.room, source.added_by),
        chunks,
        [row["drawer_id"] for row in rows],
    )
    with palace.writer() as connection:
        _write(connection, "drawers", "drawer_id", DRAWER_COLUMNS, rows, report)
        report.removed = _remove_others(connection, rows, source)
        _write(connection, "closets", "closet_id", CLOSET_COLUMNS, closets, Report())
        keep = json.dumps([closet["closet_id"] for closet in closets])
        connection.execute(
            "delete from closets where source_file = ? and closet_id not in (select value from json_each(?))"
            " and case when json_valid(metadata) then json_extract(metadata, '$.added_by') else '?' end is ?",
            [source.source_file, keep, source.added_by],
        )
    return report


def remove_sources(palace: Palace, source_files: Iterable[str], added_by: str | None = None) -> int:
    """Delete the drawers and closets of sources.

    Args:
        palace: the palace.
        source_files: full stored names.
        added_by: only drawers filed by this; None for whoever filed them.
    Returns:
        how many drawers were deleted.
    """
    deleted = 0
    for batch in batched(source_files, BATCH):
        names = json.dumps(batch)
        where = (
            "source_file in (select value from json_each(:names))"
            " and (:added_by is null or added_by = :added_by)"
        )
        with palace.writer() as connection:
            deleted += _remove_moved(connection, where, {"names": names, "added_by": added_by})
            _remove_closets_without_drawers(connection, names)
    return deleted


def delete_drawers(palace: Palace, scope: Scope) -> int:
    """Delete every drawer of a scope, and the closets of sources that have no drawer left; in batches.

    Returns:
        how many drawers were deleted.
    """
    where, parameters = scope.where()
    with palace.reader() as connection:
        found = connection.execute(
            f"select id, source_file from drawers where {where}", parameters
        ).fetchall()
    deleted = 0
    for batch in batched(found, BATCH):
        ids = json.dumps([row_id for row_id, _ in batch])
        with palace.writer() as connection:
            # The scope again: who has left it meanwhile stays.
            deleted += connection.execute(
                f"delete from drawers where id in (select value from json_each(:batch)) and {where}",
                {**parameters, "batch": ids},
            ).rowcount
            sources = sorted({source for _, source in batch if isinstance(source, str)})
            _remove_closets_without_drawers(connection, json.dumps(sources))
    return deleted


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Items in lists of at most `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _row(drawer: Drawer, report: Report) -> Row:
    """A drawer as a row that SQLite can hold, what had to be replaced counted in the report."""
    row: Row = {}
    for column in DRAWER_COLUMNS:
        value = getattr(drawer, column)
        if column == "metadata":
            value = json.dumps(dict(value), ensure_ascii=False, default=str)
        if isinstance(value, str):
            value, replaced = clean_text(value)
            report.replaced_characters += replaced
        row[column] = value
    row["drawer_id"] = row["drawer_id"] or make_id(
        "drawer", row["wing"], row["room"], row["source_file"], row["chunk_index"], row["text"]
    )
    return row


def _write(
    connection: Any, table: str, key: str, columns: Sequence[str], rows: Sequence[Row], report: Report
) -> None:
    """Insert rows, update those that differ, leave equal ones alone.

    A row without `filed_at` keeps the stored one, and gets the present time when it is new or its text has changed.
    """
    stored = _stored(connection, table, key, columns, [row[key] for row in rows])
    now = datetime.now().isoformat(timespec="seconds")
    for row in rows:
        old = stored.get(row[key])
        compared = [column for column in columns if not (column == "filed_at" and row[column] is None)]
        if old is not None and all(old[column] == row[column] for column in compared):
            report.unchanged += 1
            continue
        if "filed_at" in row and row["filed_at"] is None:
            row["filed_at"] = old["filed_at"] if old and old["text"] == row["text"] else now
        names = ", ".join(columns)
        marks = ", ".join(f":{column}" for column in columns)
        changes = ", ".join(f"{column} = excluded.{column}" for column in columns if column != key)
        connection.execute(
            f"insert into {table} ({names}) values ({marks}) on conflict({key}) do update set {changes}", row
        )
        stored[row[key]] = row
        if old is None:
            report.added += 1
        else:
            report.updated += 1


def _stored(
    connection: Any, table: str, key: str, columns: Sequence[str], keys: Sequence[str]
) -> dict[str, Row]:
    rows = connection.execute(
        f"select {', '.join(columns)} from {table} where {key} in (select value from json_each(?))",
        [json.dumps(keys)],
    )
    return {row[columns.index(key)]: dict(zip(columns, row, strict=True)) for row in rows}


def _remove_others(connection: Any, rows: Sequence[Row], source: Source) -> int:
    where = (
        "source_file = :source_file and added_by is :added_by"
        " and drawer_id not in (select value from json_each(:keep))"
    )
    keep = json.dumps([row["drawer_id"] for row in rows])
    return _remove_moved(
        connection, where, {"source_file": source.source_file, "added_by": source.added_by, "keep": keep}
    )


def _remove_moved(connection: Any, where: str, parameters: dict[str, Any]) -> int:
    """Delete drawers whose text may only have moved to another source: their vectors are spared for it."""
    connection.execute(
        "insert or ignore into spare_vectors(text_hash, vector) select text_hash, vector from drawer_vectors"
        f" where id in (select id from drawers where {where})",
        parameters,
    )
    deleted: int = connection.execute(f"delete from drawers where {where}", parameters).rowcount
    return deleted


def _remove_closets_without_drawers(connection: Any, names: str) -> None:
    connection.execute(
        "delete from closets where source_file in (select value from json_each(?))"
        " and not exists (select 1 from drawers where drawers.source_file = closets.source_file)",
        [names],
    )
