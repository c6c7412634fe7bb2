"""The log of changes to drawers, closets and vectors: how far it goes, what came after a position, and pruning.

Triggers write it (`schema.py`); the mirror, the matrix and the full-text repair read it, each from a position of its own,
in whatever process. A number is never used twice, not even after pruning. Whoever comes with a position that the log
cannot answer for is told so, and starts over from the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import LogTooShort
from .schema import get_number

if TYPE_CHECKING:
    from .palace import Palace

# Kept though it has been read: for matrices in memory, copies, and a mirror that was killed before it knew its position.
TAIL = 10_000
# A mirror that is further behind is filled anew, which takes no longer than catching up.
MOST = 500_000
BATCH = 10_000
# More than any process has seen beyond what the palace records.
JUMP = 10_000_000


def last_change(connection: Any) -> int:
    """The number of the last change; 0 when there was none. It never goes back, whatever was pruned."""
    query = """
        select max(coalesce((select max(seq) from drawer_changes), 0),
        coalesce((select max(seq) from sqlite_sequence where name = 'drawer_changes'), 0))
    """
    return int(connection.execute(query).fetchone()[0])


def horizon(connection: Any) -> int:
    """The oldest position that the log can answer for: every later change is in it."""
    first = connection.execute("select min(seq) from drawer_changes").fetchone()[0]
    return last_change(connection) if first is None else int(first) - 1


def answers_for(connection: Any, position: int) -> bool:
    """Whether the log knows all that came after a position: not when it was pruned, nor when a backup was restored."""
    return horizon(connection) <= position <= last_change(connection)


def only_vectors_since(connection: Any, position: int) -> bool:
    """Whether no drawer and no closet has changed since a position: vectors follow texts and change no page's counts."""
    if not answers_for(connection, position):
        return False
    query = "select exists (select 1 from drawer_changes where seq > ? and change <> 'vector')"
    return not connection.execute(query, [position]).fetchone()[0]


def changed_since(connection: Any, kind: str, position: int, most: int) -> list[int]:
    """Which drawers or closets have changed since a position.

    Args:
        connection: an open connection to the palace.
        kind: "drawer" or "closet".
        position: the last change that is known already.
        most: how many are told at most.
    Returns:
        ids, each once, in no order; of rows that may be gone.
    Raises:
        LogTooShort: when what followed the position was pruned.
    """
    rows = connection.execute(
        "select distinct row_id from drawer_changes where seq > ? and kind = ? limit ?",
        [position, kind, most],
    ).fetchall()
    # Afterwards: on a connection without a transaction the log may be pruned between two statements, never refilled.
    first = horizon(connection)
    if position < first:
        raise LogTooShort(
            f"The change log begins after {first:,}; what changed since {position:,} is not known."
        )
    return [row[0] for row in rows]


def prune(palace: Palace, tail: int = TAIL) -> int:
    """Remove changes that everybody who follows the log has read; in short transactions.

    Args:
        palace: a palace that may be written.
        tail: how many changes are kept in any case, at least one.
    Returns:
        how many were removed.
    """
    with palace.reader() as connection:
        start, end = horizon(connection), _prunable(connection, max(1, tail))
    removed = 0
    while start < end:
        start = min(start + BATCH, end)
        with palace.writer() as connection:
            removed += connection.execute("delete from drawer_changes where seq <= ?", [start]).rowcount
    return removed


def start_anew(connection: Any) -> None:
    """Let everybody who follows the log begin with the tables: for when changes are missing from it."""
    # Two, because a reader of the last change before them would be content with the first.
    connection.execute(
        "insert into drawer_changes(kind, row_id, change) values ('drawer', 0, 'unknown'), ('drawer', 0, 'unknown')"
    )
    connection.execute("delete from drawer_changes where seq < (select max(seq) from drawer_changes)")


def begin_after_all_that_was(connection: Any) -> None:
    """Let a log that was made again go on after every number of the one before it, as far as anybody may know it."""
    known = max(get_number(connection, key) or 0 for key in ("mirror_position", "full_text_checked"))
    connection.execute(
        "insert into drawer_changes(seq, kind, row_id, change) values (?, 'drawer', 0, 'unknown')",
        [max(known, last_change(connection)) + JUMP],
    )


def last_gap(connection: Any) -> int | None:
    """The last change before which some are missing, where somebody has taken rows out of the middle; else None."""
    query = """
        select max(seq) from drawer_changes
        where seq > (select min(seq) from drawer_changes)
        and not exists (select 1 from drawer_changes as earlier where earlier.seq = drawer_changes.seq - 1)
    """
    found = connection.execute(query).fetchone()[0]
    return None if found is None else int(found)


def _prunable(connection: Any, tail: int) -> int:
    """The last change that may go."""
    last = last_change(connection)
    # A mirror that was never filled has nothing to lose: it begins with the tables.
    mirrored = get_number(connection, "mirror_position")
    checked = get_number(connection, "full_text_checked") or 0
    return min(max(last if mirrored is None else mirrored, last - MOST), checked, last - tail)
