"""A lock file in a folder, held by one process at a time; the system gives it back when that process ends."""

from __future__ import annotations

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
