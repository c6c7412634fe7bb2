"""Reads an export back: every drawer and closet as it was, null and empty told apart, with its vector where it has one.

A row that is here and equal is left untouched; one with the same id and anything else is replaced. Rows keep their
integer ids where these are free.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from ..drawers import Report, batched
from ..errors import EmbedderMismatch, EmbedderUnavailable
from ..interchange import BadValue, Header, RawText, read_columns, vector_from_json
from ..palace import Palace
from ..schema import CLOSET_COLUMNS, DRAWER_COLUMNS, get_setting, set_setting
from ..vectors import KINDS, Kind, embedded_hash, is_vector_of, stored_dimension
from .decoding import Peekable, as_utf8
from .json_rows import ndjson_rows
from .restoring_related import Related, is_related
from .rows import BadRow, Row

BATCH = 500
LONGEST_HEADER = 65_536
SECONDS = 10.0  # to wait for a model's first answer
_COLUMNS: dict[Kind, tuple[str, ...]] = {"drawer": DRAWER_COLUMNS, "closet": CLOSET_COLUMNS}


@dataclass
class Restored:
    """What was read back.

    Attributes:
        drawers, closets: what changed in the palace.
        vectors: how many stored vectors were taken, so that nothing has to be embedded for them.
        useless_vectors: how many could not be: they belong to another text, or are no vectors of a model.
        related: how many lines of what `import-palace` files beside drawers.
        bad_rows: how many lines could not be used.
        missing: how many lines the header promises that are not there.
    """

    drawers: Report = field(default_factory=Report)
    closets: Report = field(default_factory=Report)
    vectors: int = 0
    useless_vectors: int = 0
    related: int = 0
    bad_rows: int = 0
    missing: int = 0


@dataclass(frozen=True)
class _Record:
    kind: Kind
    row_id: int | None
    values: dict[str, Any]
    vector: bytes | None
    text_hash: str | None


def find_header(stream: Peekable) -> Header | None:
    """The header of an export, or None when the file is none; nothing is taken off the stream.

    Raises:
        BadInput: when a newer version wrote it.
    """
    first = stream.peek(LONGEST_HEADER).lstrip().partition(b"\n")[0]
    try:
        return Header.of(json.loads(first.decode()))
    except (ValueError, RecursionError):
        return None


def refuse_other_model(header: Header, model: str, palace: str) -> None:
    """Raise EmbedderMismatch when an export's vectors come from another model than a palace's.

    Args:
        header: the export's.
        model: the palace's.
        palace: its file, for the sentence.
    """
    if header.vectors and header.embedding_model != model:
        raise EmbedderMismatch(
            f"The export's vectors come from the embedding model {header.embedding_model}, those of {palace} from {model}, "
            "and they cannot be compared. Make a new palace with that model first (datasette mempalace init --embedder), "
            f"or take the texts alone and embed them with {model}: add --re-embed."
        )


def restore(
    palace: Palace, stream: IO[bytes], *, vectors: bool = True, on_bad: Callable[[BadRow], None] | None = None
) -> Restored:
    """Put everything of an export into a palace. It embeds nothing.

    Args:
        palace: an open palace.
        stream: the export, binary, from its first line.
        vectors: whether to take its vectors.
        on_bad: called with each line that cannot be used.
    Returns:
        what was done.
    Raises:
        EmbedderMismatch: when its vectors come from another model than the palace's; nothing is changed then.
    """
    text = io.TextIOWrapper(
        io.BufferedReader(as_utf8(stream)), encoding="utf-8", errors="surrogateescape", newline="\n"
    )
    lines = ndjson_rows(text)
    first = next(lines)
    header = Header.of(first.value) if isinstance(first, Row) else None
    assert header, "the caller has looked for it"
    done = Restored()
    with palace.reader() as connection:
        model = get_setting(connection, "embedding_model") or ""
        dimension = stored_dimension(connection)
    if vectors:
        refuse_other_model(header, model, palace.path)
    if vectors and header.vectors and dimension is None:
        dimension = _dimension_of_model(palace) or header.embedding_dimension
    read, related = 0, Related()
    try:
        for batch in batched(_records(lines, done, related, on_bad), BATCH):
            with palace.writer() as connection:
                for record in batch:
                    row_id = _write(connection, record, done)
                    if vectors and record.vector is not None:
                        _write_vector(connection, record, row_id, dimension or 0, done)
            read += len(batch)
    finally:
        text.detach()
    related.put_into(palace)
    done.related = related.count
    promised = header.drawers + header.closets + header.related
    done.missing = max(0, promised - read - done.related - done.bad_rows)
    return done


def _records(
    lines: Iterator[Row | BadRow],
    done: Restored,
    related: Related,
    on_bad: Callable[[BadRow], None] | None,
) -> Iterator[_Record]:
    for line in lines:
        bad = line if isinstance(line, BadRow) else None
        if isinstance(line, Row):
            try:
                if is_related(line.value):
                    related.take(line.value)
                    continue
                record = _record(line.value)
            except BadValue as error:
                bad = BadRow(line.line, str(error))
            else:
                yield record
        if bad:
            done.bad_rows += 1
            if on_bad:
                on_bad(bad)


def _record(value: Any) -> _Record:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind not in KINDS:
        raise BadValue("neither a drawer nor a closet")
    columns, key = _COLUMNS[kind], f"{kind}_id"
    unknown = sorted(value.keys() - {*columns, "kind", "id", "vector", "text_hash"})
    if unknown:
        raise BadValue(f"no column of a {kind} is called {unknown[0][:40]!r}")
    values = read_columns(value, columns)
    for name in (key, "text"):
        if values[name] is None:
            raise BadValue(f"it has no {name}")
    row_id = value.get("id")
    if row_id is not None and (type(row_id) is not int or not -(2**63) <= row_id < 2**63):
        raise BadValue(f"id: {str(row_id)[:40]!r} is no whole number of at most 64 bits")
    return _Record(kind, row_id, values, _vector(value.get("vector")), value.get("text_hash"))


def _vector(value: Any) -> bytes | None:
    """A line's vector; what cannot be read as one is empty, and costs its drawer nothing but an embedding."""
    try:
        return None if value is None else vector_from_json(value)
    except BadValue:
        return b""


