"""What a sync writes into a mirror: every stored vector, or what has changed since its position. Nothing is embedded."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..change_log import answers_for, last_change
from ..drawers import batched
from ..logs import get_logger
from ..vectors import KINDS, Kind, Progress, as_matrix, stored_dimension
from .state import State, Store, read_position, record

if TYPE_CHECKING:
    from ..palace import Palace

Stop = Callable[[], bool]
# A vector's id, the vector, and the wing and room of what it belongs to.
Row = tuple[int, bytes, str | None, str | None]

logger = get_logger(__name__)

CHANGES = 5_000
FILL = 1_000
ROWS = "select v.id, v.vector, t.wing, t.room from {0}_vectors v join {0}s t on t.id = v.id"


@dataclass
class SyncReport:
    """What a sync did: vectors written and deleted, seconds, whether all was built anew, and why it did nothing."""

    upserted: int = 0
    deleted: int = 0
    seconds: float = 0.0
    rebuilt: bool = False
    skipped_reason: str | None = None


@dataclass
class Sync:
    """One sync of a mirror that is open and owned.

    Attributes:
        palace: the palace.
        store: where its mirror is.
        progress: called with (done, total) vectors while an empty mirror is filled.
        stop: asked between batches whether to leave the rest for later.
        report: what was done so far.
    """

    palace: Palace
    store: Store
    progress: Progress | None = None
    stop: Stop = lambda: False
    report: SyncReport = field(default_factory=SyncReport)

    def catch_up(self) -> None:
        """Bring the mirror up to the last committed change; raises what Chroma raises."""
        while not self.stop():
            if self.store.state(fresh=False).position < 0:
                self._fill()
            elif not self._apply_changes():
                break

    def _fill(self) -> None:
        """Write every stored vector into the empty collections, as of one moment of the log."""
        self.report.rebuilt = True
        with self.palace.reader() as connection:
            position, dimension = last_change(connection), stored_dimension(connection)
            total = sum(
                connection.execute(f"select count(*) from {kind}_vectors").fetchone()[0] for kind in KINDS
            )
            for kind in KINDS:
                rows = connection.execute(f"{ROWS.format(kind)} order by v.id")
                for batch in batched(rows, min(self.store.max_batch, FILL)):
                    if self.stop():
                        self.store.start_over()
                        return
                    self._add(kind, batch, dimension)
                    if self.progress:
                        self.progress(self.report.upserted, total)
        self._record(State(uuid.uuid4().hex, position, position))

    def _apply_changes(self) -> bool:
        """Apply one batch of the change log; returns whether there was any."""
        state = self.store.state(fresh=False)
        with self.palace.reader() as connection:
            is_known = _is_known(connection, state)
        if not is_known:
            logger.info(
                "The mirror %s is at a change that the log does not know: filled anew.", self.store.place
            )
            start_over(self.palace, self.store)
            return True
        with self.palace.reader() as connection:
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
                self._replace(connection, kind, ids)
        self._record(replace(state, position=reached, reached=reached))
        return True

    def _replace(self, connection: Any, kind: Kind, ids: Sequence[int]) -> None:
        """Let the mirror hold of these ids what SQLite holds."""
        dimension = stored_dimension(connection)
        rows = connection.execute(
            f"{ROWS.format(kind)} where v.id in (select value from json_each(?))", [json.dumps(ids)]
        ).fetchall()
        # Chroma's upsert merges metadata, so that a key taken away would survive: delete, then add.
        for part in batched(ids, self.store.max_batch):
            self.store.call(kind, "delete", ids=[str(row_id) for row_id in part])
        for batch in batched(rows, self.store.max_batch):
            self._add(kind, batch, dimension)
        self.report.deleted += len(set(ids) - {row[0] for row in rows})

    def _add(self, kind: Kind, rows: Sequence[Row], dimension: int | None) -> None:
        # Where none is recorded, that of the vectors at hand.
        dimension = dimension or max((len(row[1]) // 4 for row in rows), default=0)
        ids, matrix = as_matrix([(row[0], row[1]) for row in rows], dimension)
        places = {row[0]: (row[2], row[3]) for row in rows}
        full = [index for index in range(len(ids)) if np.any(matrix[index])]
        if not full:
            return
        keys = [_filter_keys(ids[index], *places[ids[index]]) for index in full]
        self.store.call(
            kind, "add", ids=[str(ids[index]) for index in full], embeddings=matrix[full], metadatas=keys
        )
        self.report.upserted += len(full)

    def _record(self, state: State) -> None:
        """Record, after Chroma has acknowledged: first in SQLite, then in Chroma, which so can only lag behind."""
        with self.palace.writer() as connection:
            record(connection, state)
        self.store.set_state(state)


def start_over(palace: Palace, store: Store) -> None:
    """Empty a mirror. The palace forgets it first, so that whatever happens in between it records nothing untrue."""
    forget(palace)
    store.start_over()


def forget(palace: Palace) -> None:
    """Let the mirror be filled anew by the next sync: the palace no longer records which filling is its own."""
    with palace.writer() as connection:
        record(connection, State())


def _is_known(connection: Any, state: State) -> bool:
    """Whether the log tells what came after the mirror's position: not when pruned, nor in a restored backup."""
    return state.position <= read_position(connection) and answers_for(connection, state.position)


def _filter_keys(row_id: int, wing: str | None, room: str | None) -> dict[str, Any]:
    """What Chroma may filter by; the id is there because Chroma refuses empty metadata."""
    keys: dict[str, Any] = {"id": row_id}
    # A BLOB or number where another program left one is no key that Chroma takes; a filter then asks SQLite.
    if isinstance(wing, str):
        keys["wing"] = wing
    if isinstance(room, str):
        keys["room"] = room
    return keys
