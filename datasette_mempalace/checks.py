"""The single checks of a palace, but for those of its vectors. Each looks at one thing, changes nothing in the palace, and tells what it has found.

A sentence in `says` and `help` names no path and no host, so that it may be shown to whoever may see the palace; what a
library or the system has said stands in `cause`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasette.utils.sqlite import sqlite3

from .change_log import horizon, last_change, last_gap
from .errors import MirrorOwned, MirrorUnavailable
from .finding import Finding
from .palace import Palace
from .pitfalls import permission_pitfalls
from .sql_tables import why_off
from .structure import FIX, RESTORE, in_words, lost_columns, missing, missing_tables
from .text import counted


def database_file(connection: Any) -> Finding:
    """SQLite's own examination of the file."""
    try:
        found = [row[0] for row in connection.execute("pragma integrity_check(5)")]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found == ["ok"]:
        return Finding("database file", True, "SQLite's integrity check found nothing wrong")
    return Finding(
        "database file", False, "SQLite's integrity check found damage", RESTORE, "; ".join(map(str, found))
    )


def tables(connection: Any) -> Finding:
    """Whether the tables are there, without which nothing else can be looked at."""
    gone, hopeless = missing_tables(connection), lost_columns(connection)
    if hopeless:
        return Finding("tables", False, hopeless, RESTORE)
    if gone:
        return Finding("tables", False, in_words(gone), FIX)
    return Finding("tables", True, "none is missing")


