"""Lets Datasette open a database's file anew, because another file has taken its place.

Datasette has no call for that: each of its SQL threads keeps a connection to each database, and a thread of its own
writes. The `Database` stays the same object, which requests that are under way hold, too. No connection is closed by
another thread than the one that uses it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from datasette import database as core

from .compat import IS_ONE

GATHER = 0.1  # seconds that idle threads wait for each other, so that each of them closes what it has open
WRITER = 5.0  # seconds that a write which is under way is waited for


class _Stale:
    """What the threads of an executor have to close."""

    def __init__(self) -> None:
        self.connections: set[Any] = set()
        self.changes = 0  # how often attached files were replaced
        self.attaching = ""  # where a thread keeps the connection that they are attached to


_stale: weakref.WeakKeyDictionary[ThreadPoolExecutor, _Stale] = weakref.WeakKeyDictionary()
_ending: set[asyncio.Task[None]] = set()


async def reopen(datasette: Any, db: Any) -> None:
    """Let what is asked of a database from now on be answered by the file that is at its path now.

    Args:
        datasette: the Datasette instance.
        db: one of its databases, which lies in a file.
    """
    for name in vars(db):
        if "cached" in name:
            setattr(db, name, None)
    opened = db._all_connections if IS_ONE else db._all_file_connections
    old, opened[:] = set(opened), []
    if datasette.executor is None:
        for connection in old:
            connection.close()
        db._read_connection = db._write_connection = None
        return
    _in_threads(datasette.executor).connections |= old
    _gather(datasette.executor)
    if db._write_thread is not None:
        task = asyncio.create_task(_end_writer(db))
        _ending.add(task)
        task.add_done_callback(_ending.discard)
        await asyncio.wait({task}, timeout=WRITER)


def attach_anew(datasette: Any) -> None:
    """Let `--crossdb` attach the files that are at the databases' paths now, and none that is gone."""
    if not datasette.crossdb:
        return
    db = datasette.databases["_memory"]
    if datasette.executor is None:
        if db._read_connection is not None:
            db._read_connection.close()
            db._read_connection = None
        return
    stale = _in_threads(datasette.executor)
    stale.attaching = db._thread_local_id if IS_ONE else db.name
    stale.changes += 1
    _gather(datasette.executor)


async def look_at_schemas(datasette: Any) -> None:
    """Let Datasette know at once which databases and tables there are; 1.0 remembers that for a second, permissions with it."""
    async with datasette._refresh_schemas_lock:  # held by another look, it would return without having looked
        pass
    with suppress(core.sqlite3.Error):  # of another database, whose own page tells it
        await datasette.refresh_schemas(**({"force": True} if IS_ONE else {}))


def _in_threads(executor: ThreadPoolExecutor) -> _Stale:
    """What each thread is to close, as far as it is its own, before it does anything else."""
    stale = _stale.get(executor)
    if stale is None:
        stale = _stale[executor] = _Stale()
        _before_each(executor, stale)
    return stale


def _gather(executor: ThreadPoolExecutor) -> None:
    """Give every idle thread something to do; what a busy one has open it closes before its next task."""
    number = executor._max_workers
    gathered = threading.Barrier(number)
    for _ in range(number):
        executor.submit(gathered.wait, GATHER)


def _before_each(executor: ThreadPoolExecutor, stale: _Stale) -> None:
    """Let an executor's threads close their stale connections before each task."""
    submit, seen = executor.submit, threading.local()

    def submitted(function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        def run() -> Any:
            mine = vars(core.connections)
            for key in [key for key, connection in mine.items() if connection in stale.connections]:
                connection = mine.pop(key)
                stale.connections.discard(connection)
                connection.close()
            if getattr(seen, "changes", 0) != stale.changes:
                seen.changes = stale.changes
                if stale.attaching in mine:
                    mine.pop(stale.attaching).close()
            return function(*args, **kwargs)

        return submit(run)

    executor.submit = submitted  # type: ignore[assignment,method-assign]


async def _end_writer(db: Any) -> None:
    """End the thread that writes, after what it was given so far; the next write begins another."""
    thread = db._write_thread
    db._write_queue.put(core._SHUTDOWN if IS_ONE else core.WriteTask(lambda conn: conn.close(), None, _End()))
    await asyncio.to_thread(thread.join)
    db._write_thread = None
    if not db._write_queue.empty():  # written meanwhile
        await db.execute_write_fn(lambda connection: None)


class _End:
    """Ends 0.65's writing thread, which knows no end, where it would put its answer."""

    @property
    def sync_q(self) -> queue.Queue[Any]:
        raise SystemExit
