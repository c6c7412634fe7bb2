"""The logs that SQLite keeps beside a database file, and taking away those of a file that was replaced by another."""

from __future__ import annotations

import itertools
import os

from .logs import get_logger

WAL = "-wal"
LOGS = (WAL, "-shm")

Identity = tuple[int, int]
logger = get_logger(__name__)


def identity(path: str | os.PathLike[str]) -> Identity | None:
    """Which file is at a path, by device and inode, whatever its name; None when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class FileLogs:
    """The logs of the file that a path leads to.

    Attributes:
        seen: those that lay there while the file was in place.
    """

    def __init__(self, path: str):
        self._file = os.path.realpath(path)  # by which SQLite names them
        self.seen: dict[str, Identity | None] = {}

    def there(self) -> dict[str, Identity | None]:
        """Those that lie there now."""
        return {end: identity(self._file + end) for end in LOGS}

    def take_away(self, is_whole: bool) -> None:
        """Take those away that were seen, unless others have taken their place.

        Args:
            is_whole: whether all that the write-ahead log holds is in the file, too; else it is kept under another name.
        """
        for end, seen in self.seen.items():
            log = self._file + end
            if seen is None or identity(log) != seen:
                continue
            try:
                if is_whole or end != WAL or not os.path.getsize(log):
                    os.unlink(log)
                else:
                    kept = self._free_name()
                    os.rename(log, kept)
                    logger.warning("What was not yet written into the file that was replaced is in %s.", kept)
            except OSError as error:
                logger.warning(
                    "%s belongs to a file that was replaced and cannot be taken away: %s", log, error
                )

    def _free_name(self) -> str:
        """Where a log is kept: never over an earlier one."""
        names = (f"{self._file}.replaced{number or ''}{WAL}" for number in itertools.count())
        return next(name for name in names if not os.path.lexists(name))
