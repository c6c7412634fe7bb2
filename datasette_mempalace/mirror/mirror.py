"""The mirror of a palace: opening it, bringing it in step, asking it for nearest neighbours.

It can be thrown away at any time: it holds ids and filter keys only, never a text, and nothing is embedded to fill it.
Where it is (`folder`, `server`) is the store's business, what is written there `sync`'s, and what
becomes of failures `trouble`'s. Chroma is imported when first needed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import MirrorOwned, MirrorUnavailable, PalaceReplaced
from ..logs import get_logger
from ..minilm import Vectors
from ..schema import get_setting
from ..vectors import KINDS, Kind, Progress, stored_dimension
from .check import holds_its_vectors
from .folder import MirrorFolder
from .server import MirrorServer
from .state import State, Store, read_position
from .sync import Stop, Sync, SyncReport, forget, start_over
from .trouble import MirrorTrouble

if TYPE_CHECKING:
    from ..palace import Palace

logger = get_logger(__name__)


class Mirror:
    """The mirror of one palace. Threads may share it; Chroma's calls are made one writer at a time.

    Attributes:
        store: where its collections are.
    """

    def __init__(self, palace: Palace):
        self.palace = palace
        server = palace.settings.chroma
        self.store: Store = MirrorFolder(palace) if server is None else MirrorServer(palace, server)
        self._trouble = MirrorTrouble(self.store.place, server)
        self._lock = threading.RLock()
        self._is_checked = False
        # Whether a write failed of which nobody knows how far it got, or when it will.
        self._is_doubtful = False

    @property
    def trouble(self) -> str | None:
        """Why it could not be used when it was last tried, as a sentence; None when it could."""
        return self._trouble.told

    @property
    def failure(self) -> MirrorUnavailable | None:
        """Why it could not be used when it was last tried; None also when another process owns it and looks after it."""
        error = self._trouble.error
        return None if isinstance(error, MirrorOwned) else error

    @property
    def is_used(self) -> bool:
        """Whether this palace has a mirror at all: one that can only be read leaves a folder alone.

        Chroma writes into a folder even to read it, and a filling that the palace cannot record would be repeated.
        """
        return self.store.is_shared or not self.palace.read_only

    @property
    def is_open(self) -> bool:
        """Whether this process can ask the mirror at once. A folder's is not asked before it was looked through."""
        return self.store.is_open and (self.store.is_shared or self._is_checked)

    @property
    def is_in_place(self) -> bool:
        """Whether a mirror that is open is still where it was opened, and has not failed since."""
        return not self._trouble.is_suspect and self.store.is_in_place

    def recorded(self) -> State | None:
        """How far the mirror itself says it is, looked up quickly and with nothing opened; None when it is not known."""
        if not self.is_used:
            return None
        if not self.store.is_shared:
            return self.store.recorded()
        try:
            return self.state(fresh=False) if self.is_open else None
        except MirrorUnavailable:
            return None

    def state(self, fresh: bool = True) -> State:
        """How far the mirror is.

        Args:
            fresh: whether it must be as of now; else it may have gone on since.
        Raises:
            MirrorUnavailable: when it cannot be asked.
        """
        if not self.is_open:
            return State()
        with self._trouble.asking():
            return self.store.state(fresh)

    def sync(self, progress: Progress | None = None, stop: Stop = lambda: False) -> SyncReport:
        """Bring the mirror up to the last committed change.

        Args:
            progress: called with (done, total) vectors while they are written.
            stop: asked between batches whether to leave the rest for later.
        Returns:
            what was done; `skipped_reason` when another process owns the mirror or nothing may be written.
        Raises:
            MirrorUnavailable: when Chroma fails; the position stays where it was last acknowledged.
        """
        run, started = Sync(self.palace, self.store, progress, stop), time.perf_counter()
        report = run.report
        with self._lock:
            try:
                self.store.take()
            except MirrorUnavailable as error:
                report.skipped_reason = error.message
                if isinstance(error, MirrorOwned):
                    report.skipped_reason += " It will mirror what was changed here."
                self._open_for_reading()
                return report
            if not self.is_in_place:
                self._let_go()
            with self._kept_after_failure():
                self._own()
                run.catch_up()
                if self._is_doubtful and not stop():
                    self._is_doubtful = False
                    if not self._holds_its_vectors():
                        start_over(self.palace, self.store)
                        run.catch_up()
        report.seconds = time.perf_counter() - started
        return report

    def claim(self) -> None:
        """Become the process that writes it, before work that no other may take part in.

        Raises:
            MirrorOwned: when another process writes it; it says what to do.
            MirrorUnavailable: when it cannot be written.
        """
        try:
            self.store.take()
        except MirrorOwned as error:
            raise MirrorOwned(
                f"{error.message} Nothing was done: stop the server or process that owns it, and run this again."
            ) from error

    def forget(self) -> None:
        """Let it be filled anew by the next sync: the palace no longer records which filling is its own."""
        forget(self.palace)

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Throw the mirror away and fill it again from the stored vectors; nothing is embedded.

        Raises:
            MirrorOwned: when another process writes it; nothing was changed.
            MirrorUnavailable: when it cannot be written.
        """
        with self._lock:
            self.claim()
            self._let_go()
            self.forget()
            with self._kept_after_failure():
                self.store.throw_away()
            return self.sync(progress)

    def open(self, wait: bool = True) -> None:
        """Make the mirror ready for being asked; a folder is made where there is none.

        Args:
            wait: whether to wait while another thread opens or fills it; a search does not.
        Raises:
            MirrorUnavailable: when another process owns it, or it cannot be opened or reached.
        """
        if self.is_open:
            return
        if not self._lock.acquire(blocking=wait):
            raise MirrorUnavailable("The mirror is being opened or brought in step.")
        try:
            if not self.is_open:
                with self._trouble.asking():
                    self.store.open(make=False) if self.store.is_shared else self._own()
        finally:
            self._lock.release()

    def nearest(
        self, kind: Kind, vector: Vectors, count: int, where: dict[str, Any] | None = None
    ) -> list[tuple[int, float]]:
        """The nearest neighbours of a vector.

        Args:
            kind: "drawer" or "closet".
            vector: the query, of unit length.
            count: how many at most.
            where: a Chroma filter over wing and room.
        Returns:
            (id, cosine distance), nearest first.
        Raises:
            MirrorUnavailable: when the mirror is not open here or Chroma fails.
        """
        if not self.is_open:
            raise MirrorUnavailable("The mirror is not open in this process.")
        with self._trouble.asking(by_filter=bool(where)):
            return self._query(kind, vector, count, where)

    def close(self) -> None:
        """Close it and let another process write."""
        with self._lock:
            self.store.close(in_order=True)
            self._is_checked = False
            self.store.release()

    def _open_for_reading(self) -> None:
        """Who may not write a shared mirror can still ask it."""
        if self.store.is_shared:
            try:
                self.open(wait=False)
            except MirrorUnavailable as error:
                logger.info("%s", error.message)

    def _query(
        self, kind: Kind, vector: Vectors, count: int, where: dict[str, Any] | None = None
    ) -> list[tuple[int, float]]:
        answer = self.store.call(
            kind,
            "query",
            query_embeddings=[vector],
            n_results=max(1, count),
            where=where or None,
            include=["distances"],
        )
        ids, distances = (answer["ids"] or [[]]), (answer["distances"] or [[]])
        return [(int(key), float(distance)) for key, distance in zip(ids[0], distances[0], strict=True)]

    def holds_its_vectors(self) -> bool:
        """Whether the open mirror holds what it should, by its count and by asking for some of its own vectors."""
        with self._lock, self._trouble.asking():
            return self.store.state().position >= 0 and self._holds_its_vectors()

    @contextmanager
    def _kept_after_failure(self) -> Iterator[None]:
        """Write; after a failure the mirror is opened anew next time, which finds out what has become of it."""
        try:
            yield
            self._trouble.is_over()
        except PalaceReplaced:  # no failure of the mirror's; this palace is done with it
            self._let_go()
            raise
        except (
            Exception
        ) as error:  # chromadb and httpx raise many kinds; the cause is named and the position kept
            told = self._trouble.failed(error)
            self._let_go()
            self._is_doubtful = True
            raise told from error

    def _let_go(self) -> None:
        self.store.close(in_order=False)
        self._is_checked = False
        self._trouble.forget_suspicion()

    def _own(self) -> None:
        """Open the mirror as the one that writes it; what is not this palace's, or not whole, is emptied."""
        self.store.take()
        if self._is_checked and self.store.is_open and not self.store.is_shared:
            return
        try:
            if not self._is_checked:
                self.store.open(make=True)
            if not self._belongs_here() or not (self._is_checked or self._holds_its_vectors()):
                start_over(self.palace, self.store)
        except Exception:
            self._let_go()
            raise
        self._is_checked = True

    def _belongs_here(self) -> bool:
        """Whether it is this palace's mirror, and not ahead of a database that was restored from a backup."""
        state = self.store.state()
        with self.palace.reader() as connection:
            mirror_id = get_setting(connection, "mirror_id")
            recorded = read_position(connection)
        if state.position < 0 and self._is_checked:
            return True
        return bool(mirror_id) and state.mirror_id == mirror_id and state.position <= recorded

    def _holds_its_vectors(self) -> bool:
        state = self.store.state(fresh=False)
        if state.position < 0:
            return not any(self.store.call(kind, "count") for kind in KINDS)
        with self.palace.reader() as connection:
            dimension = stored_dimension(connection) or 0
            for kind in KINDS if dimension else ():
                count = self.store.call(kind, "count")
                ask = partial(self._query, kind)
                if not holds_its_vectors(connection, kind, state.position, dimension, ask, count):
                    logger.warning(
                        "The mirror %s does not hold its %s vectors; it is filled anew.",
                        self.store.place,
                        kind,
                    )
                    return False
        return True
