"""A palace: one SQLite database, the embedding model its vectors come from, and its mirror.

Opens and closes them. SQLite is the truth; the palace never needs its mirror to answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasette.utils.sqlite import sqlite3

from . import schema, structure
from .brief_lock import BriefLock
from .config import Settings
from .connections import Connections
from .counts import WordCounts
from .embedding import Embedder, embedder_from
from .errors import EmbedderMismatch, PalaceNotFound, PalaceReadOnly, PalaceUnreadable
from .kept import KeptAnswers
from .locks import FolderLock

if TYPE_CHECKING:
    from .matrix import MatrixKeeper
    from .mirror import Mirror


class Palace:
    """An open palace. Safe to use from any thread; make one with `Palace.open` or `Palace.create`.

    Attributes:
        path: the database file.
        file: the same, or what it leads to where it is a link: by that SQLite names the log, and all find one mirror.
        settings: the settings in force.
        read_only: whether nothing may be written (an immutable database, a read-only file system).
        immutable: whether the file alone is read, without a write-ahead log.
        connections: those to the database file.
        word_counts: in how many drawers words stand, as far as searches have asked.
        kept_answers: what pages have counted and the palace has not changed since.
    """

    def __init__(
        self,
        path: str,
        settings: Settings,
        read_only: bool,
        immutable: bool = False,
        may_create: bool = False,
    ):
        self.path, self.settings, self.read_only, self.immutable = path, settings, read_only, immutable
        self.file = os.path.realpath(path) if os.path.islink(path) else path
        self.connections = Connections(path, read_only, immutable, may_create)
        self._make_lock = BriefLock()
        self.word_counts = WordCounts()
        self.kept_answers = KeptAnswers()
        self._embedder: Embedder | None = None
        self._mirror: Mirror | None = None
        self._matrices: MatrixKeeper | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        settings: Settings | None = None,
        *,
        read_only: bool = False,
        immutable: bool = False,
        damaged: bool = False,
    ) -> Palace:
        """Open a palace that exists, migrating an older one.

        Args:
            path: the database file.
            settings: the settings, or None for the defaults.
            read_only: whether to write nothing, not even migrations.
            immutable: whether to read the file alone, as Datasette does with -i: nothing is made beside it, its
                write-ahead log is not read, and nobody may write it meanwhile.
            damaged: whether to open one whose tables are missing, too, as it is: for whoever mends it.
        Raises:
            PalaceNotFound: when there is no such file, or it is not a palace.
            PalaceUnreadable: when it is out of reach, or SQLite cannot open it now.
            PalaceDamaged: when tables of it are missing.
            PalaceTooNew: when a newer version of this package wrote it.
        """
        file = Path(path)
        _refuse_out_of_reach(file)
        if not file.is_file():
            what = "is a folder, not a palace database" if file.is_dir() else "does not exist"
            raise PalaceNotFound(f"{file} {what}; make a palace with: datasette mempalace init {file}")
        writable = os.access(file, os.W_OK) and os.access(file.resolve().parent, os.W_OK)
        read_only = read_only or immutable or not writable
        palace = cls(str(file), settings or Settings(), read_only, immutable)
        try:
            with palace.reader() as connection:
                if not schema.is_palace(connection):
                    raise PalaceNotFound(
                        f"{file} is a database without a palace in it; make one there with: "
                        f"datasette mempalace init {file}"
                    )
                schema.refuse_newer(connection)
                if not damaged:
                    structure.refuse_damaged(connection, file.name)
                elif structure.missing_tables(connection) or structure.lost_columns(connection):
                    return palace
                pending = schema.pending_migrations(connection)
        except sqlite3.OperationalError as error:
            raise PalaceUnreadable(
                f"SQLite cannot open {file} now: {error}. A full disk, a limit on the size of files (ulimit -f) or missing "
                f"rights may keep it from {file.name}-shm beside it."
            ) from error
        except sqlite3.DatabaseError as error:
            raise PalaceNotFound(f"{file} cannot be read as a SQLite database: {error}.") from error
        if pending and read_only:
            raise PalaceReadOnly(
                f"{file} was made by an older version and must be brought up to date, but it can only be read; "
                f"where it can be written, run: datasette mempalace init {file}"
            )
        if pending:
            with palace.writer(transaction=False) as connection:
                schema.migrate(connection)
        return palace

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], settings: Settings | None = None, *, model: str | None = None
    ) -> Palace:
        """Make a palace, or bring the one that is there up to date; what is in it stays.

        Args:
            path: the database file; its folder must exist. Another SQLite database gains a palace.
            settings: the settings; `embedder` is recorded when the palace is made.
            model: what to record where the settings name none: that of vectors to come in, which may not be known here.
        Raises:
            BadParameter: when the settings name an embedder that is not known here, and the palace is not made yet.
            PalaceNotFound: when the folder does not exist or the file is no SQLite database.
            PalaceUnreadable: when the folder is out of reach.
            PalaceReadOnly: when the file or folder cannot be written.
            PalaceDamaged: when there is one already, and tables of it are missing.
            EmbedderMismatch: when the palace is already bound to another embedder.
        """
        file = Path(path)
        _refuse_out_of_reach(file)
        if not file.resolve().parent.is_dir():
            raise PalaceNotFound(f"The folder {file.resolve().parent} does not exist; make it first.")
        palace = cls(str(file), settings or Settings(), read_only=False, may_create=True)
        named = embedder_from(palace.settings.embedder)
        if not file.exists():
            named.refuse_unknown()
        try:
            with palace.writer(transaction=False) as connection:
                if schema.is_palace(connection):
                    schema.refuse_newer(connection)
                    structure.refuse_damaged(connection, file.name)
                else:
                    named.refuse_unknown()
                connection.execute("pragma journal_mode = wal")
                schema.migrate(connection)
        except sqlite3.OperationalError as error:
            raise PalaceReadOnly(f"{file} cannot be written: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise PalaceNotFound(f"{file} is not a SQLite database: {error}.") from error
        palace.bind_embedder(model)
        return palace

    @property
    def is_in_place(self) -> bool:
        """Whether the file at the path is still the one that was opened, and not another or none."""
        return self.connections.is_in_place

    def reader(self) -> AbstractContextManager[Any]:
        """A read-only connection of a small pool, with one consistent view of the data while it is held.

        Raises:
            PalaceReplaced: when the file is no longer at its path.
        """
        return self.connections.reader()

    def writer(self, transaction: bool = True) -> AbstractContextManager[Any]:
        """The writing connection, for one thread at a time.

        Args:
            transaction: whether to begin one, commit it on success and roll it back on an exception.
        Raises:
            PalaceReadOnly: when nothing may be written.
            PalaceReplaced: when the file is no longer at its path.
        """
        return self.connections.writer(transaction)

    @property
    def embedder(self) -> Embedder:
        """The embedder that the palace is bound to; nothing is loaded.

        Raises:
            EmbedderMismatch: when the settings name another one than the palace was made with.
        """
        with self._make_lock:
            if self._embedder is None:
                self._embedder = self._make_embedder()
            return self._embedder

    @property
    def mirror(self) -> Mirror:
        """The palace's mirror; Chroma is not opened before it is used."""
        with self._make_lock:
            if self._mirror is None:
                from .mirror import Mirror

                self._mirror = Mirror(self)
            return self._mirror

    @property
    def matrices(self) -> MatrixKeeper:
        """The palace's vectors in memory; nothing is loaded before it is used."""
        with self._make_lock:
            if self._matrices is None:
                from .matrix import MatrixKeeper

                self._matrices = MatrixKeeper(self.settings.matrix_mb * 2**20)
            return self._matrices

    @property
    def mirror_path(self) -> Path:
        """The folder of the Chroma mirror: the setting, or `<database>.chroma` beside the database."""
        if self.settings.mirror_path:
            return Path(self.settings.mirror_path).expanduser()
        return Path(self.file + ".chroma")

    @contextmanager
    def embedding_lock(self, wait: bool) -> Iterator[bool]:
        """Keep other processes from embedding the same texts meanwhile.

        Args:
            wait: whether to wait for another process; else it is left to that one.
        Yields:
            whether the lock was got; where no lock can be made there is nobody to wait for.
        """
        lock = FolderLock(self.mirror_path, "embedding.lock")
        try:
            taken = lock.take(wait)
        except OSError:
            taken = True
        try:
            yield taken
        finally:
            lock.release()

    def bind_embedder(self, model: str | None = None) -> None:
        """Record the embedder at the palace's making, or `model` where none is set; later on, check that it is the same."""
        with self.writer() as connection:
            if schema.get_setting(connection, "embedding_model") is None:
                embedder = embedder_from(self.settings.embedder or (model and {"name": model}) or None)
                named = {"name": embedder.name, "config": embedder.public_config}
                schema.set_setting(connection, "embedder", json.dumps(named))
                schema.set_setting(connection, "embedding_model", embedder.model)
        _ = self.embedder

    def checkpoint(self) -> bool:
        """Write what is still in the write-ahead log into the database file; returns whether the log is empty now."""
        return self.connections.checkpoint()

    def set_aside(self) -> None:
        """Stop at once: another file has taken the place of the palace's own, which can be opened unharmed afterwards.

        What is under way ends with `PalaceReplaced`; `close` is still to be called, and may wait for it.
        """
        self.connections.set_aside()

    def close(self) -> None:
        """Close every connection and the mirror; the palace must not be used afterwards."""
        self.connections.stop()
        if self._mirror is not None:
            self._mirror.close()
        if self._matrices is not None:
            self._matrices.drop()
        self.connections.close()

    def __enter__(self) -> Palace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _make_embedder(self) -> Embedder:
        with self.reader() as connection:
            recorded = schema.get_setting(connection, "embedder")
            model = schema.get_setting(connection, "embedding_model")
        chosen = self.settings.embedder or _read_embedder(recorded)
        embedder = embedder_from(chosen)
        if model and embedder.model != model:
            raise EmbedderMismatch(
                f"This palace's vectors come from the embedding model {model}, but the settings name "
                f"{embedder.model}; take the embedder setting away, or make a new palace with it."
            )
        return embedder


def _read_embedder(recorded: str | None) -> Any:
    """The embedder a palace records; what cannot be read counts as not recorded."""
    try:
        chosen = json.loads(recorded or "null")
    except ValueError:
        return None
    return chosen if isinstance(chosen, dict) else None


def _refuse_out_of_reach(file: Path) -> None:
    try:
        file.stat()
    except PermissionError as error:
        raise PalaceUnreadable(
            f"{file} cannot be reached: {error.strerror}. Every folder that it lies in must be open to this user."
        ) from None
    except OSError:  # there is none; the caller says what that means
        return
