"""Keeps the palaces of a running server in step: embeds what has no vector, syncs the mirror, warms the model up.

One thread a server, started with it and never at import. It only hurries: a search is right without it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from .change_log import last_change, prune
from .errors import MempalaceError, PalaceReplaced
from .logs import get_logger
from .palace import Palace
from .repair import mend_full_text
from .vectors import count_pending, embed_pending, remove_orphans

logger = get_logger(__name__)

LOOK_SECONDS = 2.0  # how soon a palace that was opened meanwhile gets its first turn
RETRY_SECONDS = 30.0  # after a failure


class Keeper:
    """The thread that keeps palaces in step.

    Args:
        palaces: called before each round for the palaces that are open now.
    """

    def __init__(self, palaces: Callable[[], Iterable[Palace]]):
        self._palaces = palaces
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen: dict[str, int] = {}
        self._wait_until: dict[str, float] = {}

    def start(self) -> None:
        """Begin, once; later calls do nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mempalace-keeper", daemon=True)
            self._thread.start()

    def stop(self, seconds: float = 30.0) -> None:
        """End after the batch under way, waiting for it at most so long."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def forget(self, path: str) -> None:
        """Look at a palace anew at once: another file has taken its place."""
        self._seen.pop(path, None)
        self._wait_until.pop(path, None)

    def _run(self) -> None:
        while not self._stop.is_set():
            pause = LOOK_SECONDS
            for palace in self._open():
                pause = min(pause, palace.settings.sync_seconds)
                if not self._stop.is_set() and time.monotonic() >= self._wait_until.get(palace.path, 0.0):
                    self._wait_until[palace.path] = time.monotonic() + self._keep(palace)
            self._stop.wait(pause)

    def _open(self) -> list[Palace]:
        """The palaces that are open now; none when that cannot be told, as where a folder is out of reach."""
        try:
            return list(self._palaces())
        except Exception:  # the next round may know, and the thread must be there for it
            if not self._stop.is_set():
                logger.exception(
                    "which palaces are open cannot be told; next try in %s seconds", LOOK_SECONDS
                )
            return []

    def _keep(self, palace: Palace) -> float:
        """Keep one palace in step; returns the seconds until its next turn."""
        try:
            keep_in_step(palace, self._seen, lambda: self._stop.is_set() or not palace.is_in_place)
            return palace.settings.sync_seconds
        except PalaceReplaced:
            return 0.0  # the next round has what is there now
        except MempalaceError as error:
            if not self._stop.is_set():
                logger.warning("%s: %s", palace.path, error.message)
        except Exception:  # a palace that fails must not end the thread that keeps the others
            if not self._stop.is_set():
                logger.exception(
                    "keeping %s in step failed; next try in %s seconds", palace.path, RETRY_SECONDS
                )
        return RETRY_SECONDS


def keep_in_step(palace: Palace, seen: dict[str, int], stop: Callable[[], bool] = lambda: False) -> None:
    """One round for one palace: nothing unless its change log has grown since the last, or its mirror is gone.

    Args:
        palace: the palace.
        seen: the last change seen of each palace by path; brought up to date once the mirror holds it. While another
            process owns the mirror, it never does, and the next round tries again.
        stop: asked between batches whether to leave the rest for later.
    Raises:
        MempalaceError: when the model or the mirror fails.
    """
    with palace.reader() as connection:
        last = last_change(connection)
        if seen.get(palace.path) == last and palace.mirror.is_in_place:
            return
        pending = count_pending(connection)
    if palace.settings.warm_up and palace.embedder.missing() is None:
        palace.embedder.load()
    if not palace.read_only:
        if pending and palace.embedder.missing() is None:
            embed_pending(palace, download=False, stop=stop, wait=False)
        remove_orphans(palace)
        mend_full_text(palace)
    if stop():
        return
    report = palace.mirror.sync(stop=stop)
    if not palace.read_only:
        prune(palace)
    if report.skipped_reason is not None:
        logger.info("%s", report.skipped_reason)
        if palace.read_only:
            seen[palace.path] = last  # it never writes a mirror
        return
    # What this round itself has logged comes next round, which then finds nothing left to do.
    seen[palace.path] = last
