"""The stored vectors of a collection: from the index's files, the queue over them, and Chroma in a child as a last resort.

The queue holds every change since the index was last written, and often some from before; played over what the files hold,
in order, it gives what Chroma itself would answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...pickles import Untrusted
from .backlog import ADD, DELETE, has_queue, topic_of
from .child import ChildVectors
from .chroma_sql import Collection, as_number
from .hnsw_files import HnswFiles, Unreadable, Vector

_QUEUED = """
    select seq_id, id, operation, vector, encoding from embeddings_queue
    where topic = :topic and id in (select value from json_each(:keys)) order by seq_id
"""
_FILED = """
    select embedding_id, seq_id from embeddings
    where segment_id = :segment and embedding_id in (select value from json_each(:keys))
"""


class StoredVectors:
    """Vectors by id.

    Args:
        connection: the copied database, its queue prepared.
        folder: the folder that it lies in, with the copied segments.
        collection: whose vectors.
    Attributes:
        problem: why not every vector can be read, as far as that is known, or None.
    """

    def __init__(self, connection: Any, folder: Path, collection: Collection):
        self.problem: str | None = None
        self._connection = connection
        self._topic = topic_of(connection, collection) if has_queue(connection) else None
        self._index: HnswFiles | ChildVectors | None = None
        self._segment = collection.rows_segment
        self._dimension = collection.dimension
        if collection.index_segment is None:
            self.problem = "the collection has no vector index"
            return
        try:
            self._index = HnswFiles(folder / collection.index_segment, unit=collection.metric == "cosine")
        except Unreadable as error:
            self._index, told = _ask_child(folder, collection)
            self.problem = f"{error}; {told}"
        else:
            self.problem = self._index.problem

    def read(self, keys: Sequence[str]) -> dict[str, Vector]:
        """The vectors of some ids, as stored; those without a usable one are left out."""
        found = self._index.read(keys) if self._index else {}
        if self._topic is not None:
            asked = {"topic": self._topic, "segment": self._segment, "keys": json.dumps(keys)}
            filed = {key: as_number(seq_id) for key, seq_id in self._connection.execute(_FILED, asked)}
            for seq_id, key, *change in self._connection.execute(_QUEUED, asked):
                _play(found, key, *change, came_too_late=seq_id > filed.get(key, seq_id))
        if self._dimension is None:
            self._dimension = next((len(vector) for vector in found.values()), None)
        return {key: vector for key, vector in found.items() if len(vector) == self._dimension}

    def close(self) -> None:
        """Close the files."""
        if self._index:
            self._index.close()


def _ask_child(folder: Path, collection: Collection) -> tuple[ChildVectors | None, str]:
    """What Chroma itself can read, unless its opening the folder could run what a stranger has put there; and how it went."""
    try:
        asked = ChildVectors(folder, collection)
    except Untrusted:
        return None, "Chroma was not asked, because that file could make it run something"
    return asked, asked.problem


def _play(
    found: dict[str, Vector],
    key: str,
    operation: int,
    blob: bytes | None,
    encoding: str | None,
    *,
    came_too_late: bool,
) -> None:
    """One row of the queue over the vectors found so far.

    Chroma does not add what is there. A row was there already when it has its vector, or, where the index is damaged, when
    the last change that was filed for it is older than the addition.
    """
    if operation == DELETE:
        found.pop(key, None)
    if operation == DELETE or (operation == ADD and (key in found or came_too_late)):
        return
    if blob is not None and encoding in (None, "FLOAT32") and len(blob) % 4 == 0:
        vector = np.frombuffer(blob, dtype="<f4")
        if np.isfinite(vector).all():
            found[key] = vector
