"""Which databases of a Datasette are palaces, and the one open `Palace` for each.

Everything is kept per Datasette instance and goes with it: palaces by the path of their file, and a few threads of
their own for searching, so that a search takes neither the event loop nor Datasette's own SQL threads.
This module never loads a model, and writes nothing but that a mirror is to be filled anew.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from .compat import hide_tables, settings_error
from .config import Settings, read_settings
from .errors import MempalaceError, PalaceMissing
from .file_logs import identity
from .keeper import Keeper
from .logs import get_logger
from .palace import Palace
from .schema import INNER_TABLES, is_palace

PLUGIN = "datasette-mempalace"
# One a processor: more only wait for each other, and Datasette's own pages for all of them. Two, so that one slow search
# does not stop the rest.
THREADS = max(2, min(4, os.cpu_count() or 2))
LOOK_AGAIN = 5.0  # seconds after which a database that was no palace is looked at again

P = ParamSpec("P")
T = TypeVar("T")
logger = get_logger(__name__)


class Registry:
    """The palaces of one Datasette. It must not refer to the Datasette that it belongs to."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(THREADS, thread_name_prefix="mempalace")
        self.keeper = Keeper(self.opened)
        self._lock = threading.Lock()
        self._palaces: dict[str, Palace] = {}  # by their files, links followed
        self._led: dict[str, str] = {}  # paths as Datasette has them, and to which file they led
        self._replaced: set[str] = set()  # whose file was there and is no more
        self._not_palaces: dict[str, float] = {}
        self._closed = False

    def palace(self, path: str, settings: Settings, immutable: bool) -> Palace:
        """The palace in a file, opened when it is asked for first, and again when another file has taken its place.

        Raises:
            MempalaceError: when it cannot be opened, or the registry was closed.
            PalaceMissing: when its file was taken away while it was served.
        """
        with self._lock:
            if self._closed:
                raise MempalaceError("This Datasette is shutting down; start it again to search.")
            key = self._follow(path)
            if key not in self._palaces:
                self._palaces[key] = self._open(key, settings, immutable)
            self._led[path] = key
            return self._palaces[key]

    def opened(self) -> list[Palace]:
        """The palaces that are open now; where a file was replaced, the one that is there now."""
        with self._lock:
            found = [
                (path, key, self._palaces[key]) for path, key in self._led.items() if key in self._palaces
            ]
        for path, key, palace in found:
            if not palace.is_in_place or _file_of(path) != key:
                try:
                    self.palace(path, palace.settings, palace.immutable)
                except MempalaceError as error:
                    logger.warning("%s: %s", palace.path, error.message)
        with self._lock:
            return list(self._palaces.values())

    def has_opened(self, path: str) -> bool:
        """Whether a file at this path, the one that is there or one before it, was opened as a palace."""
        return path in self._led

    def let_go_if_replaced(self, path: str) -> None:
        """Stop using the palace at a path when its file is no longer there; opening what is there now does no harm then."""
        with self._lock:
            self._follow(path)

    def lately_no_palace(self, path: str) -> bool:
        """Whether the file was found to be no palace a moment ago."""
        return time.monotonic() - self._not_palaces.get(path, float("-inf")) < LOOK_AGAIN

    def note(self, path: str, is_one: bool) -> None:
        """Remember what a look into a file has shown."""
        if is_one:
            self._not_palaces.pop(path, None)
        else:
            self._not_palaces[path] = time.monotonic()

    def close(self) -> None:
        """Stop the keeper and close every palace; later calls of `palace` are refused, a second close does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            palaces, self._palaces = list(self._palaces.values()), {}
        self.keeper.stop()
        self.executor.shutdown(cancel_futures=True)
        for palace in palaces:
            palace.close()

    def _open(self, key: str, settings: Settings, immutable: bool) -> Palace:
        if key in self._replaced and identity(key) is None:
            raise PalaceMissing(
                f"The file of this palace, {Path(key).name}, was deleted or moved away while it was served. Put a palace"
                " there again; the server then goes on with it."
            )
        palace = Palace.open(key, settings, immutable=immutable)
        if key in self._replaced:
            self._replaced.discard(key)
            self.keeper.forget(key)
            if not palace.read_only:
                # Of a copy of the same palace it may look right, and be of another state.
                palace.mirror.forget()
            logger.warning("%s was replaced by another file, which is served from now on.", key)
        return palace

    def _follow(self, path: str) -> str:
        """The file that a path leads to; a palace that it led to before is let go, and one whose file was replaced."""
        key = _file_of(path)
        before = self._led.get(path, key)
        others = [led for other, led in self._led.items() if other != path]
        for each in {before, key}:
            palace = self._palaces.get(each)
            if palace is None or (palace.is_in_place and (each == key or each in others)):
                continue
            del self._palaces[each]
            if not palace.is_in_place:
                self._replaced.add(each)
                palace.set_aside()
            if each != key:
                logger.warning("%s led to %s, and leads to %s now.", path, each, key)
            elif identity(each) is None:
                logger.warning(
                    "%s was deleted or moved away; nothing is written until a file is there again.", each
                )
            # Waits for what is under way, which stops between batches.
            threading.Thread(target=palace.close, name="mempalace-close", daemon=True).start()
        return key


def _file_of(path: str) -> str:
    return str(Path(path).resolve())


_registries: weakref.WeakKeyDictionary[Any, Registry] = weakref.WeakKeyDictionary()
_open_registries: weakref.WeakSet[Registry] = weakref.WeakSet()
_registries_lock = threading.Lock()


def registry_of(datasette: Any) -> Registry:
    """The registry of a Datasette instance, closed with it or when Python ends."""
    found = _registries.get(datasette)
    if found is None:
        made = Registry()
        with _registries_lock:
            found = _registries.setdefault(datasette, made)
        if found is made:
            _open_registries.add(found)
            weakref.finalize(datasette, _let_go, found).atexit = False
    return found


def _let_go(registry: Registry) -> None:
    """Close a registry whose Datasette is gone, in a thread of its own.

    Garbage is collected in the middle of anything, perhaps in a thread that holds what closing waits for.
    """
    threading.Thread(target=registry.close, name="mempalace-close", daemon=True).start()


@atexit.register
def _close_all() -> None:
    """Close what is still open when Python ends."""
    for registry in list(_open_registries):
        registry.close()


def settings_of(datasette: Any, database: str) -> Settings:
    """The plugin's settings for one database: its own block laid over the instance's.

    Raises:
        ConfigError: when they are not usable.
    """
    own = datasette.plugin_config(PLUGIN, database=database, fallback=False)
    return read_settings(datasette.plugin_config(PLUGIN), own)


def check_settings(datasette: Any) -> None:
    """Refuse to start with settings that cannot be used.

    Raises:
        Exception: of the kind that Datasette ends with by printing its sentence.
    """
    try:
        for database in datasette.databases:
            settings_of(datasette, database)
    except MempalaceError as error:
        raise settings_error(error.message) from None


async def hide_inner_tables(datasette: Any) -> None:
    """List what is not for reading (vectors, logs, settings) of every palace among the hidden tables."""
    for database in await palace_databases(datasette):
        hide_tables(datasette, database, INNER_TABLES)


async def is_palace_database(datasette: Any, db: Any) -> bool:
    """Whether a Datasette database is a palace; one that lies in memory or cannot be read is none."""
    if db.path is None:
        return False
    registry = registry_of(datasette)
    if registry.lately_no_palace(db.path):
        return False
    try:
        found = bool(await db.execute_fn(is_palace))
    except Exception as error:  # a file that is no database or cannot be read must not break other pages
        logger.warning("%s cannot be looked at: %s", db.name, error)
        found = False
    registry.note(db.path, found)
    return found


async def palace_databases(datasette: Any) -> list[str]:
    """The names of the databases that are palaces, in the order that they were given in."""
    return [name for name, db in datasette.databases.items() if await is_palace_database(datasette, db)]


async def open_palace(datasette: Any, database: str) -> Palace:
    """The palace of a database that is one.

    Raises:
        MempalaceError: when it cannot be opened.
    """
    return await open_file(datasette, datasette.databases[database])


async def open_file(datasette: Any, db: Any) -> Palace:
    """The palace in the file of a database, which Datasette need not have at the moment.

    Raises:
        MempalaceError: when it cannot be opened.
    """
    return await run(datasette, _open, datasette, db)


def palace_for_connection(datasette: Any, database: str, connection: sqlite3.Connection) -> Palace | None:
    """The palace that a connection of Datasette's leads to, or None; for `prepare_connection`, so it never raises."""
    db = datasette.databases.get(database)
    if db is None or db.path is None:
        return None
    # First, because reading would open the log beside it, which may be that of a file that was replaced this moment.
    registry_of(datasette).let_go_if_replaced(db.path)
    try:
        return _open(datasette, db) if is_palace(connection) else None
    except (sqlite3.Error, MempalaceError) as error:
        logger.warning("%s: its SQL functions are missing: %s", database, error)
        return None


async def run(datasette: Any, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run something that blocks in one of our own threads and wait for it."""
    executor = registry_of(datasette).executor
    return await asyncio.get_running_loop().run_in_executor(executor, lambda: function(*args, **kwargs))


def _open(datasette: Any, db: Any) -> Palace:
    settings = settings_of(datasette, db.name)
    return registry_of(datasette).palace(db.path, settings, immutable=not db.is_mutable)