def full_text(palace: Palace, table: str) -> Finding:
    """Whether the full-text index matches its table; asking FTS5 itself takes a palace that may be written."""
    check = f"full-text index of {table}"
    if palace.read_only:
        with palace.reader() as connection:
            return full_text_rows(connection, table)
    try:
        with palace.writer() as connection:
            # Rank 1 holds the index against the table, not only against itself.
            connection.execute(f"insert into {table}_fts({table}_fts, rank) values ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        return Finding(check, False, "it does not match the table", FIX, str(error))
    return Finding(check, True, "it matches the table")


def full_text_rows(connection: Any, table: str) -> Finding:
    """Whether the full-text index has the rows of its table, which can be read without writing."""
    check = f"full-text index of {table}"
    differ = sum(
        connection.execute(f"select count(*) from {one} where id not in (select id from {other})").fetchone()[
            0
        ]
        for one, other in ((table, f"{table}_fts_docsize"), (f"{table}_fts_docsize", table))
    )
    if differ:
        return Finding(
            check, False, f"{counted(differ, 'row')} in the table or in the index, but not in both", FIX
        )
    return Finding(check, True, "it has every row of the table; their words were not compared")


def triggers(connection: Any) -> Finding:
    """Whether the triggers are there that keep everything else in step."""
    gone = missing(connection, "trigger")
    if not gone:
        return Finding("triggers", True, "none is missing")
    says = f"missing: {', '.join(gone)}; another tool has removed them, as sqlite-utils transform does"
    return Finding("triggers", False, says, FIX)


def indexes(connection: Any) -> Finding:
    """Whether the indexes are there without which everything is right, but slow."""
    gone = missing(connection, "index")
    if not gone:
        return Finding("indexes", True, "none is missing")
    return Finding(
        "indexes", False, f"missing: {', '.join(gone)}; searches and pages are slower without them", FIX
    )


def change_log(connection: Any, position: int) -> Finding:
    """Whether the change log is whole and the mirror's position is one of its own."""
    first, last, gap = horizon(connection), last_change(connection), last_gap(connection)
    if gap is not None:
        return Finding("change log", False, f"it has a gap: changes before number {gap:,} are missing", FIX)
    if position > last:
        says = f"it ends at {last:,}, but the mirror is said to hold {position:,}"
        return Finding("change log", False, says, FIX)
    return Finding("change log", True, f"{counted(last - first, 'change')}, up to number {last:,}")


def model(status: Mapping[str, Any]) -> Finding:
    """Whether the embedding model can be used here."""
    embedder = status["embedder"]
    if embedder["available"]:
        return Finding("embedding model", True, f"{embedder['model']} can be used")
    says = f"{embedder['model']} cannot be used"
    return Finding(
        "embedding model", False, says, "until it can be, searches go by words alone", embedder["reason"]
    )


def mirror(palace: Palace, status: Mapping[str, Any], ask: bool) -> Finding:
    """Whether the mirror is in step with the palace, and finds what it should.

    Args:
        palace: the palace.
        status: its state.
        ask: whether to open a mirror that is not open here, as every process does that may own it: what cannot be
            trusted is set aside then.
    """
    mirror, state = palace.mirror, status["mirror"]
    if not mirror.is_used:
        return Finding("mirror", True, "no mirror is used here", None, state["reason"])
    lacks = {"none": "there is none yet", "behind": "it is behind the palace"}.get(state["state"])
    # Looking makes no folder; nor is there a server's mirror to ask for that was never filled.
    may_open = not palace.read_only and (
        lacks is None or (mirror.store.is_shared and state["state"] == "behind")
    )
    try:
        if ask and may_open:
            mirror.open()
        holds = mirror.is_open and lacks is None and mirror.holds_its_vectors()
    except MirrorOwned as error:
        says = "in step as far as can be told: another process has it open, so it was not asked"
        return Finding("mirror", True, says, None, error.message)
    except MirrorUnavailable as error:
        return _unusable(palace, error)
    if not mirror.is_open and mirror.failure is not None:
        return _unusable(palace, mirror.failure)
    if lacks is not None:
        helps = f"{FIX}; a running server does it by itself within seconds"
        return Finding("mirror", False, lacks, helps, state["reason"])
    if not mirror.is_open:
        says = "in step as far as can be told: it is not open here, so it was not asked"
        return Finding("mirror", True, says)
    if holds:
        says = "in step: it has as many vectors as the palace, and those that were looked for were found"
        return Finding("mirror", True, says)
    return Finding("mirror", False, "it does not find what it should hold", FIX)


def _unusable(palace: Palace, error: MirrorUnavailable) -> Finding:
    helps = (
        "start the Chroma server, or correct where the setting chroma says that it is; datasette mempalace sync, or a running"
        " Datasette, then brings the mirror in step"
        if palace.mirror.store.is_shared
        else "see that its folder can be written and that no other program uses it; a folder that is deleted is filled anew"
    )
    return Finding("mirror", False, "it cannot be used; searches read SQLite meanwhile", helps, error.message)


def table_in_sql(palace: Palace) -> Finding:
    """Whether SQL has the table `mempalace_search`."""
    reason = why_off(palace.settings)
    if reason is None:
        return Finding("table in SQL", True, "mempalace_search can be used as a table")
    # Switched off on purpose is well; and the function does everything, so that nothing has to be mended.
    return Finding(
        "table in SQL",
        not palace.settings.table_function,
        "mempalace_search is no table here",
        "use the function mempalace_search() instead",
        f"because {reason}",
    )


def write_ahead_log(palace: Palace) -> Finding:
    """Whether the file alone is the whole palace, as copying and publishing it need."""
    log = Path(palace.file + "-wal")
    size = log.stat().st_size if log.exists() else 0
    if not size:
        return Finding("write-ahead log", True, "empty: the file alone is the whole palace")
    return Finding(
        "write-ahead log",
        not palace.read_only,
        f"{size:,} bytes of it are not in the database file: a copy of the file, or serving it with -i, lacks them",
        "where it can be written, run doctor with --fix before copying or publishing",
    )


def permissions(config: Mapping[str, Any] | None, database: str) -> Finding:
    """Whether the rules of a configuration close what they seem to close."""
    if config is None:
        return Finding("permissions", True, "not checked: no configuration was given")
    found = permission_pitfalls(config, database)
    if not found:
        return Finding("permissions", True, "no rule leaves open what it seems to close")
    return Finding(
        "permissions", False, " ".join(found), "only the database closes all; see docs/permissions.md"
    )
