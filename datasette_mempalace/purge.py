"""Removes deleted texts for good: from closets, spare vectors, full-text indexes, the file's free pages, its log, the mirror.

SQLite and FTS5 only mark what is deleted, and use the space again some day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .drawers import batched
from .errors import PalaceInUse
from .palace import Palace
from .vectors import KINDS, embed_pending

BATCH = 1_000
_POINTERS = re.compile(r"[^\s,]+")


@dataclass
class Purged:
    """What a purge did: closets of which lines were removed, bytes before and after, why the mirror was left."""

    closets: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    mirror_left: str | None = None


def purge(palace: Palace) -> Purged:
    """Rewrite a palace without what was deleted from it.

    Args:
        palace: a palace that may be written and that nobody else has open.
    Returns:
        what was done.
    Raises:
        MirrorOwned: when another process, such as a server, owns the mirror; nothing was done.
        PalaceInUse: when another process reads or writes it, so that its log cannot be emptied; all the rest is done.
        EmbedderUnavailable: when a closet that was shortened has no vector yet.
    """
    if not palace.read_only:  # of such a palace the first writer below says why
        palace.mirror.claim()
    done = Purged(bytes_before=_size(palace))
    done.closets = _shorten_closets(palace)
    embed_pending(palace)
    with palace.writer() as connection:
        connection.execute("delete from spare_vectors")
    for kind in KINDS:
        with palace.writer() as connection:
            connection.execute(f"insert into {kind}s_fts({kind}s_fts) values ('rebuild')")
    with palace.writer(transaction=False) as connection:
        connection.execute("vacuum")
    # Chroma's index files may hold scraps of the memory of who wrote them.
    done.mirror_left = palace.mirror.rebuild().skipped_reason
    palace.connections.close_readers()
    if not palace.checkpoint():
        raise PalaceInUse(
            "Another process has the palace open, so that deleted texts may still stand in its write-ahead log: "
            "stop it and purge again."
        )
    done.bytes_after = _size(palace)
    return done


def _shorten_closets(palace: Palace) -> int:
    """Take out lines that point to drawers that are gone, and closets without a line; returns how many closets."""
    with palace.reader() as connection:
        known = {row[0] for row in connection.execute("select drawer_id from drawers")}
        closets = connection.execute("select id, text from closets where typeof(text) = 'text'").fetchall()
    changed = [(row_id, kept) for row_id, text in closets if (kept := _lines_of(text, known)) != text]
    for batch in batched(changed, BATCH):
        with palace.writer() as connection:
            for row_id, kept in batch:
                _write(connection, row_id, kept)
    return len(changed)


def _lines_of(text: str, known: set[str]) -> str:
    """A closet's lines but for those that point only to drawers that are gone."""
    kept = []
    for line in text.split("\n"):
        _, arrow, pointers = line.partition("→")
        if not arrow or any(pointer in known for pointer in _POINTERS.findall(pointers)):
            kept.append(line)
    return "\n".join(kept)


def _write(connection: Any, row_id: int, text: str) -> None:
    if text.strip():
        connection.execute("update closets set text = ? where id = ?", [text, row_id])
    else:
        connection.execute("delete from closets where id = ?", [row_id])


def _size(palace: Palace) -> int:
    with palace.reader() as connection:
        pages, size = (
            connection.execute(f"pragma {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
    return int(pages * size)
