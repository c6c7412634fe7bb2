"""Locks between processes: a lock file in a folder, and whether others keep a SQLite database locked.

The system gives a lock back when its process ends.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import Any


class FolderLock:
    """One lock.

    Args:
        folder: where its file lies; it is made when the lock is taken.
        name: the file's name.
    """

    def __init__(self, folder: Path, name: str):
        self._folder, self._file = folder, folder / name
        self._lock: Any = None

    def take(self, wait: bool = False) -> bool:
        """Take the lock, unless it is held already.

        Args:
            wait: whether to wait for who has it.
        Returns:
            whether it is held now.
        Raises:
            OSError: when the folder cannot be made or written.
        """
        from filelock import FileLock, Timeout

        if self._lock is not None:
            if self._file.exists():
                return True
            # The folder was taken away, and the lock with it.
            self.release()
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._file, thread_local=False)
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            return False
        self._lock = lock
        return True

    def release(self) -> None:
        """Give it back; nothing happens when it is not held."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


# SQLite's lock bytes: https://www.sqlite.org/lockingv3.html
PENDING_BYTE, LOCK_BYTES = 0x40000000, 512
# struct flock, where it is known: type, whence, start, length, process, in the order of the system.
_FLOCK = {"linux": "hhqqi4x", "darwin": "qqihh"}.get(sys.platform)


class DatabaseWatch:
    """Tells whether another process holds a lock on a SQLite database (with a rollback journal).

    It asks the system and takes no lock. Its file stays open until `close`, because closing a file would give back the
    locks that this process has on it. Where it cannot ask (Windows, a file that is not there), nothing counts as locked.

    Args:
        database: the database file.
    """

    def __init__(self, database: Path):
        self._file: int | None = None
        if _FLOCK is not None and database.exists():
            self._file = os.open(database, os.O_RDWR)

    def is_locked(self) -> bool:
        """Whether another process has it locked now."""
        if self._file is None or _FLOCK is None:
            return False
        import fcntl

        start = (PENDING_BYTE, LOCK_BYTES, 0)
        kind = (fcntl.F_WRLCK, os.SEEK_SET)
        asked = struct.pack(_FLOCK, *((*kind, *start) if sys.platform == "linux" else (*start, *kind)))
        told = struct.unpack(_FLOCK, fcntl.fcntl(self._file, fcntl.F_GETLK, asked))
        return told[0 if sys.platform == "linux" else 3] != fcntl.F_UNLCK

    def close(self) -> None:
        """Let the file go; only when this process has no lock on it any more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
