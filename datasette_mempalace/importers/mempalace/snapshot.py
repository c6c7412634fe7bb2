"""Consistent copies of a palace that is never written to, whether somebody has it open at that moment or not.

The import reads these copies alone. Nothing is written into the foreign folder, not even the shared-memory file that
SQLite likes to make beside a database in WAL mode. Must not run in a process that has a Chroma client open on the same
folder: closing any connection there would drop that client's file locks.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from ...errors import BadInput, MempalaceError
from ...origins import CHROMA_FILE

TRIES = 4
PAUSE = 0.5
LOCK_SECONDS = 10
_WAL = 2

Result = TypeVar("Result")
Signature = tuple[tuple[str, int, int, int], ...]


class PalaceBusy(MempalaceError):
    """The foreign palace was written to so much that no consistent state could be taken."""

    status = 409
    title = "Palace is being written to"


class _Changed(Exception):
    """A file changed while it was copied."""


def take_snapshot(folder: Path, target: Path, segments: Callable[[Any], Iterable[str]]) -> Path:
    """Copy a palace's database and the index files of some of its segments, as of one moment.

    Args:
        folder: the palace folder.
        target: an empty folder of our own for the copies.
        segments: called with a connection to the copied database; names the segment folders to copy.
    Returns:
        the copied database.
    Raises:
        PalaceBusy: when the palace does not hold still for long enough.
        BadInput: when the database cannot be read.
    """

    def attempt() -> Path:
        # The database's copy is one moment by itself; index files must not change around it.
        before = _signature(_index_files(folder))
        copy = _copy_database(folder / CHROMA_FILE, target / CHROMA_FILE)
        connection = sqlite3.connect(str(copy))
        try:
            wanted = [folder / name for name in segments(connection) if (folder / name).is_dir()]
        finally:
            connection.close()
        _need_room(target, [file for source in wanted for file in source.iterdir()])
        for source in wanted:
            shutil.rmtree(target / source.name, ignore_errors=True)
            _copy_folder(source, target / source.name)
        # Index files older than the database could lack vectors that its queue has forgotten.
        if _signature(_index_files(folder)) != before:
            raise _Changed
        return copy

    return _held_still(folder, attempt)


def copy_database(file: Path, target: Path) -> Path:
    """Copy one SQLite database as of one moment, without writing anything beside it.

    Args:
        file: the database.
        target: where the copy goes; its folder exists.
    Returns:
        `target`.
    Raises:
        PalaceBusy: when it does not hold still for long enough.
        BadInput: when it cannot be read.
    """
    return _held_still(file, lambda: _copy_database(file, target))


def _held_still(what: Path, attempt: Callable[[], Result]) -> Result:
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE * number)
        try:
            return attempt()
        except _Changed:
            continue
        except FileNotFoundError:  # a file was taken away under our hands
            continue
    raise PalaceBusy(
        f"{what} is being written to: no consistent state could be taken in {TRIES} attempts, so nothing was imported. "
        "Stop what writes to it (a running mempalace mine, its server or daemon) and try again."
    )


def _copy_database(file: Path, target: Path) -> Path:
    _need_room(target.parent, _companions(file))
    for name in _companions(target):
        name.unlink(missing_ok=True)
    wal, shared = (Path(f"{file}{suffix}").exists() for suffix in ("-wal", "-shm"))
    if wal and shared:
        # The index in shared memory is only read, where `mode=ro` alone would write its read marks.
        options = "mode=ro&readonly_shm=1"
    elif _journal_mode(file) == _WAL:
        # Nobody has it open. Any connection that is not immutable would make the two files beside it.
        return _copy_files(file, target)
    else:
        options = "mode=ro"
    try:
        return _back_up(file, target, options)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise _Changed from error
        # A rollback journal that a crash has left: only a writer may play it back, so a copy has to.
        return _copy_files(file, target)
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{file} cannot be read as a SQLite database: {error}.") from error


def _back_up(file: Path, target: Path, options: str) -> Path:
    source = sqlite3.connect(
        f"file:{quote(os.path.abspath(file))}?{options}",
        uri=True,
        timeout=LOCK_SECONDS,
        isolation_level=None,
    )
    try:
        # Python's backup waits for ever while another holds the lock; taking it first waits for LOCK_SECONDS.
        source.execute("begin")
        source.execute("select count(*) from sqlite_master").fetchone()
        copy = sqlite3.connect(str(target))
        try:
            source.backup(copy)
        finally:
            copy.close()
    finally:
        source.close()
    return target


def _copy_files(file: Path, target: Path) -> Path:
    """Copy a database with its journal as files, and let the copy recover what is in the journal."""
    before = _signature(_companions(file))
    for source, copy in zip(_companions(file), _companions(target), strict=True):
        if source.exists() and not source.name.endswith("-shm"):
            shutil.copyfile(source, copy)
    if _signature(_companions(file)) != before:
        raise _Changed
    try:
        connection = sqlite3.connect(str(target))
        try:
            sound = connection.execute("pragma quick_check(1)").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{file} cannot be read as a SQLite database: {error}.") from error
    if sound != "ok":
        raise BadInput(
            f"{file} is damaged: {sound}. Repair it first, with mempalace repair or the sqlite3 shell."
        )
    return target


def _copy_folder(source: Path, target: Path) -> None:
    target.mkdir()
    for file in source.iterdir():
        if file.is_file():
            shutil.copyfile(file, target / file.name)


def _companions(file: Path) -> list[Path]:
    return [Path(f"{file}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]


def _journal_mode(file: Path) -> int:
    """The file format's write version: 1 for a rollback journal, 2 for WAL."""
    with file.open("rb") as opened:
        header = opened.read(19)
    return header[18] if len(header) == 19 else 0


def _index_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*/*") if file.is_file())


def _signature(files: Iterable[Path]) -> Signature:
    """What changes when a file is written: its size, time of change and inode."""
    found = []
    for file in files:
        try:
            state = file.stat()
        except FileNotFoundError:
            continue
        found.append((str(file), state.st_size, state.st_mtime_ns, state.st_ino))
    return tuple(found)


def _need_room(target: Path, files: Iterable[Path]) -> None:
    needed = sum(file.stat().st_size for file in files if file.exists())
    free = shutil.disk_usage(target).free
    if needed > free:
        raise MempalaceError(
            f"The import first copies the palace beside the database, which takes {needed / 1e6:,.0f} MB, and {target.parent} "
            f"has {free / 1e6:,.0f} MB left; make room there."
        )
