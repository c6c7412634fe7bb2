"""The single checks of a palace. Each looks at one thing, changes nothing in the palace, and tells what it has found.

A sentence in `says` and `help` names no path and no host, so that it may be shown to whoever may see the palace; what a
library or the system has said stands in `cause`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from datasette.utils.sqlite import sqlite3

from .change_log import horizon, last_change, last_gap
from .errors import MempalaceError, MirrorUnavailable
from .palace import Palace
from .pitfalls import permission_pitfalls
from .schema_repair import missing
from .sql_tables import why_off
from .vectors import KINDS, Kind, embedded_hash, is_vector_of, stored_dimension

FETCH = 1_000
SAME_TEXT = 0.98
SAMPLE = 5
FIX = "run: datasette mempalace doctor PALACE --fix"


@dataclass(frozen=True)
class Finding:
    """What one check has found.

    Attributes:
        check: its name.
        ok: whether all is well.
        says: the state in a sentence.
        help: what to do, where something is not well.
        cause: what a library or the system has said; it may name files and hosts.
    """

    check: str
    ok: bool
    says: str
    help: str | None = None
    cause: str | None = None


@dataclass
class BadVectors:
    """Ids of vectors that are of no use: no vector of the model, or of another text than stands beside them."""

    unusable: list[int] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)


def database_file(connection: Any) -> Finding:
    """SQLite's own examination of the file."""
    try:
        found = [row[0] for row in connection.execute("pragma integrity_check(5)")]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found == ["ok"]:
        return Finding("database file", True, "SQLite finds it whole")
    helps = "restore a backup, or save what can be read with: sqlite3 OLD .recover | sqlite3 NEW"
    return Finding("database file", False, "SQLite finds it damaged", helps, "; ".join(map(str, found)))


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
        return Finding(check, False, f"{_rows(differ)} on one side only", FIX)
    return Finding(check, True, "it has the rows of the table; their words are not compared here")


def triggers(connection: Any) -> Finding:
    """Whether the triggers are there that keep everything else in step."""
    gone = missing(connection, "trigger")
    if not gone:
        return Finding("triggers", True, "all are there")
    says = f"missing: {', '.join(gone)}; a tool has taken them away, as sqlite-utils transform does"
    return Finding("triggers", False, says, FIX)


def indexes(connection: Any) -> Finding:
    """Whether the indexes are there without which everything is right, but slow."""
    gone = missing(connection, "index")
    if not gone:
        return Finding("indexes", True, "all are there")
    return Finding("indexes", False, f"missing: {', '.join(gone)}; what they are for is slow", FIX)


def change_log(connection: Any, position: int) -> Finding:
    """Whether the change log is whole and the mirror's position is one of its own."""
    first, last, gap = horizon(connection), last_change(connection), last_gap(connection)
    if gap is not None:
        return Finding("change log", False, f"changes before {gap:,} were taken out of its middle", FIX)
    if position > last:
        says = f"it ends at {last:,}, but the mirror is said to hold {position:,}"
        return Finding("change log", False, says, FIX)
    return Finding("change log", True, f"{last - first:,} changes, up to {last:,}")


def vectors_missing(count: int) -> Finding:
    """Texts that wait for a vector."""
    return _counted("vectors missing", count, "text has no vector", "texts have no vector")


def vectors_unusable(bad: Iterable[BadVectors], looked_at: str) -> Finding:
    """Vectors of another size, with what is no number, or not of unit length."""
    count = sum(len(part.unusable) for part in bad)
    one, many = "vector is no vector of the model", "vectors are no vectors of the model"
    return _counted("vectors unusable", count, one, many, looked_at)


def vectors_stale(bad: Iterable[BadVectors], looked_at: str) -> Finding:
    """Vectors of a text that has changed since."""
    count = sum(len(part.stale) for part in bad)
    return _counted(
        "vectors stale", count, "vector is of another text", "vectors are of other texts", looked_at
    )


def vectors_orphaned(connection: Any) -> Finding:
    """Vectors without a drawer or closet."""
    count = sum(
        connection.execute(
            f"select count(*) from {kind}_vectors where id not in (select id from {kind}s)"
        ).fetchone()[0]
        for kind in KINDS
    )
    return _counted("vectors orphaned", count, "vector has no drawer", "vectors have no drawer")


