"""What a large palace costs: bytes on disk, memory, and how long searches take, by meaning, by words and in parts of it.

    .venv/bin/python benchmarks/large.py [--drawers 1000000] [--mirror] [--palace FILE]

The palace is synthetic: passages of 120 words, drawn from 50,000 as often as words of a language are (Zipf), and vectors that
are random directions of unit length. Queries are two to five words, none of the hundred most frequent (which a language has as stop words), embedded by the real model. So sizes and times are real, and what
is found means nothing. `--palace` keeps the palace, or measures one that an earlier run has made. `--mirror` fills a Chroma mirror too,
which takes over an hour for a million. Prints JSON; times are milliseconds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from datasette_mempalace.config import Settings
from datasette_mempalace.palace import Palace
from datasette_mempalace.request import parse_request
from datasette_mempalace.searcher import run_search
from datasette_mempalace.text import text_hash
from datasette_mempalace.vectors import as_blob

DIMENSION = 384
VOCABULARY = 50_000
WORDS_A_DRAWER = 120
BATCH = 5_000
SEARCHES = {
    "union": {},
    "vector": {"candidate_strategy": "vector"},
    "words only": {"vector_disabled": True},
    "union, a wing of a hundredth": {"wing": "wing 7"},
    "union, a month": {"since": "2026-03-01", "before": "2026-04-01"},
    "union, one source": {"source_file": "/notes/source 12.md"},
}


def main() -> None:
    """Build the palace where there is none, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--drawers", type=int, default=1_000_000)
    parser.add_argument("--searches", type=int, default=20, help="of each kind")
    parser.add_argument("--mirror", action="store_true")
    parser.add_argument("--palace", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.palace or Path(folder) / "palace.db"
        found: dict[str, Any] = {"drawers": given.drawers}
        if not path.exists():
            found["build_s"] = timed(lambda: build(path, given.drawers)) / 1000
        found["palace_mb"] = path.stat().st_size // 1_000_000
        with Palace.open(path, Settings(matrix_mb=100_000, time_limit_ms=600_000)) as palace:
            palace.embedder.load()
            if given.mirror:
                found["mirror_s"] = timed(palace.mirror.sync) / 1000
                found["mirror_mb"] = folder_size(Path(f"{path}.chroma")) // 1_000_000
            found |= measure(palace, given.searches)
        print(json.dumps(found, indent=2))


def build(path: Path, drawers: int) -> None:
    """A palace of random passages and random vectors: a hundred wings, ten drawers a source, three years."""
    numbers = np.random.default_rng(1)
    words = np.array([f"w{number:05d}" for number in range(VOCABULARY)])
    often = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    with Palace.create(path) as palace:
        for start in range(0, drawers, BATCH):
            ids = range(start, min(start + BATCH, drawers))
            drawn = np.searchsorted(often / often[-1], numbers.random((len(ids), WORDS_A_DRAWER)))
            texts = [" ".join(words[line]) for line in drawn]
            vectors = numbers.standard_normal((len(ids), DIMENSION), dtype=np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            with palace.writer() as connection:
                connection.executemany(
                    "insert into drawers(id, drawer_id, wing, room, source_file, chunk_index, text, filed_at)"
                    " values (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        (
                            row + 1, f"drawer {row}", f"wing {row // 10 % 100}", f"room {row // 10 % 7}",
                            f"/notes/source {row // 10}.md", row % 10, text,
                            f"{2024 + row // 10 % 3}-{1 + row // 30 % 12:02d}-{1 + row // 360 % 28:02d}T09:00:00",
                        )
                        for row, text in zip(ids, texts, strict=True)
                    ],
                )  # fmt: skip
                connection.executemany(
                    "insert into drawer_vectors values (?, ?, ?)",
                    [
                        (row + 1, as_blob(vector), text_hash(text))
                        for row, text, vector in zip(ids, texts, vectors, strict=True)
                    ],
                )
        palace.checkpoint()


def measure(palace: Palace, searches: int) -> dict[str, Any]:
    """The first search, then each kind's median and longest; memory before the vectors are loaded and in the end."""
    chance = random.Random(3)
    before = megabytes()
    first = timed(lambda: find(palace, ask(chance)))
    found = {}
    for name, parameters in SEARCHES.items():
        times = [timed(lambda p=parameters: find(palace, ask(chance), **p)) for _ in range(searches)]  # type: ignore[misc]
        found[name] = {"p50": round(statistics.median(times)), "max": round(max(times))}
    return {"first_search_ms": round(first), "searches_ms": found, "memory_mb": [before, megabytes()]}


def ask(chance: random.Random) -> str:
    """Two to five words, from those in a tenth of all drawers to those in a thousandth."""
    return " ".join(f"w{int(100 * 200 ** chance.random()):05d}" for _ in range(chance.randrange(2, 6)))


def find(palace: Palace, query: str, **parameters: Any) -> None:
    """One whole search."""
    assert run_search(palace, parse_request({"q": query, **parameters}, palace.settings))["results"]


def timed(work: Any) -> float:
    """How long something takes."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def folder_size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def megabytes() -> int:
    """What this process holds; 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")), 0)


if __name__ == "__main__":
    main()
