"""How long `datasette mempalace rebuild` takes, beside bare Chroma adds of the same vectors, in one run.

    .venv/bin/python benchmarks/rebuild.py [--drawers 100000]

After every batch that the rebuild has written, the same vectors are added to a collection of the same configuration by
nothing but `collection.add(ids, embeddings)`, so that both see the same machine at the same time. The palace is the
synthetic one of `scopes.py`. Prints Markdown.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from chromadb.config import Settings as ChromaSettings
from scopes import CLUSTERS, DIMENSION, fill, unit

from datasette_mempalace.config import Settings
from datasette_mempalace.mirror.state import HNSW
from datasette_mempalace.palace import Palace


class Bare:
    """Chroma alone, given the same vectors in the same order, a batch behind."""

    def __init__(self, folder: Path, ids: list[str], vectors: Any):
        client = chromadb.PersistentClient(str(folder), settings=ChromaSettings(anonymized_telemetry=False))
        self.collection = client.create_collection(
            "bare", configuration={"hnsw": HNSW}, embedding_function=None
        )
        self.ids, self.vectors = ids, vectors
        self.done, self.seconds = 0, 0.0

    def follow(self, done: int, total: int) -> None:
        """Add what the rebuild has just written."""
        started = time.perf_counter()
        part = slice(self.done, done)
        self.collection.add(ids=self.ids[part], embeddings=self.vectors[part])
        self.seconds += time.perf_counter() - started
        self.done = done


def main() -> None:
    """Make a palace, rebuild its mirror, print both times."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--drawers", type=int, default=100_000)
    drawers = arguments.parse_args().drawers
    folder = Path(tempfile.mkdtemp(prefix="mempalace-rebuild-"))
    chance = np.random.default_rng(1)
    with Palace.create(folder / "palace.db", Settings()) as palace:
        fill(palace, drawers, unit(chance.normal(size=(CLUSTERS, DIMENSION))), chance)
        with palace.reader() as connection:
            rows = connection.execute("select id, vector from drawer_vectors order by id").fetchall()
        vectors = np.frombuffer(b"".join(row[1] for row in rows), dtype="<f4").reshape(-1, DIMENSION)
        bare = Bare(folder / "bare", [str(row[0]) for row in rows], vectors)
        started = time.perf_counter()
        report = palace.mirror.rebuild(bare.follow)
        ours = time.perf_counter() - started - bare.seconds
        assert report.upserted == bare.done == drawers
        assert not palace.embedder.is_loaded
        size = sum(file.stat().st_size for file in palace.mirror_path.rglob("*") if file.is_file())
        print(
            "| drawers | rebuild s | bare adds s | ratio | mirror MB | palace MB |\n|---|---|---|---|---|---|"
        )
        print(
            f"| {drawers:,} | {ours:.0f} | {bare.seconds:.0f} | {ours / bare.seconds:.2f}"
            f" | {size / 2**20:.0f} | {Path(palace.path).stat().st_size / 2**20:.0f} |"
        )


if __name__ == "__main__":
    main()
