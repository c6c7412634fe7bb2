"""Examines a palace and mends what can be mended.

Looking changes nothing. Mending uses what commands and the keeper use; nothing here knows how a thing is stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasette.utils.sqlite import sqlite3

from . import checks, vector_checks
from .change_log import begin_after_all_that_was, last_change, last_gap, prune, start_anew
from .errors import MempalaceError
from .finding import Finding
from .mirror.state import read_position
from .palace import Palace
from .status import palace_status
from .structure import RESTORE, Made, is_incomplete, remake
from .text import counted
from .vectors import KINDS, Kind, embed_pending, record_dimension, remove_orphans

BATCH = 5_000


def examine(palace: Palace, config: Mapping[str, Any] | None = None) -> list[Finding]:
    """Look at everything a palace needs, all of it: takes seconds in a large palace, and loads the model.

    Args:
        palace: the palace; nothing in it is changed.
        config: the content of metadata.yml or datasette.yaml, for its permissions; None when there is none.
    Returns:
        a finding for each check; of a damaged file, or one that lacks tables, that alone.
    """
    with palace.reader() as connection:
        file = checks.database_file(connection)
        if not file.ok:
            return [file]
        tables = checks.tables(connection)
    if not tables.ok:
        return [file, tables]
    status = palace_status(palace)
    with palace.reader() as connection:
        read = _read(connection, status, None)
    return [
        file,
        tables,
        *(checks.full_text(palace, f"{kind}s") for kind in KINDS),
        *read,
        checks.model(status),
        vector_checks.same_model(palace),
        checks.mirror(palace, status, ask=True),
        *_around(palace, config),
    ]


def look_over(palace: Palace, config: Mapping[str, Any] | None, most: int) -> list[Finding]:
    """What a server may look at while others search: bounded, nothing written, no model loaded, no mirror opened.

    Args:
        palace: the palace.
        config: the instance's own configuration.
        most: how many vectors of each kind are looked at, taken at random.
    Returns:
        a finding for each check; where tables are missing, that alone.
    """
    with palace.reader() as connection:
        tables = checks.tables(connection)
    if not tables.ok:
        return [tables]
    status = palace_status(palace)
    with palace.reader() as connection:
        read = _read(connection, status, most)
        indexes = [checks.full_text_rows(connection, f"{kind}s") for kind in KINDS]
    return [
        tables,
        *indexes,
        *read,
        checks.model(status),
        checks.mirror(palace, status, ask=False),
        *_around(palace, config),
    ]


def _read(connection: Any, status: Mapping[str, Any], most: int | None) -> list[Finding]:
    bad = [vector_checks.bad_vectors(connection, kind, most) for kind in KINDS]
    looked_at = "" if most is None else f" among up to {most:,} of each kind, taken at random"
    return [
        checks.triggers(connection),
        checks.indexes(connection),
        checks.change_log(connection, read_position(connection)),
        vector_checks.vectors_missing(status["pending_vectors"]),
        vector_checks.vectors_unusable(bad, looked_at),
        vector_checks.vectors_stale(bad, looked_at),
        vector_checks.vectors_orphaned(connection),
    ]


def _around(palace: Palace, config: Mapping[str, Any] | None) -> list[Finding]:
    return [
        checks.permissions(config, Path(palace.path).stem),
        checks.table_in_sql(palace),
        checks.write_ahead_log(palace),
    ]


def is_well(findings: Sequence[Finding]) -> bool:
    """Whether every check was passed."""
    return all(finding.ok for finding in findings)


def attempt(palace: Palace) -> tuple[list[str], str | None]:
    """`mend`, with what went wrong as a sentence in place of an exception."""
    done: list[str] = []
    try:
        mend(palace, done)
    except MempalaceError as error:
        return done, error.message
    except sqlite3.DatabaseError as error:
        return done, f"SQLite could not mend this: {error}; {RESTORE}"
    return done, None


def mend(palace: Palace, done: list[str] | None = None) -> list[str]:
    """Mend what can be mended.

    Args:
        palace: a palace that may be written.
        done: where each step is told as soon as it is done.
    Returns:
        what was done, a sentence each.
    Raises:
        MempalaceError: when the model or the mirror fails, or the drawers are gone; what was mended before stays.
    """
    done = [] if done is None else done
    _mend_structure_and_log(palace, done)
    for table in (f"{kind}s" for kind in KINDS):
        if not checks.full_text(palace, table).ok:
            with palace.writer() as connection:
                connection.execute(f"insert into {table}_fts({table}_fts) values ('rebuild')")
            done.append(f"The full-text index of {table} was rebuilt.")
    removed = sum(_remove_bad_vectors(palace, kind) for kind in KINDS) + remove_orphans(palace)
    if removed:
        done.append(counted(removed, "unusable vector was", "unusable vectors were") + " removed.")
    embedded = embed_pending(palace)
    if embedded:
        done.append(counted(embedded, "text was", "texts were") + " embedded.")
    _mend_mirror(palace, done)
    prune(palace)
    palace.checkpoint()
    return done


def _mend_structure_and_log(palace: Palace, done: list[str]) -> None:
    """Make again what is missing. What was not logged meanwhile is not known: whoever follows the log starts over."""
    with palace.reader() as connection:
        incomplete = is_incomplete(connection)
        if (
            not incomplete
            and last_gap(connection) is None
            and read_position(connection) <= last_change(connection)
        ):
            return
    with palace.writer() as connection:
        made = remake(connection) if incomplete else Made()
        if "drawer_changes" in made.tables:
            begin_after_all_that_was(connection)
        if "mempalace_settings" in made.tables:
            record_dimension(connection)
        has_begun = bool(made.tables or made.triggers or not made.indexes)
        if has_begun:
            start_anew(connection)
    if "mempalace_settings" in made.tables:
        palace.bind_embedder()
    done += [f"The table {name} was made again." for name in made.tables]
    if "closets" in made.tables:
        done.append("The closets are empty: mining or importing again fills them.")
    if made.triggers:
        done.append(counted(len(made.triggers), "trigger was", "triggers were") + " made again.")
    if made.indexes:
        done.append(counted(len(made.indexes), "index was", "indexes were") + " made again.")
    if has_begun:
        done.append("The change log was started again.")


def _remove_bad_vectors(palace: Palace, kind: Kind) -> int:
    with palace.reader() as connection:
        bad = vector_checks.bad_vectors(connection, kind)
    ids = [*bad.unusable, *bad.stale]
    for start in range(0, len(ids), BATCH):
        with palace.writer() as connection:
            connection.execute(
                f"delete from {kind}_vectors where id in (select value from json_each(?))",
                [json.dumps(ids[start : start + BATCH])],
            )
    return len(ids)


def _mend_mirror(palace: Palace, done: list[str]) -> None:
    report = palace.mirror.sync()
    if report.skipped_reason is None and not palace.mirror.holds_its_vectors():
        report = palace.mirror.rebuild()
    if report.skipped_reason:
        done.append(report.skipped_reason)
    elif report.rebuilt or report.upserted or report.deleted:
        done.append(f"The mirror was {'filled anew' if report.rebuilt else 'brought in step'}.")
