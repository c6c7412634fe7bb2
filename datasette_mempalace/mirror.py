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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .drawers import batched
from .embedding import Vectors
from .errors import MirrorUnavailable
from .schema import get_setting, last_change, set_setting
from .vectors import KINDS, Kind, Progress, as_matrix

if TYPE_CHECKING:
    from .palace import Palace

logger = logging.getLogger(__name__)

CHANGES = 5_000
HNSW = {"space": "cosine", "ef_construction": 200, "ef_search": 200, "max_neighbors": 16}
# chromadb's first client of a process sets up shared state that two threads must not set up at once.
_FIRST_CLIENT = threading.Lock()


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
        self._file_lock: Any = None
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

    def sync(self, progress: Progress | None = None) -> SyncReport:
        """Bring the mirror up to the last committed change.

        Args:
            progress: called with (done, total) vectors while they are written.
        Returns:
            what was done; `skipped_reason` when another process owns the mirror or nothing may be written.
        Raises:
            MirrorUnavailable: when Chroma fails; the position stays where it was last acknowledged.
        """
        report, started = SyncReport(), time.perf_counter()
        with self._lock:
            try:
                self.open()
            except MirrorUnavailable as error:
                report.skipped_reason = error.message
                return report
            try:
                if self.position < 0:
                    self._fill(report, progress)
                while self._apply_changes(report):
                    pass
            except MirrorUnavailable:
                raise
            except Exception as error:  # chromadb raises many kinds; the cause is named and the position kept
                raise MirrorUnavailable(f"The Chroma mirror in {self.path} failed: {error}") from error
        report.seconds = time.perf_counter() - started
        return report

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Throw the mirror away and fill it again from the stored vectors; nothing is embedded."""
        with self._lock:
            self._take_file_lock()
            self._close_client()
            for child in self.path.iterdir():
                if child.name != "palace.lock":
                    shutil.rmtree(child) if child.is_dir() else child.unlink()
            return self.sync(progress)

    def open(self) -> None:
        """Open the mirror for this process, making it when there is none.

        Raises:
            MirrorUnavailable: when another process owns it, the folder cannot be written, or Chroma refuses it.
        """
        with self._lock:
            if self._client is not None:
                return
            self._take_file_lock()
            try:
                self._open_client()
            except MirrorUnavailable:
                raise
            except Exception as error:  # chromadb raises many kinds; the vectors in SQLite serve meanwhile
                self._close_client()
                raise MirrorUnavailable(
                    f"The Chroma mirror in {self.path} cannot be opened: {error}"
                ) from error

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

    def close(self) -> None:
        """Close Chroma and give the lock back."""
        with self._lock:
            self._close_client()
            if self._file_lock is not None:
                self._file_lock.release()
                self._file_lock = None

    def _take_file_lock(self) -> None:
        if self._file_lock is not None:
            return
        from filelock import FileLock, Timeout

        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / "palace.lock", thread_local=False)
            lock.acquire(timeout=0)
        except Timeout:
            raise MirrorUnavailable(
                f"Another process or server owns the mirror in {self.path}: it will mirror what was changed here."
            ) from None
        except OSError as error:
            raise MirrorUnavailable(f"The mirror's folder {self.path} cannot be used: {error}.") from error
        self._file_lock = lock

    def _open_client(self) -> None:
        import chromadb
        from chromadb.config import Settings as ChromaSettings

        with _FIRST_CLIENT:
            self._client = chromadb.PersistentClient(
                str(self.path), settings=ChromaSettings(anonymized_telemetry=False)
            )
        self._max_batch = self._client.get_max_batch_size()
        with self.palace.reader() as connection:
            mirror_id = get_setting(connection, "mirror_id")
            recorded = int(get_setting(connection, "mirror_position") or -1)
        self._collections = {kind: self._collection(kind) for kind in KINDS}
        held = self._collections["drawer"].metadata or {}
        # Another palace's mirror, or one that is ahead of a database restored from a backup, is filled anew.
        if not mirror_id or held.get("mirror_id") != mirror_id or int(held.get("position", -1)) > recorded:
            self._start_over()

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

    def _fill(self, report: SyncReport, progress: Progress | None) -> None:
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
                for batch in batched(rows, self._max_batch):
                    report.upserted += self._add(kind, batch)
                    if progress:
                        progress(report.upserted, total)
        self._set_position(position)

    def _apply_changes(self, report: SyncReport) -> bool:
        """Apply one batch of the change log; returns whether there was any."""
        with self.palace.reader() as connection:
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
        ids, matrix = as_matrix([(row[0], row[1]) for row in rows])
        places = {row[0]: (row[2], row[3]) for row in rows}
        full = [index for index in range(len(ids)) if np.any(matrix[index])]
        if not full:
            return 0
        keys = [_filter_keys(ids[index], *places[ids[index]]) for index in full]
        self._collections[kind].add(
            ids=[str(ids[index]) for index in full], embeddings=matrix[full], metadatas=keys
        )
        return len(full)

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
        if self._client is not None:
            self._client.close()
            self._client = None


def _filter_keys(row_id: int, wing: str | None, room: str | None) -> dict[str, Any]:
    """What Chroma may filter by; the id is there because Chroma refuses empty metadata."""
    keys: dict[str, Any] = {"id": row_id}
    if wing is not None:
        keys["wing"] = wing
    if room is not None:
        keys["room"] = room
    return keys
