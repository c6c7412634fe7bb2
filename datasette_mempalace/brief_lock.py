"""A lock between threads that nobody waits for without end.

A SQL function runs while SQLite holds its connection. When it waits for a thread in which Python's garbage collection
has come upon a cursor of that connection, each waits for the other: the collector for SQLite, the function for the
lock. So whoever waits for a lock inside a search gives up in time, which sets the other one free.
"""

from __future__ import annotations

import threading

from .errors import MempalaceError, TookTooLong

SECONDS = 2.0


class BriefLock:
    """A lock to be held for a short while, in a `with` statement.

    Args:
        refusal: the error raised on entering, when somebody else holds it for all of two seconds.
    """

    def __init__(self, refusal: type[MempalaceError] = TookTooLong):
        self._refusal = refusal
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=SECONDS):
            raise self._refusal("Another search is busy with what this one needs; ask again.")

    def __exit__(self, *problem: object) -> None:
        self._lock.release()
