"""The palace's tables, indexes, full-text indexes and triggers, as sqlite-utils migrations.

Triggers keep FTS5, the vectors and the change log right whoever writes: a row inserted, updated or deleted by plain
SQL is as good as one written by `drawers.py`. This module never touches Chroma and never embeds.
"""

from __future__ import annotations

from typing import Any

import sqlite_utils
from sqlite_utils import Migrations

from .errors import PalaceTooNew
from .moments import moment_of

MIGRATIONS = "datasette_mempalace"
TOKENIZE = "porter unicode61 remove_diacritics 2"
DRAWER_COLUMNS = (
    "drawer_id", "wing", "room", "text", "source_file", "chunk_index", "parent_drawer_id", "hall", "added_by",
    "filed_at", "authored_at", "content_date", "metadata",
)  # fmt: skip
CLOSET_COLUMNS = ("closet_id", "wing", "room", "source_file", "text", "metadata")

# All that pages count by.
PLACES = ("wing", "room", "filed_at", "authored_at", "content_date", "hall", "added_by", "source_file")
PLACES_INDEX = "idx_drawers_places"

# What is there for the palace itself, not for readers.
INNER_TABLES = (
    "drawer_vectors", "closet_vectors", "spare_vectors", "drawer_changes", "mempalace_settings", "_sqlite_migrations",
    "sqlite_sequence",
)  # fmt: skip

migrations = Migrations(MIGRATIONS)


@migrations()
def m001_drawers_and_closets(db: Any) -> None:
    """Drawers, closets, their vectors, the change log and the settings."""
    db["drawers"].create(
        {
            "id": int,
            "drawer_id": str,
            "wing": str,
            "room": str,
            "text": str,
            "source_file": str,
            "chunk_index": int,
            "parent_drawer_id": str,
            "hall": str,
            "added_by": str,
            "filed_at": str,
            "authored_at": str,
            "content_date": str,
            "metadata": str,
        },
        pk="id",
        not_null={"drawer_id", "text"},
        # For whoever inserts by plain SQL and gives nothing but a text.
        defaults={
            "drawer_id": "('drawer_' || lower(hex(randomblob(12))))",
            "filed_at": "(strftime('%Y-%m-%dT%H:%M:%S', 'now', 'localtime'))",
        },
    )
    db["drawers"].create_index(["drawer_id"], unique=True)
    for columns in (
        ["wing", "room"],
        ["room"],
        ["source_file", "chunk_index"],
        ["hall"],
        ["added_by"],
        ["filed_at"],
    ):
        db["drawers"].create_index(columns)
    db["drawers"].create_index(["parent_drawer_id", "chunk_index"])
    db.execute("create index idx_drawers_filed_moment on drawers(datetime(filed_at))")
    db["closets"].create(
        {
            "id": int,
            "closet_id": str,
            "wing": str,
            "room": str,
            "source_file": str,
            "text": str,
            "metadata": str,
        },
        pk="id",
        not_null={"closet_id", "text"},
    )
    db["closets"].create_index(["closet_id"], unique=True)
    db["closets"].create_index(["wing", "room"])
    db["closets"].create_index(["source_file"])
    for table in ("drawers", "closets"):
        db[table].enable_fts(["text"], create_triggers=True, tokenize=TOKENIZE)
    db["mempalace_settings"].create({"key": str, "value": str}, pk="key")


@migrations()
def m002_vectors_and_changes(db: Any) -> None:
    """Vectors that vanish with the text they stand for, and the log that the mirror follows."""
    db.execute(
        "create table drawer_changes (seq integer primary key autoincrement, kind text not null,"
        " row_id integer not null, change text not null)"
    )
    for kind in ("drawer", "closet"):
        db[f"{kind}_vectors"].create(
            {"id": int, "vector": bytes, "text_hash": str}, pk="id", not_null={"vector", "text_hash"}
        )
        db[f"{kind}_vectors"].create_index(["text_hash"])
        for statement in _triggers(kind):
            db.execute(statement)


@migrations()
def m003_spare_vectors(db: Any) -> None:
    """Vectors of texts that were just removed, kept until the next embedding in case the text only moved."""
    db["spare_vectors"].create(
        {"text_hash": str, "vector": bytes}, pk="text_hash", not_null={"text_hash", "vector"}
    )


@migrations()
def m004_dates_of_the_text(db: Any) -> None:
    """Windows over the dates that a text was written at or is about, as quick as over the filing date."""
    for column in ("authored_at", "content_date"):
        db.execute(f"create index idx_drawers_{column}_moment on drawers(datetime({column}))")


@migrations()
def m005_places(db: Any) -> None:
    """All that pages count by, side by side: they then read this index and never the texts."""
    db["drawers"].create_index(PLACES, index_name=PLACES_INDEX)


@migrations()
def m006_filed_beside(db: Any) -> None:
    """Lists with their dates, and all that is counted in a window of dates, from an index each and never the texts."""
    for columns in (("wing", "room"), ("source_file", "chunk_index"), ("hall",), ("added_by",)):
        name = f"idx_drawers_{'_'.join(columns)}"
        db.execute(f"drop index if exists {name}")
        db["drawers"].create_index([*columns, "filed_at"], index_name=name)
    db.execute("drop index if exists idx_drawers_filed_moment")


@migrations()
def m007_moments(db: Any) -> None:
    """Windows of dates from an index each that takes any text for a date, and holds all that pages count by."""
    for column in ("filed_at", "authored_at", "content_date"):
        db.execute(f"drop index if exists {moment_index(column)}")
        moment = moment_of(column)
        # Most drawers have no other date than the one they were filed at.
        partial = "" if column == "filed_at" else f" where {moment} is not null"
        db.execute(f"create index {moment_index(column)} on drawers({moment}, {', '.join(PLACES)}){partial}")


