"""Keeps the Chroma collections of a palace in step with the vectors in SQLite: sync, rebuild, nearest neighbours.

The mirror can be thrown away at any time: it holds ids and filter keys only, never a text, and nothing is embedded
to fill it. Where it is (`mirror_folder`, `mirror_server`) is the store's business. Chroma is imported when first needed.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .change_log import answers_for, last_change
from .drawers import batched
from .errors import MirrorUnavailable
from .logs import get_logger
from .minilm import Vectors
from .mirror_check import holds_its_vectors
from .mirror_folder import MirrorFolder
from .mirror_server import MirrorServer
from .mirror_state import State, Store, read_position
from .schema import get_setting, set_setting
from .vectors import KINDS, Kind, Progress, as_matrix, stored_dimension

if TYPE_CHECKING:
    from .palace import Palace

Stop = Callable[[], bool]

logger = get_logger(__name__)

CHANGES = 5_000
FILL = 1_000
# After a failure searches go on without the mirror for so long, before one of them tries it again.
PAUSE_SECONDS = 5.0


@dataclass
class SyncReport:
    """What a sync did: vectors written and deleted, seconds, whether all was built anew, and why it did nothing."""

    upserted: int = 0
    deleted: int = 0
    seconds: float = 0.0
    rebuilt: bool = False
    skipped_reason: str | None = None


class Mirror:
    """The mirror of one palace. Threads may share it; Chroma's calls are made one writer at a time.

    Attributes:
        store: where its collections are.
        trouble: why it could not be used when it was last tried, as a sentence; None when it could.
    """

    def __init__(self, palace: Palace):
        self.palace = palace
        server = palace.settings.chroma
        self.store: Store = MirrorFolder(palace) if server is None else MirrorServer(palace, server)
        self.trouble: str | None = None
        self._lock = threading.RLock()
        self._trial = threading.Lock()
        self._try_again = 0.0
        self._is_checked = False
        self._is_suspect = False
        # Whether a write failed of which nobody knows how far it got, or when it will.
        self._is_doubtful = False

    @property
    def is_open(self) -> bool:
        """Whether this process can ask the mirror at once. A folder's is not asked before it was looked through."""
        return self.store.is_open and (self.store.is_shared or self._is_checked)

    @property
    def is_in_place(self) -> bool:
        """Whether a mirror that is open is still where it was opened, and has not failed since."""
        return not self._is_suspect and self.store.is_in_place

    def state(self, fresh: bool = True) -> State:
        """How far the mirror is.

        Args:
            fresh: whether it must be as of now; else it may have gone on since.
        Raises:
            MirrorUnavailable: when it cannot be asked.
        """
        if not self.is_open:
            return State()
        with self._asked():
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
        report, started = SyncReport(), time.perf_counter()
        with self._lock:
            try:
                self.store.take()
            except MirrorUnavailable as error:
                report.skipped_reason = error.message
                self._open_for_reading()
                return report
            if not self.is_in_place:
                self._let_go()
            with self._kept_after_failure():
                self._own()
                self._catch_up(report, progress, stop)
                if self._is_doubtful and not stop():
                    self._is_doubtful = False
                    if not self._holds_its_vectors():
                        self.store.start_over()
                        self._catch_up(report, progress, stop)
        report.seconds = time.perf_counter() - started
        return report

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Throw the mirror away and fill it again from the stored vectors; nothing is embedded.

        Raises:
            MirrorUnavailable: when another process writes it, or it cannot be written.
        """
        with self._lock:
            self.store.take()
            self._let_go()
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
                with self._asked():
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
        with self._asked(by_filter=bool(where)):
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
        with self._lock, self._asked():
            return self.store.state().position >= 0 and self._holds_its_vectors()

    @contextmanager
    def _asked(self, by_filter: bool = False) -> Iterator[None]:
        """Ask Chroma; what it raises becomes one kind of error, and for a while nobody asks again.

        When that is over one search tries and the others go on without, so that a server which takes a connection and
        never answers holds up one thread at a time. What a filter causes is no trouble of the mirror's.
        """
        trial = self.trouble is not None
        if trial and (time.monotonic() < self._try_again or not self._trial.acquire(blocking=False)):
            raise MirrorUnavailable(self.trouble or "")
        try:
            yield
            if trial:
                self.trouble = None
        except (
            Exception
        ) as error:  # chromadb and httpx raise many kinds; the vectors in SQLite serve meanwhile
            blamed = not by_filter or isinstance(error, (TimeoutError, MirrorUnavailable))
            raise (self._failed(error) if blamed else self._as_told(error)) from error
        finally:
            if trial:
                self._trial.release()

    @contextmanager
    def _kept_after_failure(self) -> Iterator[None]:
        """Write; after a failure the mirror is opened anew next time, which finds out what has become of it."""
        try:
            yield
            self.trouble = None
        except (
            Exception
        ) as error:  # chromadb and httpx raise many kinds; the cause is named and the position kept
            told = self._failed(error)
            self._let_go()
            self._is_doubtful = True
            raise told from error

    def _failed(self, error: Exception) -> MirrorUnavailable:
        """Remember a failure; returns it as a sentence."""
        told = self._as_told(error)
        # A call that is late has shown nothing wrong with what is stored.
        self._is_suspect = self._is_suspect or not isinstance(error, (MirrorUnavailable, TimeoutError))
        if self.trouble != told.message:
            logger.log(logging.INFO if told is error else logging.WARNING, "%s", told.message)
        self.trouble, self._try_again = told.message, time.monotonic() + PAUSE_SECONDS
        return told

    def _as_told(self, error: Exception) -> MirrorUnavailable:
        if isinstance(error, MirrorUnavailable):
            return error
        cause, server = str(error) or type(error).__name__, self.palace.settings.chroma
        if server is not None:
            cause = server.without_secrets(cause)
        return MirrorUnavailable(f"The Chroma mirror {self.store.place} cannot be used: {cause}")

    def _let_go(self) -> None:
        self.store.close(in_order=False)
        self._is_checked = self._is_suspect = False

    def _own(self) -> None:
        """Open the mirror as the one that writes it; what is not this palace's, or not whole, is emptied."""
        self.store.take()
        if self._is_checked and self.store.is_open and not self.store.is_shared:
            return
        try:
            if not self._is_checked:
                self.store.open(make=True)
            if not self._belongs_here() or not (self._is_checked or self._holds_its_vectors()):
                self.store.start_over()
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

    def _is_known(self, connection: Any, state: State) -> bool:
        """Whether the log tells what came after the mirror's position: not when pruned, nor in a restored backup."""
        recorded = self.palace.read_only or state.position <= read_position(connection)
        return recorded and answers_for(connection, state.position)

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

    def _fill(self, report: SyncReport, progress: Progress | None, stop: Stop) -> None:
        """Write every stored vector into the empty collections, as of one moment of the log."""
        report.rebuilt = True
        with self.palace.reader() as connection:
            position = last_change(connection)
            dimension = stored_dimension(connection)
            total = sum(
                connection.execute(f"select count(*) from {kind}_vectors").fetchone()[0] for kind in KINDS
            )
            for kind in KINDS:
                rows = connection.execute(
                    f"select v.id, v.vector, t.wing, t.room from {kind}_vectors v join {kind}s t on t.id = v.id"
                    " order by v.id"
                )
                for batch in batched(rows, min(self.store.max_batch, FILL)):
                    if stop():
                        self.store.start_over()
                        return
                    report.upserted += self._add(kind, batch, dimension)
                    if progress:
                        progress(report.upserted, total)
        self._set_position(State(uuid.uuid4().hex, position, position))

    def _catch_up(self, report: SyncReport, progress: Progress | None, stop: Stop) -> None:
        while not stop():
            if self.store.state(fresh=False).position < 0:
                self._fill(report, progress, stop)
            elif not self._apply_changes(report):
                break

    def _apply_changes(self, report: SyncReport) -> bool:
        """Apply one batch of the change log; returns whether there was any."""
        state = self.store.state(fresh=False)
        with self.palace.reader() as connection:
            if not self._is_known(connection, state):
                logger.info(
                    "The mirror %s is at a change that the log does not know: filled anew.", self.store.place
                )
                self.store.start_over()
                return True
            dimension = stored_dimension(connection)
            changes = connection.execute(
                "select seq, kind, row_id from drawer_changes where seq > ? order by seq limit ?",
                [state.position, CHANGES],
            ).fetchall()
            if not changes:
                return False
            reached = changes[-1][0]
            self.store.set_state(replace(state, reached=max(reached, state.reached)))
            for kind in KINDS:
                ids = sorted({row_id for _, changed, row_id in changes if changed == kind})
                rows = connection.execute(
                    f"select v.id, v.vector, t.wing, t.room from {kind}_vectors v join {kind}s t on t.id = v.id"
                    " where v.id in (select value from json_each(?))",
                    [json.dumps(ids)],
                ).fetchall()
                # Chroma's upsert merges metadata, so that a key taken away would survive: delete, then add.
                for part in batched(ids, self.store.max_batch):
                    self.store.call(kind, "delete", ids=[str(row_id) for row_id in part])
                for batch in batched(rows, self.store.max_batch):
                    report.upserted += self._add(kind, batch, dimension)
                report.deleted += len(set(ids) - {row[0] for row in rows})
        self._set_position(replace(state, position=reached, reached=reached))
        return True

    def _add(
        self, kind: Kind, rows: Sequence[tuple[int, bytes, str | None, str | None]], dimension: int | None
    ) -> int:
        # Where none is recorded, that of the vectors at hand.
        dimension = dimension or max((len(row[1]) // 4 for row in rows), default=0)
        ids, matrix = as_matrix([(row[0], row[1]) for row in rows], dimension)
        places = {row[0]: (row[2], row[3]) for row in rows}
        full = [index for index in range(len(ids)) if np.any(matrix[index])]
        if not full:
            return 0
        keys = [_filter_keys(ids[index], *places[ids[index]]) for index in full]
        self.store.call(
            kind, "add", ids=[str(ids[index]) for index in full], embeddings=matrix[full], metadatas=keys
        )
        return len(full)

    def _set_position(self, state: State) -> None:
        """Record, after Chroma has acknowledged: first in SQLite, then in Chroma, which so can only lag behind."""
        if not self.palace.read_only:
            with self.palace.writer() as connection:
                set_setting(connection, "mirror_id", state.mirror_id or "")
                set_setting(connection, "mirror_position", str(state.position))
        self.store.set_state(state)


def _filter_keys(row_id: int, wing: str | None, room: str | None) -> dict[str, Any]:
    """What Chroma may filter by; the id is there because Chroma refuses empty metadata."""
    keys: dict[str, Any] = {"id": row_id}
    # A BLOB or number where another program left one is no key that Chroma takes; a filter then asks SQLite.
    if isinstance(wing, str):
        keys["wing"] = wing
    if isinstance(room, str):
        keys["room"] = room
    return keys
