"""Mines a folder: its text files become drawers, and the palace follows the folder when it is mined again.

What is stored says nothing of the file but its text and path (no time of change), so that a file that was only touched,
or copied, changes nothing in the palace.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..drawers import Report, Source, put_source, remove_sources
from ..errors import BadInput, MempalaceError
from ..vectors import embed_pending
from .reading import MAX_BYTES, CannotRead, read_text
from .walking import Found, Skipped, walk

if TYPE_CHECKING:
    from ..palace import Palace

ADDED_BY = "mine"
DEFAULT_ROOM = "general"
EXAMPLES = 3
# What is being done and how far it is: (step, done, total).
Progress = Callable[[str, int, int], None]


@dataclass
class Mined:
    """What mining did.

    Attributes:
        wing: the wing that the files were filed in.
        files: how many files were read.
        report: what changed, in drawers; `removed` counts those of files that are gone, too.
        gone: how many files were taken out of the palace.
        embedded: how many texts the model has seen.
        skipped: how many files and folders were left out, by reason.
        examples: the first paths left out, by reason.
        unread: the paths that could not be read this time.
        stale: how many of those have drawers from earlier, which were kept.
        problem: why texts have no vectors yet, when that is so.
    """

    wing: str
    files: int = 0
    report: Report = field(default_factory=Report)
    gone: int = 0
    embedded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    stale: int = 0
    problem: MempalaceError | None = None


def mine(
    palace: Palace,
    folder: str | os.PathLike[str],
    *,
    wing: str | None = None,
    room: str | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> Mined:
    """File the texts of a folder, embed what is new, then take out what is gone.

    In this order, because equal texts share their vector: a renamed file costs no embedding.

    Args:
        palace: an open palace.
        folder: the folder.
        wing: the wing; else the folder's name.
        room: the room; else the first folder below `folder` that a file lies in, or "general".
        max_bytes: files with more are left out.
        progress: told about every file and every batch of vectors.
    Returns:
        what was done. A file that could not be read keeps the drawers that it has.
    Raises:
        BadInput: when there is no such folder.
    """
    root = readable_folder(folder)
    done = Mined(wing or Path(root).name or root)
    found, kept = _look_through(root, palace, max_bytes, done)
    for count, file in enumerate(found, 1):
        try:
            text = read_text(file.path, max_bytes, within=root)
        except CannotRead as error:
            _skip(done, Skipped(file.path, error.reason, error.lasting), root, kept)
        else:
            kept.add(file.path)
            done.files += 1
            done.report += put_source(
                palace, Source(file.path, text, done.wing, room or file.top or DEFAULT_ROOM, ADDED_BY)
            )
        if progress:
            progress("Reading", count, len(found))
    try:
        done.embedded = embed_pending(
            palace, progress and (lambda count, total: progress("Embedding", count, total))
        )
    except (
        MempalaceError
    ) as error:  # the texts are safe and found by their words; the caller says how to go on
        done.problem = error
    sources = _sources_below(palace, root)
    gone = _gone(sources, kept)
    done.gone, done.stale = len(gone), len(done.unread & set(sources))
    done.report.removed += remove_sources(palace, gone, added_by=ADDED_BY)
    return done


def readable_folder(folder: str | os.PathLike[str]) -> str:
    """The folder's absolute path, by the name that it was given: a link stays one, so that it may be pointed elsewhere.

    Raises:
        BadInput: when there is no such folder, or it may not be read.
    """
    root = os.path.abspath(folder)
    if not Path(root).is_dir():
        what = "is a file, not a folder" if Path(root).exists() else "does not exist"
        raise BadInput(f"{folder} {what}; name a folder, or use import for a file of records.")
    if not os.access(root, os.R_OK | os.X_OK):
        raise BadInput(f"{folder} may not be read; check its permissions.")
    return root


def _look_through(root: str, palace: Palace, max_bytes: int, done: Mined) -> tuple[list[Found], set[str]]:
    """The files to read, and what keeps its drawers although it is not read."""
    database = os.path.abspath(palace.file)
    own = {database + ending for ending in ("", "-wal", "-shm", "-journal")} | {
        os.path.abspath(palace.path),
        os.path.abspath(palace.mirror_path),
    }
    found: list[Found] = []
    kept: set[str] = set()
    for item in walk(root, own):
        if isinstance(item, Skipped):
            _skip(done, item, root, kept)
        else:
            found.append(item)
    return found, kept


def _skip(done: Mined, skipped: Skipped, root: str, kept: set[str]) -> None:
    done.skipped[skipped.reason] += 1
    examples = done.examples.setdefault(skipped.reason, [])
    if len(examples) < EXAMPLES:
        examples.append(os.path.relpath(skipped.path, root))
    if not skipped.lasting:
        kept.add(skipped.path)
        done.unread.add(skipped.path)


def _sources_below(palace: Palace, root: str) -> list[str]:
    """The sources that were mined below a folder, now or earlier."""
    below = root.rstrip(os.sep) + os.sep
    with palace.reader() as connection:
        rows = connection.execute(
            "select distinct source_file from drawers where added_by = :added_by"
            " and source_file >= :below and source_file < :behind",
            {"added_by": ADDED_BY, "below": below, "behind": below[:-1] + chr(ord(os.sep) + 1)},
        )
        return [row[0] for row in rows]


def _gone(sources: list[str], kept: set[str]) -> list[str]:
    """Sources that are no longer there: neither they, nor a folder they lie in, are among `kept`."""
    return [
        source
        for source in sources
        if source not in kept and not any(str(parent) in kept for parent in Path(source).parents)
    ]