def _write(connection: Any, record: _Record, done: Restored) -> int:
    """Write a row unless it is there and equal; returns its integer id."""
    kind, values = record.kind, record.values
    table, key, columns = f"{kind}s", f"{kind}_id", _COLUMNS[kind]
    report = done.drawers if kind == "drawer" else done.closets
    marks = {name: _mark(name, values[name]) for name in columns}
    listed = ", ".join(marks.values())
    found = connection.execute(
        f"select id, ({', '.join(columns)}) is ({listed}) from {table} where {key} = {marks[key]}", values
    ).fetchone()
    if found is None:
        report.added += 1
        connection.execute(
            f"insert into {table} (id, {', '.join(columns)})"
            f" values ((select :row_id where not exists (select 1 from {table} where id = :row_id)), {listed})",
            {**values, "row_id": record.row_id},
        )
        made = connection.execute(f"select id from {table} where {key} = {marks[key]}", values).fetchone()
        return int(made[0])
    if found[1]:
        report.unchanged += 1
    else:
        report.updated += 1
        changes = ", ".join(f"{name} = {mark}" for name, mark in marks.items())
        connection.execute(f"update {table} set {changes} where id = :row_id", {**values, "row_id": found[0]})
    return int(found[0])


def _write_vector(connection: Any, record: _Record, row_id: int, dimension: int, done: Restored) -> None:
    text = record.values["text"]
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    belongs = record.text_hash == embedded_hash(record.kind, text)
    if not belongs or not is_vector_of(record.kind, text, record.vector, dimension):
        done.useless_vectors += 1
        return
    if not done.vectors:
        _note_dimension(connection, dimension)
    done.vectors += connection.execute(
        f"insert into {record.kind}_vectors (id, vector, text_hash) values (?, ?, ?) on conflict(id) do nothing",
        [row_id, record.vector, record.text_hash],
    ).rowcount


def _dimension_of_model(palace: Palace) -> int | None:
    """What the model itself says, for a palace without vectors; None when it cannot be asked here.

    An edited export can be wrong in its header and all its vectors alike, and a palace that took them could embed nothing.
    """
    if palace.embedder.dimension is not None:
        return palace.embedder.dimension
    try:
        return len(palace.embedder.embed_query("dimension", SECONDS))
    except EmbedderUnavailable:
        return None


def _note_dimension(connection: Any, dimension: int) -> None:
    if stored_dimension(connection) is None:
        set_setting(connection, "embedding_dimension", str(dimension))


def _mark(name: str, value: Any) -> str:
    """A parameter; a text that is not UTF-8 goes in as bytes and is made a text again."""
    return f"cast(:{name} as text)" if isinstance(value, RawText) else f":{name}"
