"""Keeps a Chroma collection in step with the vectors in SQLite: sync, rebuild, nearest neighbours.

The mirror can be thrown away at any time: it holds ids and filter keys only, never a text, and nothing is embedded
to fill it. One process owns it, by a lock; others search without it. Chroma is imported when first needed.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .change_log import answers_for, last_change
from .drawers import batched
from .errors import MirrorUnavailable
from .locks import FolderLock
from .minilm import Vectors
from .mirror_check import LOCKS, holds_its_vectors, note_closed, note_opened, survives_probe
from .schema import get_number, get_setting, set_setting
from .vectors import KINDS, Kind, Progress, as_matrix, stored_dimension

if TYPE_CHECKING:
    from .palace import Palace

Stop = Callable[[], bool]

logger = logging.getLogger(__name__)

CHANGES = 5_000
FILL = 1_000
HNSW = {"space": "cosine", "ef_construction": 200, "ef_search": 200, "max_neighbors": 16}
# chromadb's clients of a process share state by path, which two threads must not set up or take down at once.
_CLIENTS = threading.Lock()


@dataclass
class SyncReport:
    """What a sync did: vectors written and deleted, seconds, whether all was built anew, and why it did nothing."""

    upserted: int = 0
    deleted: int = 0
    seconds: float = 0.0
    rebuilt: bool = False
    skipped_reason: str | None = None


class Mirror:
    """The Chroma mirror of one palace. Threads may share it; Chroma's calls are made one writer at a time."""

    def __init__(self, palace: Palace):
        self.palace = palace
        self.path = palace.mirror_path
        self._lock = threading.RLock()
        self._owner = FolderLock(self.path, "palace.lock")
        self._client: Any = None
        self._collections: dict[Kind, Any] = {}
        self._max_batch = 1000

    @property
    def position(self) -> int:
        """The last change of the log that the mirror holds; -1 when it has never been filled. Opens nothing."""
        drawers = self._collections.get("drawer")
        return int((drawers.metadata or {}).get("position", -1)) if drawers is not None else -1

    @property
    def is_open(self) -> bool:
        """Whether this process owns the mirror and has it open."""
        return self._client is not None

    @property
    def is_in_place(self) -> bool:
        """Whether the files of a mirror that is open are still where it was opened."""
        return not self.is_open or (self.path / "chroma.sqlite3").exists()

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
            if not self.is_in_place:
                self._close_client()
            try:
                self.open()
            except MirrorUnavailable as error:
                report.skipped_reason = error.message
                return report
            try:
                while not stop():
                    if self.position < 0:
                        self._fill(report, progress, stop)
                    elif not self._apply_changes(report):
                        break
            except Exception as error:  # chromadb raises many kinds; the cause is named and the position kept
                # Opened again next time, which finds out whether its folder is gone or damaged.
                self._close_client()
                if isinstance(error, MirrorUnavailable):
                    raise
                raise MirrorUnavailable(f"The Chroma mirror in {self.path} failed: {error}") from error
        report.seconds = time.perf_counter() - started
        return report

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Throw the mirror away and fill it again from the stored vectors; nothing is embedded."""
        with self._lock:
            self._take_lock()
            self._close_client()
            self._throw_away()
            return self.sync(progress)

    def open(self, wait: bool = True) -> None:
        """Open the mirror for this process, making it when there is none.

        Args:
            wait: whether to wait while another thread opens or fills it; a search does not.
        Raises:
            MirrorUnavailable: when another process owns it, the folder cannot be written, or Chroma refuses it.
        """
        if self._client is not None and self._collections:
            return
        if not self._lock.acquire(blocking=wait):
            raise MirrorUnavailable("The mirror is being opened or brought in step.")
        try:
            if self._client is not None:
                return
            self._take_lock()
            try:
                self._open_trusted()
            except Exception as error:  # chromadb raises many kinds; the vectors in SQLite serve meanwhile
                self._close_client()
                if isinstance(error, MirrorUnavailable):
                    raise
                raise MirrorUnavailable(
                    f"The Chroma mirror in {self.path} cannot be opened: {error}"
                ) from error
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
        collection = self._collections.get(kind)
        if collection is None:
            raise MirrorUnavailable("The mirror is not open in this process.")
        try:
            answer = collection.query(
                query_embeddings=[vector], n_results=max(1, count), where=where or None, include=["distances"]
            )
        except Exception as error:  # chromadb raises many kinds; the caller goes on without the mirror
            raise MirrorUnavailable(f"Chroma could not answer: {error}") from error
        ids, distances = (answer["ids"] or [[]]), (answer["distances"] or [[]])
        return [(int(key), float(distance)) for key, distance in zip(ids[0], distances[0], strict=True)]

    def holds_its_vectors(self) -> bool:
        """Whether the open mirror holds what it should, by its count and by asking for some of its own vectors."""
        with self._lock:
            return self.position >= 0 and self._holds_its_vectors()

    def close(self) -> None:
        """Close Chroma and give the lock back."""
        with self._lock:
            was_open = self._client is not None
            self._close_client()
            if was_open and self.path.is_dir():
                note_closed(self.path)
            self._owner.release()

    def _take_lock(self) -> None:
        try:
            taken = self._owner.take()
        except OSError as error:
            raise MirrorUnavailable(f"The mirror's folder {self.path} cannot be used: {error}.") from error
        if not taken:
            raise MirrorUnavailable(
                f"Another process or server owns the mirror in {self.path}: it will mirror what was changed here."
            )

    def _open_trusted(self) -> None:
        """Open the mirror; what cannot be trusted is thrown away and made anew, empty."""
        if not survives_probe(self.path):
            self._throw_away()
        note_opened(self.path)
        try:
            self._open_client()
        except Exception as error:  # chromadb raises many kinds; a mirror that it cannot open is of no use
            logger.warning("The mirror in %s cannot be opened and is made anew: %s", self.path, error)
            self._close_client()
            self._throw_away()
            self._open_client()
        if not self._belongs_here() or not self._holds_its_vectors():
            self._start_over()

    def _open_client(self) -> None:
        import chromadb
        from chromadb.config import Settings as ChromaSettings

        with _CLIENTS:
            self._client = chromadb.PersistentClient(
                str(self.path), settings=ChromaSettings(anonymized_telemetry=False)
            )
        self._max_batch = self._client.get_max_batch_size()
        self._collections = {kind: self._collection(kind) for kind in KINDS}

    def _belongs_here(self) -> bool:
        """Whether it is this palace's mirror, and not ahead of a database that was restored from a backup."""
        with self.palace.reader() as connection:
            mirror_id = get_setting(connection, "mirror_id")
            recorded = read_position(connection)
        held = self._collections["drawer"].metadata or {}
        return bool(mirror_id) and held.get("mirror_id") == mirror_id and self.position <= recorded

    def _is_known(self, connection: Any) -> bool:
        """Whether the log tells what came after the mirror's position: not when pruned, nor in a restored backup."""
        recorded = self.palace.read_only or self.position <= read_position(connection)
        return recorded and answers_for(connection, self.position)

    def _holds_its_vectors(self) -> bool:
        if self.position < 0:
            return not any(collection.count() for collection in self._collections.values())
        with self.palace.reader() as connection:
            dimension = stored_dimension(connection) or 0
            for kind in KINDS if dimension else ():
                count = self._collections[kind].count()
                ask = partial(self.nearest, kind)
                if not holds_its_vectors(connection, kind, self.position, dimension, ask, count):
                    logger.warning(
                        "The mirror in %s does not hold its %s vectors; it is filled anew.", self.path, kind
                    )
                    return False
        return True

    def _throw_away(self) -> None:
        for child in self.path.iterdir():
            if child.name not in LOCKS:
                shutil.rmtree(child) if child.is_dir() else child.unlink()

    def _collection(self, kind: Kind) -> Any:
        return self._client.get_or_create_collection(
            f"{self._name()}_{kind}s", configuration={"hnsw": HNSW}, embedding_function=None
        )

    def _start_over(self) -> None:
        for kind in KINDS:
            self._client.delete_collection(f"{self._name()}_{kind}s")
        self._collections = {kind: self._collection(kind) for kind in KINDS}

    def _name(self) -> str:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", self.palace.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]).strip("-")
        return f"palace-{stem}"[:60].strip("-")

    def _fill(self, report: SyncReport, progress: Progress | None, stop: Stop) -> None:
        """Write every stored vector into the empty collections, as of one moment of the log."""
        report.rebuilt = True
        with self.palace.reader() as connection:
            position = last_change(connection)
            total = sum(
                connection.execute(f"select count(*) from {kind}_vectors").fetchone()[0] for kind in KINDS
            )
            for kind in KINDS:
                rows = connection.execute(
                    f"select v.id, v.vector, t.wing, t.room from {kind}_vectors v join {kind}s t on t.id = v.id"
                    " order by v.id"
                )
                for batch in batched(rows, min(self._max_batch, FILL)):
                    if stop():
                        self._start_over()
                        return
                    report.upserted += self._add(kind, batch)
                    if progress:
                        progress(report.upserted, total)
        self._set_position(position)

    def _apply_changes(self, report: SyncReport) -> bool:
        """Apply one batch of the change log; returns whether there was any."""
        with self.palace.reader() as connection:
            if not self._is_known(connection):
                logger.info(
                    "The mirror in %s is at a change that the log does not know: filled anew.", self.path
                )
                self._start_over()
                return True
            changes = connection.execute(
                "select seq, kind, row_id from drawer_changes where seq > ? order by seq limit ?",
                [self.position, CHANGES],
            ).fetchall()
            if not changes:
                return False
            for kind in KINDS:
                ids = sorted({row_id for _, changed, row_id in changes if changed == kind})
                rows = connection.execute(
                    f"select v.id, v.vector, t.wing, t.room from {kind}_vectors v join {kind}s t on t.id = v.id"
                    " where v.id in (select value from json_each(?))",
                    [json.dumps(ids)],
                ).fetchall()
                # Chroma's upsert merges metadata, so that a key taken away would survive: delete, then add.
                for part in batched(ids, self._max_batch):
                    self._collections[kind].delete(ids=[str(row_id) for row_id in part])
                for batch in batched(rows, self._max_batch):
                    report.upserted += self._add(kind, batch)
                report.deleted += len(set(ids) - {row[0] for row in rows})
        self._set_position(changes[-1][0])
        return True

    def _add(self, kind: Kind, rows: Sequence[tuple[int, bytes, str | None, str | None]]) -> int:
        ids, matrix = as_matrix([(row[0], row[1]) for row in rows], self._dimension(rows))
        places = {row[0]: (row[2], row[3]) for row in rows}
        full = [index for index in range(len(ids)) if np.any(matrix[index])]
        if not full:
            return 0
        keys = [_filter_keys(ids[index], *places[ids[index]]) for index in full]
        self._collections[kind].add(
            ids=[str(ids[index]) for index in full], embeddings=matrix[full], metadatas=keys
        )
        return len(full)

    def _dimension(self, rows: Sequence[tuple[int, bytes, str | None, str | None]]) -> int:
        """The palace's dimension; where none is recorded, that of the vectors at hand."""
        with self.palace.reader() as connection:
            return stored_dimension(connection) or max((len(row[1]) // 4 for row in rows), default=0)

    def _set_position(self, position: int) -> None:
        """Record, after Chroma has acknowledged: first in SQLite, then in Chroma, which so can only lag behind."""
        mirror_id = (self._collections["drawer"].metadata or {}).get("mirror_id") or uuid.uuid4().hex
        if not self.palace.read_only:
            with self.palace.writer() as connection:
                set_setting(connection, "mirror_id", mirror_id)
                set_setting(connection, "mirror_position", str(position))
        self._collections["drawer"].modify(metadata={"mirror_id": mirror_id, "position": position})

    def _close_client(self) -> None:
        self._collections = {}
        client, self._client = self._client, None
        if client is not None:
            with _CLIENTS:
                client.close()


def read_position(connection: Any) -> int:
    """The position that the palace has recorded for its mirror; -1 when there is none that can be read."""
    recorded = get_number(connection, "mirror_position")
    return -1 if recorded is None else recorded


def _filter_keys(row_id: int, wing: str | None, room: str | None) -> dict[str, Any]:
    """What Chroma may filter by; the id is there because Chroma refuses empty metadata."""
    keys: dict[str, Any] = {"id": row_id}
    # A BLOB or number where another program left one is no key that Chroma takes; a filter then asks SQLite.
    if isinstance(wing, str):
        keys["wing"] = wing
    if isinstance(room, str):
        keys["room"] = room
    return keys
