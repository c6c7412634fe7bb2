"""Examines a palace and mends what can be mended: full-text indexes, triggers, vectors, mirror, model, SQL table.

Looking changes nothing. Mending uses what commands and the keeper use; nothing here knows how a thing is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasette.utils.sqlite import sqlite3

from .errors import MempalaceError
from .palace import Palace
from .search_table import why_off
from .status import palace_status
from .vectors import KINDS, embed_pending, remove_orphans, stored_dimension

# Three by sqlite-utils for the full-text index of each table, the rest by schema.py.
TRIGGERS = frozenset(
    f"{kind}s_{name}"
    for kind in KINDS
    for name in ("ai", "ad", "au", "log_replace", "log_insert", "log_update", "log_delete")
) | {f"{kind}_vectors_log_{name}" for kind in KINDS for name in ("insert", "update", "delete")}


@dataclass(frozen=True)
class Finding:
    """What one check has found.

    Attributes:
        check: its name.
        ok: whether all is well.
        says: the state in a sentence.
        help: what to do, where something is not well.
    """

    check: str
    ok: bool
    says: str
    help: str | None = None


def examine(palace: Palace) -> list[Finding]:
    """Look at everything a palace needs.

    Args:
        palace: the palace; nothing in it is changed.
    Returns:
        a finding for each check, always all of them.
    """
    status = palace_status(palace)
    with palace.reader() as connection:
        triggers = _triggers(connection)
        unusable = _unusable_vectors(connection)
        orphans = sum(
            connection.execute(
                f"select count(*) from {kind}_vectors where id not in (select id from {kind}s)"
            ).fetchone()[0]
            for kind in KINDS
        )
    return [
        *(_full_text(palace, f"{kind}s") for kind in KINDS),
        triggers,
        _counted("vectors missing", status["pending_vectors"], "text has no vector", "texts have no vector"),
        _counted(
            "vectors unusable",
            unusable,
            "vector is no vector of the model",
            "vectors are no vectors of the model",
        ),
        _counted("vectors orphaned", orphans, "vector has no drawer", "vectors have no drawer"),
        _model(status),
        _mirror(status),
        _table(palace),
        _log(palace),
    ]


def mend(palace: Palace) -> list[str]:
    """Mend what can be mended.

    Args:
        palace: a palace that may be written.
    Returns:
        what was done, a sentence each.
    Raises:
        MempalaceError: when the model or the mirror fails; what was mended before stays.
    """
    done = []
    for table in (f"{kind}s" for kind in KINDS):
        if not _full_text(palace, table).ok:
            with palace.writer() as connection:
                connection.execute(f"insert into {table}_fts({table}_fts) values ('rebuild')")
            done.append(f"The full-text index of {table} was rebuilt.")
    with palace.writer() as connection:
        dimension = stored_dimension(connection)
        removed = 0
        for kind in KINDS if dimension else ():
            removed += connection.execute(
                f"delete from {kind}_vectors where typeof(vector) <> 'blob' or length(vector) <> ?",
                [4 * (dimension or 0)],
            ).rowcount
    removed += remove_orphans(palace)
    if removed:
        done.append(f"{removed:,} unusable vector{'s were' if removed != 1 else ' was'} removed.")
    embedded = embed_pending(palace)
    if embedded:
        done.append(f"{embedded:,} text{'s were' if embedded != 1 else ' was'} embedded.")
    report = palace.mirror.sync()
    if report.skipped_reason:
        done.append(report.skipped_reason)
    elif report.rebuilt or report.upserted or report.deleted:
        done.append(f"The mirror was {'filled anew' if report.rebuilt else 'brought in step'}.")
    palace.checkpoint()
    return done


def _full_text(palace: Palace, table: str) -> Finding:
    check, helps = f"full-text index of {table}", "run doctor with --fix to rebuild it"
    if palace.read_only:
        return Finding(check, True, "not checked: the palace can only be read")
    try:
        with palace.writer() as connection:
            # Rank 1 holds the index against the table, not only against itself.
            connection.execute(f"insert into {table}_fts({table}_fts, rank) values ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        return Finding(check, False, f"it does not match the table: {error}", helps)
    return Finding(check, True, "it matches the table")


def _triggers(connection: Any) -> Finding:
    found = {row[0] for row in connection.execute("select name from sqlite_master where type = 'trigger'")}
    missing = sorted(TRIGGERS - found)
    if not missing:
        return Finding("triggers", True, "all are there")
    return Finding(
        "triggers",
        False,
        f"missing: {', '.join(missing)}",
        "a tool has taken them away, as sqlite-utils transform does; export the drawers and import them into a new palace",
    )


def _unusable_vectors(connection: Any) -> int:
    dimension = stored_dimension(connection)
    if dimension is None:
        return 0
    return sum(
        connection.execute(
            f"select count(*) from {kind}_vectors where typeof(vector) <> 'blob' or length(vector) <> ?",
            [4 * dimension],
        ).fetchone()[0]
        for kind in KINDS
    )


def _counted(check: str, count: int, one: str, many: str) -> Finding:
    if not count:
        return Finding(check, True, "none")
    return Finding(check, False, f"{count:,} {one if count == 1 else many}", "run doctor with --fix, or sync")


def _model(status: dict[str, Any]) -> Finding:
    embedder = status["embedder"]
    if embedder["available"]:
        return Finding("embedding model", True, f"{embedder['model']} can be used")
    return Finding("embedding model", False, f"{embedder['model']} cannot be used", embedder["reason"])


def _mirror(status: dict[str, Any]) -> Finding:
    mirror = status["mirror"]
    if mirror["state"] == "in step":
        return Finding("mirror", True, "in step")
    helps = "run doctor with --fix, or sync; a running server does it by itself"
    return Finding("mirror", False, f"{mirror['state']}: {mirror['reason']}", helps)


def _table(palace: Palace) -> Finding:
    reason = why_off(palace.settings)
    if reason is None:
        return Finding("table in SQL", True, "mempalace_search can be used as a table")
    says = f"mempalace_search is no table, because {reason}"
    # Switched off on purpose is well; and the function does everything, so that nothing has to be mended.
    return Finding(
        "table in SQL",
        not palace.settings.table_function,
        says,
        "use the function mempalace_search() instead",
    )


def _log(palace: Palace) -> Finding:
    log = Path(palace.path + "-wal")
    size = log.stat().st_size if log.exists() else 0
    if not size:
        return Finding("write-ahead log", True, "empty: the file alone is the whole palace")
    return Finding(
        "write-ahead log",
        True,
        f"{size:,} bytes are in {log.name}: copy both files, or run doctor with --fix first",
    )


def is_well(findings: list[Finding]) -> bool:
    """Whether every check was passed."""
    return all(finding.ok for finding in findings)


def attempt(palace: Palace) -> tuple[list[str], str | None]:
    """`mend`, with what went wrong as a sentence in place of an exception."""
    try:
        return mend(palace), None
    except MempalaceError as error:
        return [], error.message
