"""Where imported drawers came from: which MemPalace folder and collection, and which palace database holds a folder.

An origin is one collection of one folder, a row of `mempalace_origins`. Which drawers and closets came from it stands
in `origin_drawers` and `origin_closets`, by their own ids and beside the rows, so that `added_by` and `metadata` stay
what MemPalace stored. A drawer that is in none of them was filed by something else, and no import touches it.

A database knows its folders; no list of databases is kept anywhere. `find_palace_of` therefore looks, in this order, at
the databases named in the environment variable DATASETTE_MEMPALACE_DATABASES (separated as PATH is), at those that lie
beside the folder, and at those in the current folder. MemPalace's own files are never opened.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import beside

DATABASES = "DATASETTE_MEMPALACE_DATABASES"
CHROMA_FILE = "chroma.sqlite3"
_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_THEIRS = {CHROMA_FILE, "knowledge_graph.sqlite3"}


def make_tables(connection: Any) -> None:
    """Make the tables of origins in a palace that has none; a palace without imports never gets them."""
    beside.make(connection, *beside.ORIGINS)


def record_origin(
    connection: Any, folder: Path, collection: str, collection_id: str, model: str | None, metric: str
) -> int:
    """The origin of an import, made when it is new.

    Args:
        connection: a connection in a write transaction, with the tables made.
        folder: the palace folder; its real path is recorded.
        collection: the collection of drawers.
        collection_id: Chroma's own id of it: a folder that was moved is the same origin still.
        model: the embedding model of its vectors.
        metric: its distance metric, as it was there.
    Returns:
        the origin's id.
    """
    real, now = os.path.realpath(folder), datetime.now().isoformat(timespec="seconds")
    found = connection.execute(
        "select id from mempalace_origins where folder = ? and collection = ?", [real, collection]
    ).fetchone() or _moved(connection, collection_id)
    if found is None:
        found = connection.execute(
            "insert into mempalace_origins(folder, collection, first_imported) values (?, ?, ?) returning id",
            [real, collection, now],
        ).fetchone()
    connection.execute(
        "update mempalace_origins set folder = ?, collection = ?, collection_id = ?, embedding_model = ?, metric = ?,"
        " last_imported = ? where id = ?",
        [real, collection, collection_id, model, metric, now, found[0]],
    )
    return int(found[0])


def find_palace_of(folder: str | os.PathLike[str]) -> Path | None:
    """The palace database that a MemPalace folder was imported into.

    Args:
        folder: the folder that holds chroma.sqlite3.
    Returns:
        the database with the latest import, or None when none of those looked at has one.
    """
    real = os.path.realpath(folder)
    found: list[tuple[str, Path]] = []
    for database in dict.fromkeys(_databases(Path(real))):
        imported = _last_import(database, real)
        if imported is not None:
            found.append((imported, database))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def is_mempalace_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder that MemPalace keeps a palace in; nothing is opened."""
    return (Path(path) / CHROMA_FILE).is_file()


def how_to_import(folder: str | os.PathLike[str]) -> str:
    """What to tell a person whose MemPalace folder leads to no palace database."""
    return (
        f"{folder} is a MemPalace folder, and no palace database that holds it was found beside it, in the current folder "
        f"or in {DATABASES}; make one with: datasette mempalace import-palace PALACE.db '{folder}'"
    )


def _moved(connection: Any, collection_id: str) -> Any:
    """The origin with Chroma's id for the collection, unless that folder is still there: then this one is a copy."""
    row = connection.execute(
        "select id, folder from mempalace_origins where collection_id = ?", [collection_id]
    ).fetchone()
    return None if row is None or is_mempalace_folder(row[1]) else row


def _databases(folder: Path) -> Iterator[Path]:
    named = os.environ.get(DATABASES, "")
    yield from (Path(name).expanduser().resolve() for name in named.split(os.pathsep) if name)
    for place in (folder.parent, Path.cwd()):
        try:
            files = sorted(place.iterdir())
        except OSError:
            continue
        for file in files:
            if file.suffix in _SUFFIXES and file.name not in _THEIRS and file.is_file():
                yield file.resolve()


def _last_import(database: Path, folder: str) -> str | None:
    try:
        connection = sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True, timeout=1)
    except sqlite3.Error:
        return None
    try:
        row = connection.execute(
            "select max(last_imported) from mempalace_origins where folder = ?", [folder]
        ).fetchone()
    except sqlite3.Error:  # not a database, or not a palace with imports
        return None
    finally:
        connection.close()
    return row[0] if row else None
