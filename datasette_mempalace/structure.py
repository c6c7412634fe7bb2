"""What a palace is made of: tables, full-text indexes, indexes and triggers. What of it is missing, and making it again.

What should be there is what the migrations make in an empty database, so that nothing is listed here a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import sqlite_utils
from datasette.utils.sqlite import sqlite3

from . import beside, schema
from .errors import PalaceDamaged

RECORD = "_sqlite_migrations"
FULL_TEXT = ("drawers_fts", "closets_fts")
SAID = {
    "drawers": "the drawers themselves",
    "closets": "the closets",
    "drawers_fts": "the full-text index of drawers",
    "closets_fts": "the full-text index of closets",
    "drawer_vectors": "the vectors of drawers",
    "closet_vectors": "the vectors of closets",
    "spare_vectors": "vectors kept for texts that only moved",
    "drawer_changes": "the change log",
    "mempalace_settings": "the palace's settings",
    RECORD: "the record of migrations",
}
# Made by sqlite-utils and by SQLite, beside what the migrations name.
TABLES = frozenset(SAID) | {
    f"{index}_{part}" for index in FULL_TEXT for part in ("data", "idx", "docsize", "config")
}
RESTORE = "restore a backup, or save what can be read with: sqlite3 OLD .recover | sqlite3 NEW"
FIX = "run: datasette mempalace doctor PALACE --fix"


@dataclass
class Made:
    """What was made again, by name; of a full-text index its own alone."""

    tables: list[str] = field(default_factory=list)
    triggers: list[str] = field(default_factory=list)
    indexes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """One table, index or trigger.

    Attributes:
        type, name, sql: as in `sqlite_master`.
        of: the table that it belongs to, or of whose full-text index it is a part.
        columns: of a table, those without which it is of no use.
    """

    type: str
    name: str
    of: str
    sql: str
    columns: tuple[str, ...] = ()


def missing_tables(connection: Any) -> dict[str, list[str]]:
    """The tables that a palace should have and has not, by name, of a full-text index its own; none in a whole palace.

    Each has the columns that it has lost, none where it is gone as a whole. What has no use without them counts as
    missing; drawers and closets are `lost_columns`' to tell. So does a record of migrations that says less than what is there.
    """
    found, wanted = _found(connection), _expected(connection)
    tables = [part for part in wanted.values() if part.type == "table"]
    gone: dict[str, list[str]] = {part.of: [] for part in tables if part.name not in found}
    for part in tables:
        if part.name in found and (lost := _lost(connection, part.name, part.columns)):
            gone[part.of] = lost if part.of == part.name else []
    if RECORD not in gone and _has_lost_record(connection):
        gone[RECORD] = []
    return {name: gone[name] for name in SAID if name in gone}


def missing(connection: Any, part: Literal["trigger", "index"]) -> list[str]:
    """The triggers or indexes that a palace should have and has not, by name."""
    found = _found(connection)
    return sorted(
        one.name for one in _expected(connection).values() if one.type == part and one.name not in found
    )


def lost_columns(connection: Any) -> str | None:
    """What nothing can make again, as a sentence: the drawers, or columns of drawers or closets; None when they are there."""
    is_older = bool(schema.pending_migrations(connection))  # a migration may bring columns
    for table, columns in (("drawers", schema.DRAWER_COLUMNS), ("closets", schema.CLOSET_COLUMNS)):
        is_there = table in _found(connection)
        if not is_there and table == "drawers":
            return "the table drawers is gone, and the texts with it"
        gone = _lost(connection, table, ("id", *columns)) if is_there else []
        if gone and not is_older:
            return f"the table {table} has lost {', '.join(gone)}, or has it under another name"
    return None


def _lost(connection: Any, table: str, columns: Collection[str]) -> list[str]:
    if not columns:
        return []
    there = {row[1] for row in connection.execute(f"pragma table_info({table})")}
    return [column for column in columns if column not in there]


def is_incomplete(connection: Any) -> bool:
    """Whether anything is missing that can be made again."""
    return bool(missing_tables(connection) or missing(connection, "trigger") or missing(connection, "index"))


def refuse_damaged(connection: Any, name: str) -> None:
    """Raise PalaceDamaged, with what to do, when tables of a palace, or columns of its drawers, are missing."""
    hopeless = lost_columns(connection)
    if hopeless:
        raise PalaceDamaged(f"{name} is damaged: {hopeless}; {RESTORE}")
    gone = missing_tables(connection)
    if gone:
        raise PalaceDamaged(f"{name} is damaged, {in_words(gone)}; {FIX.replace('PALACE', name)}")


def in_words(gone: Mapping[str, list[str]]) -> str:
    """Tables that are missing, as the end of a sentence."""
    told = (
        f"{SAID[name]} ({name}"
        + (f" has lost {', '.join(lost)}, or has it under another name)" if lost else ")")
        for name, lost in gone.items()
    )
    return f"missing: {', '.join(told)}"


def remake(connection: Any) -> Made:
    """Make again what is missing, empty but for full-text indexes, which are filled from their tables.

    Args:
        connection: an open connection in a transaction.
    Returns:
        what was made.
    Raises:
        PalaceDamaged: when the drawers or columns of theirs are gone, or the rows no longer allow an index.
    """
    hopeless = lost_columns(connection)
    if hopeless:
        raise PalaceDamaged(f"Nothing was mended: {hopeless}; {RESTORE}")
    made, has_lost_record, wanted = Made(), _has_lost_record(connection), _expected(connection)
    for name, lost in missing_tables(connection).items():
        made.tables.append(name)
        if lost:  # what is left of it is of no use
            connection.execute(f"drop table {name}")
        parts = [part for part in wanted.values() if part.type == "table" and part.of == name]
        _make_full_text(connection, name, parts) if name in FULL_TEXT else _make(connection, parts)
    found = _found(connection)
    for part in wanted.values():
        # Where it is not known which migrations a palace has had, one of this name may be an older one; where a column of
        # a table had another name, SQLite has written that into the triggers.
        may_differ = has_lost_record or bool(made.tables)
        if part.type == "table" or (part.name in found and not (may_differ and found[part.name] != part.sql)):
            continue
        try:
            connection.execute(f"drop {part.type} if exists [{part.name}]")
            connection.execute(part.sql)
        except sqlite3.DatabaseError as error:
            raise PalaceDamaged(f"The {part.type} {part.name} cannot be made again: {error}.") from error
        (made.triggers if part.type == "trigger" else made.indexes).append(part.name)
        for statement in beside.catch_up(part.of) if part.type == "trigger" else ():
            connection.execute(statement)
    if has_lost_record:
        _record_all(connection)
    return made


def _make(connection: Any, parts: Iterable[Part]) -> None:
    for part in parts:
        if part.name not in _found(connection):
            connection.execute(part.sql)


def _make_full_text(connection: Any, name: str, parts: Iterable[Part]) -> None:
    """Make a full-text index again and fill it, though some of its tables may be left."""
    found = _found(connection)
    for part in parts:
        if part.name in found and _lost(connection, part.name, part.columns):
            connection.execute(f"drop table {part.name}")
    if name in found:
        # SQLite drops only what it can open, and for that FTS5 needs what an empty index has.
        _make(connection, parts)
        connection.execute(f"insert or ignore into {name}_config(k, v) values ('version', 4)")
        connection.execute(f"insert or ignore into {name}_data(id, block) values (1, x''), (10, x'00000000')")
        connection.execute(f"drop table {name}")
    for part in parts:
        connection.execute(f"drop table if exists {part.name}")
    connection.execute(next(part.sql for part in parts if part.name == name))
    connection.execute(f"insert into {name}({name}) values ('rebuild')")


def _found(connection: Any) -> dict[str, str | None]:
    """What is there, by name, with its SQL."""
    return dict(connection.execute("select name, sql from sqlite_master"))


@cache
def _steps() -> dict[str, dict[str, Part]]:
    """What is there after each migration, by its name."""
    db = sqlite_utils.Database(memory=True)
    names = schema.known_migrations()
    steps = {}
    for number, name in enumerate(names):
        schema.migrations.apply(db, stop_before=names[number + 1 :])
        rows = db.execute(
            "select type, name, tbl_name, sql from sqlite_master where sql is not null and name <> 'sqlite_sequence'"
        )
        steps[name] = {
            row[1]: Part(row[0], row[1], _of(row[2]), row[3], _needed(db, row[1])) for row in rows.fetchall()
        }
    return steps


def _needed(db: Any, name: str) -> tuple[str, ...]:
    if name == RECORD:  # sqlite-utils' own, which may have more in another version
        return ("migration_set", "name", "applied_at")
    inner = name in schema.INNER_TABLES or _of(name) != name
    return tuple(row[1] for row in db.execute(f"pragma table_info({name})")) if inner else ()


@cache
def _beside() -> dict[str, Part]:
    """The indexes and triggers of the tables that `import-palace` adds, each `of` the table that needs it."""
    db = sqlite_utils.Database(memory=True)
    schema.migrations.apply(db)
    parts: dict[str, Part] = {}
    query = "select type, name, sql from sqlite_master where sql is not null"
    known = {name for _, name, _ in db.execute(query)}
    for table in beside.TABLES:
        beside.make(db, table)
        for kind, name, sql in db.execute(query).fetchall():
            if name not in known and kind != "table":
                parts[name] = Part(kind, name, table, sql)
            known.add(name)
    return parts


def _of(table: str) -> str:
    return next((index for index in FULL_TEXT if table.startswith(f"{index}_")), table)


def _expected(connection: Any) -> dict[str, Part]:
    """What should be there by the migrations that the palace has had; all there is, where their record was lost."""
    steps, applied, found = _steps(), set(schema.applied_migrations(connection)), _found(connection)
    # Another program may have a table of such a name in a palace without imports.
    added = {
        name: part
        for name, part in (_beside().items() if beside.ORIGINS[0] in found else ())
        if part.of in found
    }
    if _has_lost_record(connection):
        return list(steps.values())[-1] | added
    return next(parts for name, parts in reversed(steps.items()) if name in applied) | added


def _has_lost_record(connection: Any) -> bool:
    """Whether the record of migrations lacks one that has been: something that it makes is there."""
    if not schema.applied_migrations(connection):
        return True
    pending, found = set(schema.pending_migrations(connection)), _found(connection)
    before: dict[str, Part] = {}
    for name, parts in _steps().items() if pending else ():
        new = [part for key, part in parts.items() if key not in before] if name in pending else []
        # An index of the same name may be an older one.
        if any(part.name in found and (part.type == "table" or found[part.name] == part.sql) for part in new):
            return True
        before = parts
    return False


def _record_all(connection: Any) -> None:
    recorded = set(schema.applied_migrations(connection))
    for name in schema.known_migrations():
        if name not in recorded:
            connection.execute(
                f"insert into {RECORD}(migration_set, name, applied_at) values (?, ?, datetime('now'))",
                [schema.MIGRATIONS, name],
            )
