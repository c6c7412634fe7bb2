"""A served palace whose file was replaced, or taken away, is noticed before a request reads or writes it.

Datasette keeps its connections for as long as it runs. To a file that is no longer there they would answer of what was, and
write where nobody looks; and a new one beside them would mix both files through the log that they share by its name.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
import weakref
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from datasette.utils import tilde_decode
from datasette.utils.sqlite import sqlite3

from .compat import hide_tables, settings_error
from .errors import MempalaceError, PalaceMissing, PalaceNotFound, PalaceUnreadable
from .file_logs import FileLogs, Identity, identity
from .logs import get_logger
from .registry import open_file, registry_of
from .reopening import attach_anew, look_at_schemas, reopen
from .schema import INNER_TABLES, is_palace

logger = get_logger(__name__)

LOOK_AGAIN = 1.0  # seconds after which it is looked again whether a palace is back


class Files:
    """Which file each database of one Datasette was opened from."""

    def __init__(self) -> None:
        self.opened: dict[str, Identity | None] = {}
        self.missing: dict[
            str, Any
        ] = {}  # databases that Datasette does not have while no palace is at their path
        self.logs: dict[str, FileLogs] = {}
        self.changes = 0  # how often another file, or none, was found at a path
        self.lock = asyncio.Lock()
        self._places: dict[str, int] = {}
        self._looked = 0.0

    def replaced(self, datasette: Any) -> list[Any]:
        """The databases at whose path another file lies than was opened, or none; those that are new are noted."""
        it_is_time = time.monotonic() - self._looked > LOOK_AGAIN
        found = []
        for db in (*datasette.databases.values(), *self.missing.values()):
            if not db.path:
                continue
            logs = self.logs.setdefault(db.name, FileLogs(db.path))
            there, now = logs.there(), identity(db.path)
            if self.opened.setdefault(db.name, now) != now or (it_is_time and db.name in self.missing):
                found.append(db)
            else:
                logs.seen = there
        return found

    def take_out(self, datasette: Any, db: Any) -> None:
        """Let Datasette do without a database: it asks all of them for every page, which fails where one cannot be read."""
        for name in datasette.databases:
            self._places.setdefault(name, len(self._places))
        datasette.databases = {name: each for name, each in datasette.databases.items() if each is not db}
        self.missing[db.name], self._looked = db, time.monotonic()

    def put_back(self, datasette: Any, db: Any) -> None:
        """Let Datasette have a database again, in its old place among the others."""
        if self.missing.pop(db.name, None) is not None:
            every = {**datasette.databases, db.name: db}
            order = sorted(every, key=lambda name: self._places.get(name, len(every)))
            datasette.databases = {name: every[name] for name in order}


_files: weakref.WeakKeyDictionary[Any, Files] = weakref.WeakKeyDictionary()


async def follow(datasette: Any) -> None:
    """Let Datasette and the registry open anew what was replaced.

    Databases that are no palaces, and have not become one, are left alone.
    """
    files = _files.setdefault(datasette, Files())
    if not files.replaced(datasette):
        return
    async with files.lock:
        for db in files.replaced(datasette):
            now, registry = identity(db.path), registry_of(datasette)
            was = files.opened[db.name], db.name in files.missing
            if registry.has_opened(db.path):
                # First what is written by us, and the old log: nobody may open the new file beside it.
                await asyncio.to_thread(registry.let_go_if_replaced, db.path)
                if await _is_back(datasette, db):
                    await _open_anew(datasette, files, db)
                else:
                    files.take_out(datasette, db)
                    if not was[1]:
                        attach_anew(datasette)
                    await look_at_schemas(datasette)
            elif now is not None and await asyncio.to_thread(_looks_like_palace, db.path):
                if db.is_mutable:
                    files.logs[db.name].take_away(is_whole=False)
                await _open_anew(datasette, files, db)
            files.opened[db.name] = now
            files.changes += was != (now, db.name in files.missing)


def changes(datasette: Any) -> int:
    """How often `follow` has found another file, or none, at the path of a database; the same where nothing was replaced."""
    return _files[datasette].changes


def refuse_missing(datasette: Any, path: str) -> None:
    """Refuse what concerns a palace that is not at its path.

    Writing would make an empty file in its place; reading would answer by chance, as far as a thread still has the old one open.

    Args:
        datasette: the Datasette instance.
        path: the request's, decoded.
    Raises:
        PalaceMissing: when there is no palace at the path of the one that it names.
    """
    files = _files.get(datasette)
    if files is None or not files.missing:
        return
    route = path.removeprefix(datasette.setting("base_url")).lstrip("/").partition("/")[0].partition(".")[0]
    for db in files.missing.values():
        if db.route == tilde_decode(route):
            raise PalaceMissing(
                f"The file of {db.name} {_what_happened(db.path)} while it was served; nothing was read or written. Put a"
                " palace there again; the server then goes on with it."
            )


def check_names(datasette: Any) -> None:
    """Refuse to start with one palace under two names by hard links, as SQLite would keep a log for each of them.

    Raises:
        Exception: of the kind that Datasette ends with by printing its sentence.
    """
    served: dict[Identity, Any] = {}
    for db in datasette.databases.values():
        found = identity(db.path) if db.path else None
        first = served.setdefault(found, db) if found is not None else db
        if (
            first is db
            or os.path.realpath(first.path) == os.path.realpath(db.path)
            or not (first.is_mutable or db.is_mutable)
        ):
            continue
        if _looks_like_palace(db.path):
            raise settings_error(
                f"{first.path} and {db.path} are one palace under two names, by hard links. SQLite would keep a log for"
                " each name, which damages the file: serve it under one, or let the other be a symbolic link."
            )


async def _open_anew(datasette: Any, files: Files, db: Any) -> None:
    await reopen(datasette, db)
    files.put_back(datasette, db)
    attach_anew(datasette)
    registry_of(datasette).note(db.path, True)
    hide_tables(datasette, db.name, INNER_TABLES)
    await look_at_schemas(datasette)
    logger.info("%s: Datasette has opened its file anew.", db.name)


async def _is_back(datasette: Any, db: Any) -> bool:
    """Whether a palace lies where one was; the registry has it open then, unless it says what is wrong with it."""
    try:
        await open_file(datasette, db)
    except (PalaceNotFound, PalaceMissing, PalaceUnreadable) as error:
        logger.warning("%s: %s", db.name, error.message)
        return False
    except (
        MempalaceError
    ):  # a palace, of which its own pages tell more; or yet another file, which the next request sees
        return True
    return True


def _looks_like_palace(path: str) -> bool:
    """Whether a file holds a palace, seen without the log beside it, which may be another file's."""
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(Path(path).absolute()))}?mode=ro&immutable=1", uri=True)
        ) as connection:
            return is_palace(connection)
    except sqlite3.Error:
        return False


def _what_happened(path: str) -> str:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "was deleted or moved away"
    except OSError as error:
        return f"came out of reach ({error.strerror})"
    if not stat.S_ISREG(found.st_mode):
        return (
            "was replaced by a folder" if stat.S_ISDIR(found.st_mode) else "was replaced by what is no file"
        )
    return f"was replaced by {'a file that is no palace' if found.st_size else 'an empty file'}"
