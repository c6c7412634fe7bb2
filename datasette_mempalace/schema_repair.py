"""Finds what other tools have taken away of a palace's schema, its triggers and indexes, and makes it again.

A new palace in memory tells what there should be.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Literal

import sqlite_utils
from datasette.utils.sqlite import sqlite3

from .errors import PalaceDamaged
from .schema import TOKENIZE, migrations

Part = Literal["trigger", "index"]
_PARTS = """
    select name, sql from sqlite_master
    where type = ? and sql is not null and tbl_name <> '_sqlite_migrations' order by name
"""
# By sqlite-utils, for the full-text index of a table.
_FULL_TEXT = ("ai", "ad", "au")


def missing(connection: Any, part: Part) -> dict[str, str]:
    """The triggers or indexes that a palace should have and has not, by name, each with its statement."""
    with closing(sqlite_utils.Database(memory=True)) as new:
        migrations.apply(new)
        wanted = dict(new.execute(_PARTS, [part]).fetchall())
    found = {name for name, _ in connection.execute(_PARTS, [part])}
    return {name: statement for name, statement in wanted.items() if name not in found}


def restore(connection: Any, part: Part) -> None:
    """Make the triggers or indexes again that are missing, and with its triggers a full-text index.

    Args:
        connection: an open connection in a transaction.
        part: which of both.
    Raises:
        PalaceDamaged: when the tables are no longer such that one can be made.
    """
    gone = missing(connection, part)
    db = sqlite_utils.Database(connection, recursive_triggers=True)
    for table in ("drawers", "closets"):
        if not gone.keys().isdisjoint(f"{table}_{name}" for name in _FULL_TEXT):
            db.table(table).disable_fts()
            db.table(table).enable_fts(["text"], create_triggers=True, tokenize=TOKENIZE)
    for name, statement in missing(connection, part).items():
        try:
            connection.execute(statement)
        except sqlite3.DatabaseError as error:
            raise PalaceDamaged(f"The {part} {name} cannot be made again: {error}.") from error
