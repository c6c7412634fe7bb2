"""Mends what writers without `recursive_triggers` leave behind: full-text entries of rows that were silently replaced.

`insert or replace` removes the old row without firing its delete trigger unless that pragma is on, and plain sqlite3
leaves it off. The change log shows it: a row was about to be replaced, and no deletion followed.
"""

from __future__ import annotations

from typing import Any

from .change_log import answers_for, last_change
from .palace import Palace
from .schema import get_number, set_setting
from .vectors import KINDS

CHECKED = "full_text_checked"
_CHANGES = """
    select kind, row_id, change from drawer_changes
    where seq > ? and change in ('replace', 'insert', 'delete') order by seq
"""


def mend_full_text(palace: Palace) -> list[str]:
    """Rebuild a full-text index that holds entries of replaced rows.

    Args:
        palace: a palace that may be written.
    Returns:
        the tables whose index was rebuilt, out of "drawers" and "closets"; most often none.
    """
    with palace.reader() as connection:
        last = last_change(connection)
        start = get_number(connection, CHECKED) or 0
        # What the log no longer tells may have happened.
        stale = sorted(_stale_kinds(connection, start) if answers_for(connection, start) else KINDS)
    if start == last:
        return []
    with palace.writer() as connection:
        for kind in stale:
            connection.execute(f"insert into {kind}s_fts({kind}s_fts) values ('rebuild')")
        set_setting(connection, CHECKED, str(last))
    return [f"{kind}s" for kind in stale]


def _stale_kinds(connection: Any, start: int) -> set[str]:
    """The kinds of rows of which one was replaced without a deletion since a change."""
    stale: set[str] = set()
    replaced: set[tuple[str, int]] = set()
    for kind, row_id, change in connection.execute(_CHANGES, [start]):
        if change == "replace":
            replaced.add((kind, row_id))
        elif (kind, row_id) in replaced:
            # Inserted under the id of the old row: had that been deleted in order, a deletion would stand between.
            replaced.discard((kind, row_id))
            if change == "insert":
                stale.add(kind)
    # What is still there was only updated, by an upsert.
    for kind in KINDS:
        gone = (row_id for of_kind, row_id in replaced if of_kind == kind)
        query = f"select 1 from {kind}s where id = ?"
        if kind not in stale and any(not connection.execute(query, [row_id]).fetchone() for row_id in gone):
            stale.add(kind)
    return stale