def bad_vectors(connection: Any, kind: Kind, most: int | None = None) -> BadVectors:
    """Look through stored vectors.

    Args:
        connection: an open connection to the palace.
        kind: "drawer" or "closet".
        most: how many are looked at, chosen by chance; None for all.
    Returns:
        the ids of those that are of no use; a vector of zeros is of use for a blank text alone.
    """
    found, dimension = BadVectors(), stored_dimension(connection)
    chosen = (
        ""
        if most is None
        else f"where v.id in (select id from {kind}_vectors order by random() limit {most:d})"
    )
    cursor = connection.execute(
        f"select v.id, v.vector, v.text_hash, cast(t.text as blob) from {kind}_vectors v join {kind}s t on t.id = v.id"
        f" {chosen}"
    )
    while rows := cursor.fetchmany(FETCH):
        for row_id, blob, text_hash, raw in rows:
            text = raw.decode("utf-8", "replace")
            if not is_vector_of(kind, text, blob, dimension):
                found.unusable.append(row_id)
            elif text_hash != embedded_hash(kind, text):
                found.stale.append(row_id)
    return found


def model(status: Mapping[str, Any]) -> Finding:
    """Whether the embedding model can be used here."""
    embedder = status["embedder"]
    if embedder["available"]:
        return Finding("embedding model", True, f"{embedder['model']} can be used")
    says = f"{embedder['model']} cannot be used"
    return Finding("embedding model", False, says, "words are searched meanwhile", embedder["reason"])


def same_model(palace: Palace) -> Finding:
    """Whether stored vectors are what the model makes of their texts today, by a few of them; the model is loaded."""
    check = "vectors of the model"
    with palace.reader() as connection:
        rows = connection.execute(
            "select d.text, v.vector from drawer_vectors v join drawers d on d.id = v.id"
            " where typeof(d.text) = 'text' and trim(d.text) <> ''"
            " and v.id in (select id from drawer_vectors where typeof(vector) = 'blob' and length(vector) = ?"
            " order by random() limit ?)",
            [4 * (stored_dimension(connection) or 0), SAMPLE],
        ).fetchall()
    try:
        if not rows or palace.embedder.missing() is not None:
            return Finding(check, True, "not compared: there is nothing to compare, or no model")
        made = palace.embedder.embed([text for text, _ in rows], False)
    except MempalaceError as error:
        return Finding(check, False, "the model failed", "see what it said", error.message)
    stored = [np.frombuffer(vector, "<f4") for _, vector in rows]
    differ = sum(float(old @ new) < SAME_TEXT for old, new in zip(stored, made, strict=True))
    if not differ:
        return Finding(check, True, f"of {len(rows)} chosen by chance, all are what it makes of their texts")
    return Finding(
        check,
        False,
        f"of {len(rows)} chosen by chance, {differ} are not what it makes of their texts: they come from another model",
        "set the embedder that the palace was filled with, or fill a new palace",
    )


def mirror(palace: Palace, status: Mapping[str, Any], ask: bool) -> Finding:
    """Whether the mirror is in step with the palace, and finds what it should.

    Args:
        palace: the palace.
        status: its state.
        ask: whether to open a mirror that is not open here, as every process does that may own it: what cannot be
            trusted is set aside then.
    """
    state = status["mirror"]
    if not palace.mirror.is_used:
        return Finding("mirror", True, "none is used", None, state["reason"])
    if state["state"] != "in step":
        says = "there is none yet" if state["state"] == "none" else "it is behind the palace"
        helps = f"{FIX}; a running server does it by itself within seconds"
        return Finding("mirror", False, says, helps, state["reason"])
    mirror = palace.mirror
    try:
        if ask and not palace.read_only:
            mirror.open()
        if not mirror.is_open:
            return Finding("mirror", True, "in step; it is not open here and was not asked")
        if mirror.holds_its_vectors():
            return Finding(
                "mirror", True, "in step; its count is right, and some of its own vectors find themselves"
            )
    except MirrorUnavailable as error:
        # Most often another process owns it, and looks after it.
        return Finding("mirror", True, "in step; it was not asked", None, error.message)
    return Finding("mirror", False, "it does not find what it should hold", FIX)


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
    log = Path(palace.path + "-wal")
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
        return Finding("permissions", True, "no rule closes less than it seems to")
    return Finding("permissions", False, " ".join(found), "put the rule on the database")


def _counted(check: str, count: int, one: str, many: str, looked_at: str = "") -> Finding:
    if not count:
        return Finding(check, True, f"none{looked_at}")
    return Finding(check, False, f"{count:,} {one if count == 1 else many}{looked_at}", f"{FIX}, or sync")


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"
