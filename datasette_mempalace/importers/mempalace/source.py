"""A MemPalace palace opened for import: its copy, its collections, which of them hold drawers and closets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...errors import BadInput, BadParameter, PalaceNotFound
from ...origins import CHROMA_FILE
from .backlog import file_backlog, prepare_queue
from .chroma_sql import (
    Collection,
    check_schema,
    count_orphans,
    index_segments,
    list_collections,
    open_copy,
    read_pages,
)
from .folder import CLOSETS, DRAWERS, configured, find_beside, find_graph
from .hnsw_files import Vector
from .identity import SAMPLES, Identity, check_samples, read_identity
from .report import Found
from .snapshot import PalaceBusy, copy_database, take_snapshot
from .vectors_of import StoredVectors

# MemPalace's collection of pictures and sounds, which have no text.
_ASSETS = "mempalace_assets"


@dataclass
class Source:
    """A copied palace.

    Attributes:
        connection: the copied database, with nothing left in its queue.
        work: the folder of the copies.
        found: what it holds.
        identity: the model of its vectors.
        waiting: how many rows its queue held that Chroma had not filed.
        graph: the copied knowledge graph, or None.
    """

    connection: Any
    work: Path
    found: Found
    identity: Identity
    waiting: int = 0
    graph: Path | None = None
    beside: dict[str, Path] = field(default_factory=dict)


@contextmanager
def open_source(
    folder: Path, database: Path, collection: str | None, knowledge_graph: Path | None
) -> Iterator[Source]:
    """Copy a palace and look into it; the copy lies beside the database and is gone at the end.

    Args:
        folder: the palace's folder.
        database: the palace database that it will be imported into; need not exist yet, but its folder must.
        collection: the collection of drawers, or None for the one that MemPalace uses.
        knowledge_graph: the knowledge graph, or None for the one that belongs to the folder.
    Raises:
        BadParameter: when the database lies in the palace's folder, or an argument is not allowed.
        PalaceNotFound: when the database's folder does not exist.
        PalaceBusy, BadInput: when the palace cannot be read now, or at all.
    """
    if database.resolve().is_relative_to(folder.resolve()):
        raise BadParameter(
            "palace", str(database), f"it must lie outside of {folder}, where nothing is written"
        )
    if not database.resolve().parent.is_dir():
        raise PalaceNotFound(f"The folder {database.resolve().parent} does not exist; make it first.")
    if knowledge_graph is not None and not knowledge_graph.is_file():
        raise BadParameter(
            "knowledge-graph", str(knowledge_graph), "it must be a file, such as knowledge_graph.sqlite3"
        )
    with TemporaryDirectory(prefix=f".{database.name}-import-", dir=database.resolve().parent) as made:
        work = Path(made)
        connection = open_copy(take_snapshot(folder, work, index_segments))
        try:
            yield _look(connection, work, folder, collection, knowledge_graph)
        finally:
            connection.close()


def _look(
    connection: Any, work: Path, folder: Path, wanted: str | None, knowledge_graph: Path | None
) -> Source:
    check_schema(connection, folder / CHROMA_FILE)
    prepare_queue(connection)
    waiting = sum(file_backlog(connection, found) for found in list_collections(connection))
    collections = list_collections(connection)
    drawers = _choose(folder, collections, wanted)
    closets = next((found for found in collections if found.name == CLOSETS and found != drawers), None)
    graph, other = (knowledge_graph, None) if knowledge_graph else find_graph(folder)
    beside = {name: file for name in ("hallways", "tunnels") if (file := find_beside(folder, f"{name}.json"))}
    notes = []
    if other:
        notes.append(f"{other} may belong to this palace, too; --knowledge-graph {other} imports it")
    orphans = count_orphans(connection)
    if orphans:
        notes.append(
            f"{orphans:,} rows belong to no collection, and MemPalace does not see them either; left out"
        )
    identity = check_samples(read_identity(folder, drawers), drawers, _samples(connection, work, drawers))
    copied = None
    if graph:
        try:
            copied = copy_database(graph, work / "graph.sqlite3")
        except (BadInput, PalaceBusy) as error:
            if knowledge_graph:
                raise
            notes.append(f"the knowledge graph is left out: {error.message}")
    tables = {**beside, **({"knowledge graph": graph} if graph and copied else {})}
    found = Found(folder, collections, drawers, closets, identity.told, tables, notes)
    return Source(connection, work, found, identity, waiting, copied, beside)


def _choose(folder: Path, collections: list[Collection], wanted: str | None) -> Collection:
    by_name = {collection.name: collection for collection in collections}
    counts = ", ".join(f"{found.name} ({found.count:,} rows)" for found in collections) or "none"
    if wanted is not None:
        if wanted not in by_name:
            raise BadParameter("collection", wanted, f"it must be one of those in {folder}: {counts}")
        return by_name[wanted]
    for name in (*configured(folder, "collection_name"), DRAWERS):
        if name in by_name:
            return by_name[name]
    others = [found for found in collections if found.name not in (CLOSETS, _ASSETS)]
    if len(others) == 1:
        return others[0]
    raise BadInput(
        f"{folder} has no collection {DRAWERS}; its collections are: {counts}. Say which holds the drawers: --collection NAME"
    )


def _samples(connection: Any, work: Path, collection: Collection) -> list[tuple[str, Vector]]:
    """A few texts with their stored vectors, the first that have both."""
    vectors = StoredVectors(connection, work, collection)
    found: list[tuple[str, Vector]] = []
    try:
        for page in read_pages(connection, collection):
            stored = vectors.read([record.id for record in page])
            texts = [(record.document or "", stored.get(record.id)) for record in page]
            found += [(text, vector) for text, vector in texts if text.strip() and vector is not None]
            if len(found) >= SAMPLES:
                break
    finally:
        vectors.close()
    return found[:SAMPLES]
