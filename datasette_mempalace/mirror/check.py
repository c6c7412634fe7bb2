"""Whether a mirror on disk can be trusted: damaged index files answer too little without a word, or crash who asks.

A mirror that was closed in order and is untouched since is taken as it is. Any other is first opened and asked in a
child process, so that a crash costs that one, and then held against the vectors in SQLite by sample.
"""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..change_log import last_change
from ..logs import get_logger
from ..pickles import Untrusted, refuse_untrusted
from ..vectors import Kind, as_matrix

logger = get_logger(__name__)

CLEAN = "closed.json"
LOCKS = frozenset({"palace.lock", "embedding.lock"})
PROBE_SECONDS = 120
LOCK_SECONDS = 1.0
SAMPLE = 8
SAME = 1e-3
_PROBE = """
import sys, chromadb
from chromadb.config import Settings
client = chromadb.PersistentClient(sys.argv[1], settings=Settings(anonymized_telemetry=False))
for collection in client.list_collections():
    collection = client.get_collection(collection.name, embedding_function=None)
    some = collection.get(limit=3, include=["embeddings"])
    for vector in some["embeddings"]:
        collection.query(query_embeddings=[vector], n_results=min(100, collection.count()))
"""


def survives_probe(path: Path) -> bool:
    """Whether the mirror in a folder can be opened and asked without a crash; tried in a child process.

    Args:
        path: the mirror's folder.
    Returns:
        True also where there is nothing to open, or when it was closed in order and is untouched since. Never where
        a pickle in it asks for more than Chroma's own: that would run in whoever opens it.
    """
    try:
        refuse_untrusted(path)
    except Untrusted as error:
        logger.warning("The mirror in %s is not opened: %s", path, error)
        return False
    if not (path / "chroma.sqlite3").exists() or _is_untouched(path):
        return True
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, str(path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        logger.warning("The mirror in %s did not answer a probe within %s seconds.", path, PROBE_SECONDS)
        return False
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        logger.warning("The mirror in %s failed a probe (exit code %s): %s", path, done.returncode, said)
    return done.returncode == 0


def is_locked(database: Path) -> bool:
    """Whether another process keeps Chroma's database locked: Chroma itself would wait for a quarter of an hour.

    To be asked only while this process has it not open: closing a file gives its locks back.
    """
    if not database.exists():
        return False
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True, timeout=LOCK_SECONDS)
    try:
        connection.execute("begin immediate")
        connection.rollback()
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except sqlite3.DatabaseError:
        # No database at all; the probe finds that out.
        return False
    finally:
        connection.close()
    return False


def note_closed(path: Path) -> None:
    """Remember how the files of a mirror look that was just closed in order."""
    (path / CLEAN).write_text(json.dumps(_fingerprint(path)))


def note_opened(path: Path) -> None:
    """Forget how the files looked: from now on only `note_closed` makes them trusted again."""
    (path / CLEAN).unlink(missing_ok=True)


def holds_its_vectors(
    connection: Any,
    kind: Kind,
    position: int,
    dimension: int,
    nearest: Callable[[Any, int], list[tuple[int, float]]],
    count: int,
) -> bool:
    """Whether a collection finds what it should hold, by its count and by asking for some of its own vectors.

    Args:
        connection: an open connection to the palace.
        kind: "drawer" or "closet".
        position: the last change that the collection is said to hold.
        dimension: of the palace's vectors.
        nearest: the collection's neighbours of (vector, how many), as (id, distance).
        count: how many rows it says it has.
    Returns:
        False when it is to be filled anew.
    Raises:
        Exception: when it did not answer at all, so that nothing is known.
    """
    from chromadb.errors import ChromaError

    zero = bytes(4 * dimension)
    changed = "select row_id from drawer_changes where seq > ? and kind = ?"
    ids = [
        row[0]
        for row in connection.execute(
            f"select id from {kind}_vectors where length(vector) = ? and vector <> ? and id not in ({changed})",
            [len(zero), zero, position, kind],
        )
    ]
    if position == last_change(connection) and count != len(ids):
        return False
    for row_id in random.sample(ids, min(SAMPLE, len(ids))):
        rows = connection.execute(f"select id, vector from {kind}_vectors where id = ?", [row_id]).fetchall()
        _, matrix = as_matrix(rows, dimension)
        if not len(matrix):
            continue
        try:
            found = nearest(matrix[0], 3)
        except ChromaError:
            return False
        # Equal texts have equal vectors, so that another id may stand in its place, but never a far one.
        if not found or found[0][1] > SAME:
            return False
    return True


def _is_untouched(path: Path) -> bool:
    try:
        return bool(json.loads((path / CLEAN).read_text()) == _fingerprint(path))
    except (OSError, ValueError):
        return False


def _fingerprint(path: Path) -> dict[str, list[int]]:
    """Size and time of every file of a mirror."""
    found = {}
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.name != CLEAN and file.name not in LOCKS:
            state = file.stat()
            found[str(file.relative_to(path))] = [state.st_size, state.st_mtime_ns]
    return found
