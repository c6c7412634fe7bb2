"""How long a MemPalace palace takes from its folder to a palace that is searched by words and by meaning, and in what memory.

    python benchmarks/import_palace.py [--drawers 100000] [--folder KEEP]

Makes a synthetic palace with Chroma itself, of the shape that MemPalace gives it: vectors of 384 dimensions, some 600 characters
and 14 metadata keys a drawer, a closet for every 20 drawers. Then imports it in a process of its own and prints, as JSON:
seconds until words and vectors can be searched (vectors exactly, from SQLite), seconds until the Chroma mirror is filled as
well, the same in processor seconds, the process's peak memory, and ratios to what Chroma took to add the same rows. Ratios
travel between machines; seconds do not, and on a busy machine processor seconds say more. Vectors are those of real sentences with a little noise, so that the import recognises the model.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np

BATCH = 1_000
SENTENCES = 400
NOISE = 0.015
DRAWERS_A_CLOSET = 20


def main() -> None:
    """Build, import, report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--drawers", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="keep the palace here; one that is there is used again")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(import_and_search(*options.child)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "palace"
        built = folder / "built.json"
        if not built.exists():
            built.write_text(json.dumps({"drawers": options.drawers, **build(folder, options.drawers)}))
        done = subprocess.run(
            [sys.executable, __file__, "--child", str(folder), str(Path(scratch) / "imported.db")],
            check=True,
            capture_output=True,
            text=True,
        )
        report = {**json.loads(built.read_text()), **json.loads(done.stdout.splitlines()[-1])}
    for key in ("searchable", "mirrored"):
        for unit in ("seconds", "cpu_seconds"):
            ratio = report[f"{key}_{unit}"] / report[f"chroma_add_{unit}"]
            report[f"{key}_{unit.replace('seconds', 'to_chroma_add')}"] = round(ratio, 2)
    print(json.dumps(report, indent=2))


def build(folder: Path, drawers: int) -> dict[str, float]:
    """Make the palace; returns the seconds that Chroma took to add its rows, by the clock and of the processor."""
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
    metadata = {
        "hnsw:space": "cosine",
        "hnsw:batch_size": 100,
        "hnsw:sync_threshold": 1_000,
        "hnsw:num_threads": 1,
    }
    sentences, vectors = base()
    spent = busy = 0.0
    for name, count, row in (
        ("mempalace_drawers", drawers, drawer),
        ("mempalace_closets", drawers // DRAWERS_A_CLOSET, closet),
    ):
        collection = client.create_collection(name, metadata=metadata, embedding_function=None)
        generator = np.random.default_rng(1)
        for start in range(0, count, BATCH):
            numbers = range(start, min(start + BATCH, count))
            rows = [row(number, sentences) for number in numbers]
            near = vectors[[number % len(sentences) for number in numbers]]
            noise = generator.normal(scale=NOISE, size=near.shape)
            started, before = time.perf_counter(), cpu()
            collection.add(
                ids=[key for key, _, _ in rows],
                documents=[text for _, text, _ in rows],
                metadatas=[keys for _, _, keys in rows],
                embeddings=(near + noise).astype(np.float32),
            )
            spent, busy = spent + time.perf_counter() - started, busy + cpu() - before
    return {"chroma_add_seconds": round(spent, 1), "chroma_add_cpu_seconds": round(busy, 1)}


def base() -> tuple[list[str], Any]:
    """Sentences of Python's own reference, and their vectors."""
    from datasette_mempalace.embedding import Embedder

    text = " ".join(" ".join(topic.split()) for topic in topics.values())
    sentences = [sentence for sentence in text.split(". ") if 60 < len(sentence) < 200][:SENTENCES]
    return sentences, Embedder().embed(sentences)


def drawer(number: int, sentences: list[str]) -> tuple[str, str, dict[str, Any]]:
    """A drawer: its first sentence is the one that its vector comes from."""
    chosen = random.Random(number)
    lead = sentences[number % len(sentences)]
    # The first texts are alone, so that stored vectors can be compared with the model.
    text = lead if number < BATCH else ". ".join([lead, *chosen.sample(sentences, 4), f"Number {number}"])
    source = number // DRAWERS_A_CLOSET
    keys: dict[str, Any] = {
        "wing": f"wing {number % 12}",
        "room": f"room {number % 40}",
        "hall": "hall_facts",
        "source_file": f"/notes/{source % 12}/file {source}.md",
        "chunk_index": number % DRAWERS_A_CLOSET,
        "chunk_total": DRAWERS_A_CLOSET,
        "added_by": "benchmark",
        "filed_at": f"2026-0{1 + number % 9}-1{number % 10}T10:00:00",
        "entities": ";".join(lead.split()[:3]),
        "source_mtime": 1_700_000_000.5 + number,
        "line_start": number % 500,
        "line_end": number % 500 + 9,
        "content_date": "2026-03-14",
        "normalize_version": 2,
    }
    return f"drawer_benchmark_{number:024d}", text, keys


def closet(number: int, sentences: list[str]) -> tuple[str, str, dict[str, Any]]:
    """A closet, pointing to three drawers of its source."""
    first = number * DRAWERS_A_CLOSET
    pointers = ",".join(f"drawer_benchmark_{first + step:024d}" for step in range(3))
    text = f"{sentences[number % len(sentences)]}|Python;reference|→{pointers}"
    return (
        f"closet_benchmark_{number:024d}",
        text,
        {"wing": f"wing {number % 12}", "source_file": f"file {number}"},
    )


def import_and_search(folder: str, database: str) -> dict[str, Any]:
    """Import in this process; returns what was measured."""
    from datasette_mempalace.importers.mempalace import import_palace
    from datasette_mempalace.palace import Palace
    from datasette_mempalace.request import parse_request
    from datasette_mempalace.searcher import run_search

    def search(palace: Palace, **parameters: str) -> dict[str, Any]:
        given = {"q": "how is an exception caught and raised again", **parameters}
        answer = run_search(palace, parse_request(given, palace.settings))
        return {
            "hits": len(answer["results"]),
            "engine": answer["engine"],
            "ms": answer["timings_ms"]["total"],
        }

    started = time.perf_counter()
    done = import_palace(database, folder)
    with Palace.open(database) as palace:
        palace.embedder.load()
        searchable, busy = time.perf_counter() - started, cpu()
        words, exact = search(palace, vector_disabled="1"), search(palace)
        before = time.perf_counter()
        report = palace.mirror.sync()
        mirrored, all_busy = searchable + time.perf_counter() - before, cpu()
        mirror = search(palace)
    again = time.perf_counter()
    second = import_palace(database, folder)
    return {
        "imported": done.drawers.added,
        "closets": done.closets.added,
        "vectors": done.drawers.vectors + done.closets.vectors,
        "searchable_seconds": round(searchable, 1),
        "searchable_cpu_seconds": round(busy, 1),
        "mirrored_seconds": round(mirrored, 1),
        "mirrored_cpu_seconds": round(all_busy, 1),
        "mirrored_vectors": report.upserted,
        "second_import_seconds": round(time.perf_counter() - again, 1),
        "unchanged": second.drawers.unchanged,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "search_words": words,
        "search_exact": exact,
        "search_mirror": mirror,
    }


def cpu() -> float:
    """The processor seconds that this process has used: what a busy machine does not stretch."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
