"""Imports a palace of MemPalace's: drawers, closets and their stored vectors, hallways, tunnels and the knowledge graph.

The foreign palace is only ever read, and read from a copy (snapshot.py); Chroma is never opened in this process. Every row
is filed with its origin (../../origins.py): a second import brings only differences, and nothing of another origin is
touched. Nothing is embedded: vectors are taken over, and what has none waits for `vectors.embed_pending`.

    snapshot -> chroma_sql, backlog -> records, vectors_of (hnsw_files | child) -> store
"""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from ...config import Settings
from ...errors import BadInput, EmbedderMismatch
from ...origins import make_tables, record_origin
from ...palace import Palace
from ...schema import get_setting, set_setting
from ...vectors import Kind
from . import graph
from .chroma_sql import Collection, Record, read_pages
from .folder import find_folder
from .hnsw_files import Vector
from .identity import check_setting, take_vectors, what_to_install
from .records import as_closet, as_drawer, bookkeeping
from .report import Found, Imported, Tally
from .source import Source, open_source
from .store import Store
from .vectors_of import StoredVectors

__all__ = ["Found", "Imported", "Tally", "import_palace"]

Progress = Callable[[str, int, int], None]


def import_palace(
    database: str | PathLike[str],
    folder: str | PathLike[str] | None = None,
    *,
    settings: Settings | None = None,
    collection: str | None = None,
    knowledge_graph: str | PathLike[str] | None = None,
    re_embed: bool = False,
    prune: bool = False,
    progress: Progress | None = None,
    on_found: Callable[[Found], None] | None = None,
) -> Imported:
    """Import a MemPalace palace into a palace database.

    Must not run in a process that has a Chroma client open on that folder (snapshot.py says why).

    Args:
        database: the palace database, made if there is none.
        folder: the folder with chroma.sqlite3; None for where MemPalace keeps it.
        settings: the palace's settings.
        collection: the collection of drawers; None for MemPalace's.
        knowledge_graph: knowledge_graph.sqlite3; None for the one that belongs to the folder.
        re_embed: whether to leave the stored vectors out, so that the database's own model embeds the texts.
        prune: whether to take out what came from this origin before and is no longer there.
        progress: called with (step, done, total).
        on_found: called with what was found, before anything is written.
    Returns:
        what was done.
    Raises:
        PalaceNotFound: when there is no palace in the folder.
        PalaceBusy: when it is written to all the time.
        BadInput: when its schema is not known, or an argument is not allowed.
        EmbedderMismatch: when its vectors cannot be compared with those of the database.
    """
    target = Path(database)
    where = find_folder(Path(folder) if folder is not None else None)
    graph_file = Path(knowledge_graph) if knowledge_graph is not None else None
    with open_source(where, target, collection, graph_file) as source:
        if on_found:
            on_found(source.found)
        with_vectors = _bind(target, settings, source, re_embed)
        with Palace.open(target, settings) as palace:
            return _Import(palace, source, with_vectors, prune, progress or _silent).run()


def _bind(target: Path, settings: Settings | None, source: Source, re_embed: bool) -> bool:
    """Make the palace where there is none, bound to the model of the vectors; returns whether they are taken."""
    model = None
    if not target.exists() and not re_embed:
        # Checked and made with its model from the first: a failure must not leave a palace that is bound to another.
        check_setting(source.identity, settings or Settings())
        model = source.identity.model
    with Palace.create(target, settings, model=model) as palace:
        return take_vectors(palace, source.identity, re_embed)


class _Import:
    """One run; its parts share the palace, the source and the report."""

    def __init__(self, palace: Palace, source: Source, with_vectors: bool, prune: bool, progress: Progress):
        self.palace, self.source, self.prune, self.progress = palace, source, prune, progress
        self.with_vectors = with_vectors
        self.report = Imported(source.found, waiting=source.waiting, re_embed=not with_vectors)

    def run(self) -> Imported:
        """Import everything."""
        drawers, closets = self.source.found.drawers, self.source.found.closets
        with self.palace.writer() as connection:
            make_tables(connection)
            self.origin = record_origin(
                connection,
                self.source.found.folder,
                drawers.name,
                drawers.id,
                self.source.identity.model,
                drawers.metric,
            )
        self._bring("drawer", drawers, as_drawer, self.report.drawers)
        if closets is not None:
            self._bring("closet", closets, as_closet, self.report.closets)
        self._bring_tables()
        if self.with_vectors:
            missing = what_to_install(self.palace)
            self.report.notes += [missing] if missing else []
        return self.report

    def _bring(
        self, kind: Kind, collection: Collection, as_row: Callable[[Record], dict[str, Any]], tally: Tally
    ) -> None:
        store = Store(self.palace, kind, self.origin, tally)
        vectors = StoredVectors(self.source.connection, self.source.work, collection)
        step, done = f"{kind.title()}s", 0
        try:
            for page in read_pages(self.source.connection, collection):
                records = []
                for record in page:
                    reason = bookkeeping(record)
                    if reason:
                        tally.set_aside[reason] += 1
                        continue
                    records.append(record)
                    tally.empty += record.document is None
                    tally.bare += not record.metadata
                stored = vectors.read([record.id for record in records]) if self.with_vectors else {}
                self._check_dimension(stored)
                store.write([as_row(record) for record in records], stored)
                done += len(page)
                self.progress(step, done, collection.count)
            if tally.without_vector:
                self.report.vector_problem = (
                    vectors.problem or "neither the index nor the queue has a sound one"
                )
        finally:
            vectors.close()
        self._find_gone(store, collection)

    def _find_gone(self, store: Store, collection: Collection) -> None:
        for keys in store.pages_of_keys():
            rows = self.source.connection.execute(
                "select embedding_id from embeddings where segment_id = ?"
                " and embedding_id in (select value from json_each(?))",
                [collection.rows_segment, json.dumps(keys)],
            )
            there = {key for (key,) in rows}
            gone = [key for key in keys if key not in there]
            store.tally.gone += len(gone)
            if self.prune:
                store.tally.removed += store.remove(gone)

    def _bring_tables(self) -> None:
        for name, make in (("hallways", graph.hallway), ("tunnels", graph.tunnel)):
            file = self.source.beside.get(name)
            if file is None:
                continue
            try:
                rows = [make(record) for record in graph.read_list(file, name)]
            except BadInput as error:
                self.report.notes.append(error.message)
                continue
            self._put(name, rows)
        if self.source.graph is not None:
            try:
                entities, triples = graph.read_graph(self.source.graph)
            except BadInput as error:
                self.report.notes.append(error.message)
                return
            self._put("kg_entities", entities)
            self._put("kg_triples", triples)

    def _put(self, table: str, rows: list[dict[str, Any]]) -> None:
        with self.palace.writer() as connection:
            self.report.tables[table] = graph.put_rows(connection, table, self.origin, rows, self.prune)

    def _check_dimension(self, vectors: dict[str, Vector]) -> None:
        """Record how many dimensions a vector has with the first of them; later ones must have as many."""
        for vector in vectors.values():
            with self.palace.reader() as connection:
                recorded = get_setting(connection, "embedding_dimension")
            if recorded is None:
                with self.palace.writer() as connection:
                    set_setting(connection, "embedding_dimension", str(len(vector)))
            elif int(recorded) != len(vector):
                raise EmbedderMismatch(
                    f"The stored vectors have {len(vector)} dimensions, those of {self.palace.path} have {recorded}: they come "
                    "from another model. Import into a database of its own, or add --re-embed."
                )
            return


def _silent(step: str, done: int, total: int) -> None:
    """Show no progress."""