def moment_index(date_column: str) -> str:
    """The index of all that pages count by, in the order of a date column's moments."""
    return f"idx_drawers_{date_column}_moment"


def migrate(connection: Any) -> list[str]:
    """Bring a database's schema up to this version.

    Args:
        connection: an open sqlite3 connection that may write.
    Returns:
        the names of the migrations that were applied now.
    Raises:
        PalaceTooNew: when it has migrations that this version does not know; nothing is changed then.
    """
    refuse_newer(connection)
    db = sqlite_utils.Database(connection, recursive_triggers=True)
    before = {migration.name for migration in migrations.applied(db)}
    migrations.apply(db)
    return [migration.name for migration in migrations.applied(db) if migration.name not in before]


def refuse_newer(connection: Any) -> None:
    """Raise PalaceTooNew when the palace has migrations that this version does not know."""
    unknown = sorted(set(applied_migrations(connection)) - set(known_migrations()))
    if unknown:
        raise PalaceTooNew(
            f"This palace was written by a newer datasette-mempalace (it has {', '.join(unknown)}); "
            "upgrade with: pip install --upgrade datasette-mempalace"
        )


def pending_migrations(connection: Any) -> list[str]:
    """The names of migrations this version knows and the palace does not have yet."""
    applied = set(applied_migrations(connection))
    return [name for name in known_migrations() if name not in applied]


def known_migrations() -> list[str]:
    """The names of all migrations of this version, oldest first."""
    return [migration.name for migration in migrations.pending(sqlite_utils.Database(memory=True))]


def applied_migrations(connection: Any) -> list[str]:
    """The names of the migrations that stand in a database, of whatever version; none in another database."""
    columns = {row[1] for row in connection.execute("pragma table_info(_sqlite_migrations)")}
    if not {"migration_set", "name"} <= columns:
        return []
    rows = connection.execute("select name from _sqlite_migrations where migration_set = ?", [MIGRATIONS])
    return [row[0] for row in rows]


def is_palace(connection: Any) -> bool:
    """Whether a database is a palace, be it a damaged one: it has two of a palace's own tables, or its migrations."""
    query = """
        select count(*) from sqlite_master where type = 'table'
        and name in ('drawers', 'mempalace_settings', 'drawer_vectors', 'drawer_changes')
    """
    return bool(connection.execute(query).fetchone()[0] > 1) or bool(applied_migrations(connection))


def attach_terms(connection: Any) -> None:
    """Give a connection `drawers_fts_terms`: in how many drawers each stem of the full-text index stands.

    In the connection's own temporary schema: in the database, tools that rebuild every full-text table would take it
    for one and fail.
    """
    # The temporary schema is the connection's own, but SQLite holds it to the pragma all the same.
    query_only = connection.execute("pragma query_only").fetchone()[0]
    connection.execute("pragma query_only = off")
    connection.execute(
        "create virtual table if not exists temp.drawers_fts_terms using fts5vocab('main', 'drawers_fts', 'row')"
    )
    if query_only:
        connection.execute("pragma query_only = on")


def get_setting(connection: Any, key: str) -> str | None:
    """One value of `mempalace_settings`, or None."""
    row = connection.execute("select value from mempalace_settings where key = ?", [key]).fetchone()
    return row[0] if row else None


def get_number(connection: Any, key: str) -> int | None:
    """One value of `mempalace_settings` as a whole number; None when there is none that can be read."""
    recorded = get_setting(connection, key)
    return int(recorded) if recorded and recorded.isdecimal() else None


def set_setting(connection: Any, key: str, value: str | None) -> None:
    """Write one value of `mempalace_settings`; None removes it."""
    if value is None:
        connection.execute("delete from mempalace_settings where key = ?", [key])
        return
    connection.execute(
        "insert into mempalace_settings(key, value) values (?, ?) on conflict(key) do update set value = excluded.value",
        [key, value],
    )


def _triggers(kind: str) -> list[str]:
    """Triggers of drawers or closets.

    The one before insert covers `insert or replace`, which by default removes the old row without firing its delete
    trigger: the old row's id is logged, and the mirror then finds whether it is still there.
    """
    table, vectors, natural = f"{kind}s", f"{kind}_vectors", f"{kind}_id"

    def log(row_id: str, change: str) -> str:
        return f"insert into drawer_changes(kind, row_id, change) values ('{kind}', {row_id}, '{change}');"

    return [
        f"create trigger {table}_log_replace before insert on {table} begin"
        f" insert into drawer_changes(kind, row_id, change) select '{kind}', id, 'replace' from {table}"
        f" where {natural} = new.{natural} or id = new.id; end",
        f"create trigger {table}_log_insert after insert on {table} begin"
        f" delete from {vectors} where id = new.id; {log('new.id', 'insert')} end",
        f"create trigger {table}_log_update after update on {table} begin"
        f" delete from {vectors} where id = old.id and (new.id <> old.id or new.text is not old.text);"
        f" {log('old.id', 'update')}"
        f" insert into drawer_changes(kind, row_id, change) select '{kind}', new.id, 'update'"
        " where new.id <> old.id; end",
        f"create trigger {table}_log_delete after delete on {table} begin"
        f" delete from {vectors} where id = old.id; {log('old.id', 'delete')} end",
        f"create trigger {vectors}_log_insert after insert on {vectors} begin {log('new.id', 'vector')} end",
        f"create trigger {vectors}_log_update after update on {vectors} begin {log('new.id', 'vector')} end",
        f"create trigger {vectors}_log_delete after delete on {vectors} begin {log('old.id', 'vector')} end",
    ]
