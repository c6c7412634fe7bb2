"""The connections to one database file: a pool that reads, one that writes; none to a file that has taken its place.

SQLite finds the write-ahead log by its name. Where another file is moved over a database that is open, the old one's log
lies beside the new one, and whoever then opens that, or goes on writing, mixes the two. So what is at the path is
compared with what was opened, before anything is read or written.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from datasette.utils.sqlite import sqlite3

from . import schema
from .errors import MempalaceError, PalaceClosed, PalaceMissing, PalaceReadOnly, PalaceReplaced
from .file_logs import FileLogs, Identity, identity
from .logs import get_logger

BUSY_SECONDS = 30
IDLE_READERS = 8
# SQLite's 2 MB hold not even the pages of one search in a large palace.
CACHE_KB = 16_384
READERS_SECONDS = 3.0  # how long readers are waited for who keep a log from being written into its file

logger = get_logger(__name__)


class Connections:
    """The connections to a database file. Safe to use from any thread.

    Args:
        path: the file.
        read_only: whether nothing may be written.
        immutable: whether to read the file alone, without a write-ahead log.
        may_create: whether a file is made where there is none.
    """

    def __init__(self, path: str, read_only: bool, immutable: bool = False, may_create: bool = False):
        self.path, self.read_only = path, read_only
        self._immutable, self._may_create = immutable, may_create
        self._readers: deque[Any] = deque()
        self._write_lock = threading.RLock()
        self._writer: Any = None
        self._is_closed = False
        self._opened: Identity | None = None
        self._logs = FileLogs(path)

    @property
    def is_in_place(self) -> bool:
        """Whether the file at the path is the one that was opened."""
        return self._look()

    @contextmanager
    def reader(self) -> Iterator[Any]:
        """A read-only connection of a small pool, with one consistent view of the data while it is held."""
        self._refuse_other()
        try:
            connection = self._readers.pop()
        except IndexError:
            connection = self._connect_reader()
        try:
            connection.execute("begin")
            yield connection
        finally:
            connection.rollback()
            self._look()
            if len(self._readers) < IDLE_READERS and not self._is_closed:
                self._readers.append(connection)
            else:
                connection.close()

    @contextmanager
    def writer(self, transaction: bool = True) -> Iterator[Any]:
        """The writing connection, for one thread at a time.

        Args:
            transaction: whether to begin one, commit it on success and roll it back on an exception.
        Raises:
            PalaceReadOnly: when nothing may be written.
            PalaceReplaced: when the file is no longer at its path.
        """
        if self.read_only:
            raise PalaceReadOnly(f"{self.path} can only be read, so nothing was changed.")
        with self._write_lock:
            self._refuse_other()
            if self._writer is None:
                # Only who may create makes a file: a palace that was deleted must not come back as an empty one.
                self._writer = self._connect("mode=rwc" if self._may_create else "mode=rw")
                self._writer.text_factory = _forgiving
                self._writer.execute("pragma recursive_triggers = on")
                self._writer.execute("pragma synchronous = normal")
            if not transaction or self._writer.in_transaction:
                yield self._writer
                self._look()
                return
            self._writer.execute("begin immediate")
            try:
                yield self._writer
                self._refuse_other()
            except BaseException:
                self._writer.rollback()
                raise
            self._writer.commit()

    def checkpoint(self) -> bool:
        """Write what is still in the write-ahead log into the database file, for copying or immutable serving.

        Returns:
            whether the log is empty now; not while somebody reads or writes.
        """
        with self.writer(transaction=False) as connection:
            busy = connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
        return not busy

    def close_readers(self) -> None:
        """Close the reading connections that are idle; new ones are made when they are needed."""
        with suppress(IndexError):
            while True:
                self._readers.pop().close()

    def stop(self) -> None:
        """Hand out no connection any more; those that are held end as they would."""
        self._is_closed = True

    def close(self) -> None:
        """Close every connection; they must not be used afterwards."""
        self.stop()
        self.close_readers()
        # Last, because only a connection that may write takes the write-ahead log away when it closes.
        with self._write_lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def set_aside(self) -> None:
        """Let another file at the path be opened unharmed: take away the log of the one that was replaced.

        What that log still holds is first written into its own file, which may have got another name; where that is
        impossible the log is kept under another name.
        """
        with self._write_lock:
            self._is_closed = True
            is_whole = self._write_log_into_file()
        if not self.read_only:
            self._logs.take_away(is_whole)

    def _write_log_into_file(self) -> bool:
        if self._writer is None:
            return False
        until = time.monotonic() + READERS_SECONDS
        try:
            while True:
                _, pages, written = self._writer.execute("pragma wal_checkpoint(passive)").fetchone()
                if pages == written or time.monotonic() > until:
                    return bool(pages == written)
                time.sleep(0.05)
        except sqlite3.Error as error:
            logger.info("The log of %s, which was replaced, was not written into it: %s", self.path, error)
            return False

    def _look(self) -> bool:
        """Whether the file is in place; if so, it is remembered which logs lie beside it."""
        # Logs first, so that what is remembered lay beside the file that is still there afterwards.
        logs = self._logs.there()
        if self._opened is not None and identity(self.path) != self._opened:
            return False
        self._logs.seen = logs
        return True

    def _refuse_other(self) -> None:
        if not self.is_in_place:
            name = Path(self.path).name
            if identity(self.path) is None:
                raise PalaceMissing(
                    f"{name} was deleted or moved away while it was open: nothing more is read from it or written to it."
                )
            raise PalaceReplaced(
                f"{name} was replaced by another file while it was open: nothing more is read from it or written to it."
                " Start again with what is there now."
            )
        if self._is_closed:
            raise PalaceClosed(f"The palace {Path(self.path).name} was closed; ask again.")

    def _connect(self, options: str) -> Any:
        connection = sqlite3.connect(
            f"file:{quote(os.path.abspath(self.path))}?{options}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        if self._opened is None:
            self._opened = identity(self.path)
        try:
            self._refuse_other()
        except MempalaceError:
            connection.close()
            raise
        return connection

    def _connect_reader(self) -> Any:
        alone = "mode=ro&immutable=1"
        for options in (alone,) if self._immutable else ("mode=ro", alone):
            connection = self._connect(options)
            try:
                connection.execute("select 1 from sqlite_master limit 1").fetchone()
            except sqlite3.OperationalError:
                connection.close()
                # A write-ahead log cannot be opened on a read-only file system; without one, immutable can.
                if not self.read_only or "immutable" in options:
                    raise
                continue
            connection.text_factory = _forgiving
            connection.execute(f"pragma cache_size = -{CACHE_KB}")
            schema.attach_terms(connection)
            connection.execute("pragma query_only = on")
            return connection
        raise AssertionError("unreachable")


def _forgiving(text: bytes) -> str:
    """Text from SQLite, where any program may have left bytes that are not UTF-8."""
    return text.decode("utf-8", "replace")
