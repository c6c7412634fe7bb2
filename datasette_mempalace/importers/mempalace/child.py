"""Vectors through the Chroma client, in a process of its own and on the copy: for index files that cannot be read here.

A damaged index can crash or hang whoever opens it; it is a child that does, and what it has written by then is used.
Run as `python -m datasette_mempalace.importers.mempalace.child FOLDER COLLECTION OUT`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ...origins import CHROMA_FILE
from ...pickles import refuse_untrusted
from .chroma_sql import Collection
from .hnsw_files import Vector

SECONDS = 600
PAGE = 500
_TABLE = "create table if not exists vectors (id text primary key, vector blob)"


class ChildVectors:
    """What a child process could read of a collection.

    Args:
        folder: the folder of the copied database; the child works on a copy of it, which Chroma may change.
        collection: whose vectors.
    Attributes:
        problem: how it went, for the report.
    Raises:
        Untrusted: when a pickle in the index's folder names more than Chroma's own: Chroma is not asked then.
    """

    def __init__(self, folder: Path, collection: Collection):
        refuse_untrusted(folder / str(collection.index_segment))
        self._file = folder / "child.sqlite3"
        self._file.unlink(missing_ok=True)
        with TemporaryDirectory(dir=folder) as copy:
            shutil.copyfile(folder / CHROMA_FILE, Path(copy) / CHROMA_FILE)
            segment = folder / str(collection.index_segment)
            if segment.is_dir():
                shutil.copytree(segment, Path(copy) / segment.name)
            outcome = self._run(Path(copy), collection.name)
        self._connection = sqlite3.connect(str(self._file))
        self._connection.execute(_TABLE)
        count = self._connection.execute("select count(*) from vectors").fetchone()[0]
        self.problem = f"Chroma, in a process of its own, read {count:,} vectors{outcome}"

    def read(self, keys: Iterable[str]) -> dict[str, Vector]:
        """The vectors of some ids; those that are not there are left out."""
        found: dict[str, Vector] = {}
        for key in keys:
            row = self._connection.execute("select vector from vectors where id = ?", [key]).fetchone()
            if row:
                vector = np.frombuffer(row[0], dtype="<f4")
                if np.isfinite(vector).all():
                    found[key] = vector
        return found

    def close(self) -> None:
        """Close the file that the child has written."""
        self._connection.close()

    def _run(self, folder: Path, collection: str) -> str:
        command = [sys.executable, "-m", __name__, str(folder), collection, str(self._file)]
        # The child finds this package where this process does, installed or not.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                timeout=SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return f" and was stopped after {SECONDS} seconds"
        if done.returncode < 0:
            return f" and crashed (signal {-done.returncode})"
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            return f" and failed: {lines[-1][:200] if lines else 'it said nothing'}"
        return ""


def main(folder: str, collection: str, out: str) -> None:
    """Write the vectors of a collection into a small database, page by page."""
    import chromadb
    from chromadb.config import Settings

    target = sqlite3.connect(out, isolation_level=None)
    target.execute(_TABLE)
    client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
    opened = client.get_collection(collection, embedding_function=None)
    offset = 0
    while True:
        page = opened.get(limit=PAGE, offset=offset, include=["embeddings"])
        vectors = page["embeddings"]
        if not page["ids"] or vectors is None:
            break
        rows = [
            (key, np.asarray(vector, dtype="<f4").tobytes())
            for key, vector in zip(page["ids"], vectors, strict=True)
        ]
        target.executemany("insert or ignore into vectors(id, vector) values (?, ?)", rows)
        offset += PAGE


if __name__ == "__main__":
    main(*sys.argv[1:])
