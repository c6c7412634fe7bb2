"""What an import found and what it did, and how both are told. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ...text import counted
from .chroma_sql import DEFAULT_METRIC, Collection

SHOWN = 5
_METRICS = {"cosine": "cosine", "l2": "Euclidean (l2)", "ip": "inner product (ip)"}


@dataclass
class Found:
    """What a palace holds, before anything is imported.

    Attributes:
        folder: the palace.
        collections: every collection of it.
        drawers, closets: those that are imported; None when there is none.
        embedder: what the vectors were made with, and how that is known.
        tables: what else is imported: a name and its file.
        notes: what a person should know beforehand.
    """

    folder: Path
    collections: list[Collection]
    drawers: Collection
    closets: Collection | None
    embedder: str
    tables: dict[str, Path]
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """What was found, a line each."""
        said = [f"Found in {self.folder}:"]
        for collection in self.collections:
            what = (
                "drawers" if collection == self.drawers else "closets" if collection == self.closets else ""
            )
            use = f"imported as {what}" if what else "not imported; name it with --collection"
            metric = _METRICS.get(collection.metric, collection.metric)
            given = (
                "" if collection.metric_given or collection.metric != DEFAULT_METRIC else ", Chroma's default"
            )
            size = f"{collection.dimension} dimensions" if collection.dimension else "no vectors"
            said.append(
                f"  {collection.name}: {counted(collection.count, 'row')}, {size}, metric {metric}{given} ({use})"
            )
        said.append(f"  Embedder: {self.embedder}")
        said += [f"  {name}: {file}" for name, file in self.tables.items()]
        return said + [f"  Note: {note}" for note in self.notes]


@dataclass
class Tally:
    """What happened to the rows of one kind.

    Attributes:
        added, updated, unchanged: rows that are here now.
        gone: rows that were imported before and are no longer there.
        removed: how many of those were taken out here.
        without_vector: rows that have text and no vector.
        examples: ids of some of them.
        set_aside: rows that were not imported, by reason.
        empty: rows without a text, imported with none.
        bare: rows without any metadata.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0
    removed: int = 0
    without_vector: int = 0
    vectors: int = 0
    empty: int = 0
    bare: int = 0
    examples: list[str] = field(default_factory=list)
    set_aside: Counter[str] = field(default_factory=Counter)

    def sentence(self, name: str) -> str:
        """The numbers of one kind."""
        parts = [f"{self.added:,} imported", f"{self.unchanged:,} unchanged", f"{self.updated:,} updated"]
        parts.append(f"{self.gone:,} gone" + (f" ({self.removed:,} taken out)" if self.gone else ""))
        return f"{name}: {', '.join(parts)}."


@dataclass
class Imported:
    """What an import did.

    Attributes:
        found: what there was.
        drawers, closets: what became of the rows.
        tables: what became of hallways, tunnels and the knowledge graph, by table.
        waiting: rows that Chroma's queue held and Chroma had not filed yet; they were imported, too.
        vector_problem: why vectors are missing, where that is known.
        re_embed: whether the stored vectors were left out on purpose.
        notes: what else a person should know, such as what to install.
    """

    found: Found
    drawers: Tally = field(default_factory=Tally)
    closets: Tally = field(default_factory=Tally)
    tables: dict[str, Tally] = field(default_factory=dict)
    waiting: int = 0
    vector_problem: str | None = None
    re_embed: bool = False
    notes: list[str] = field(default_factory=list)

    def lines(self, database: str) -> list[str]:
        """The report, a line each.

        Args:
            database: the palace database, for the commands that it names.
        """
        said = []
        for name, tally in (("Drawers", self.drawers), ("Closets", self.closets)):
            said.append(tally.sentence(name))
            said += [f"  Set aside: {number:,} {reason}." for reason, number in tally.set_aside.most_common()]
            if tally.empty:
                said.append(
                    f"  Without a text: {tally.empty:,}; stored with an empty one, so no word finds them."
                )
            if tally.bare:
                said.append(f"  Without metadata: {tally.bare:,}; stored without wing, room and source.")
            if tally.without_vector:
                said.append(self._without_vector(tally, database))
        said += [tally.sentence(name) for name, tally in self.tables.items()]
        stored = self.drawers.vectors + self.closets.vectors
        said.append(f"Vectors: {stored:,} taken over as they are stored{self._metric()}.")
        if self.waiting:
            said.append(
                f"{counted(self.waiting, 'row')} waited in Chroma's queue to be filed; they are imported, too."
            )
        gone = self.drawers.gone - self.drawers.removed + self.closets.gone - self.closets.removed
        if gone:
            said.append("What is gone there was kept here; --prune takes it out.")
        return said + self.notes

    def _metric(self) -> str:
        if self.found.drawers.metric == "cosine" or not self.drawers.vectors:
            return ""
        return f"; the palace's metric is {_METRICS.get(self.found.drawers.metric, self.found.drawers.metric)}, here it is cosine"

    def _without_vector(self, tally: Tally, database: str) -> str:
        if self.re_embed:
            return f"  Without a vector: {tally.without_vector:,}, left out on purpose (--re-embed)."
        why = f" ({self.vector_problem})" if self.vector_problem else ""
        more = ", …" if tally.without_vector > len(tally.examples) else ""
        return (
            f"  Without a vector: {tally.without_vector:,}{why}: {', '.join(tally.examples)}{more}. Words find them; for "
            f"their meaning run: datasette mempalace sync {database}"
        )
