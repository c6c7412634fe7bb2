"""A search in a small wing of a large palace against the same wing standing alone, side by side in one run.

    .venv/bin/python benchmarks/small_wing.py [--drawers 100000]

The texts are pieces of Python's language reference, the vectors random; the query is embedded once and remembered, so
that the times are those of the search alone. Prints Markdown; read the ratios.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np

from datasette_mempalace.config import Settings
from datasette_mempalace.palace import Palace
from datasette_mempalace.request import parse_request
from datasette_mempalace.searcher import run_search
from datasette_mempalace.vectors import as_blob

QUERIES = (
    "how does python look up an attribute on a class",
    "what exception is raised by an import statement",
    "function argument default value evaluation",
    "string formatting of floats",
)
ROUNDS = 10


def main() -> None:
    """Build the palaces, measure, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--drawers", type=int, default=100_000)
    drawers = arguments.parse_args().drawers
    folder = Path(tempfile.mkdtemp(prefix="mempalace-small-wing-"))
    chance = random.Random(1)
    words = " ".join(topics.values()).split()
    rows = [(number, wing_of(number, drawers), piece(words, chance)) for number in range(1, drawers + 1)]
    with build(folder / "large.db", rows) as large:
        print(
            "| wing | drawers | in the palace, ms | alone, ms | ratio | lexical in the palace, ms | alone, ms |"
        )
        print("|---|---|---|---|---|---|---|")
        for wing in ("filed together", "scattered", "a twentieth"):
            own = [row for row in rows if row[1] == wing]
            with build(folder / f"{wing}.db", own) as alone:
                inside, outside = measure(large, wing), measure(alone, wing)
            print(
                f"| {wing} | {len(own):,} | {inside['total']:.1f} | {outside['total']:.1f}"
                f" | {inside['total'] / outside['total']:.2f} | {inside['lexical']:.1f} | {outside['lexical']:.1f} |",
                flush=True,
            )


def wing_of(number: int, drawers: int) -> str:
    """A wing of a hundred neighbours, one of every thousandth drawer, one of every twentieth, and the rest."""
    if drawers // 2 <= number < drawers // 2 + 100:
        return "filed together"
    if number % 1000 == 3:
        return "scattered"
    return "a twentieth" if number % 20 == 1 else "rest"


def piece(words: list[str], chance: random.Random) -> str:
    """A passage of about 800 characters."""
    start = chance.randrange(len(words) - 130)
    return " ".join(words[start : start + 120])


def build(path: Path, rows: list[tuple[int, str, str]]) -> Palace:
    """A palace of the rows with a vector each."""
    palace = Palace.create(path, Settings(time_limit_ms=60_000))
    noise = np.random.default_rng(2)
    with palace.writer() as connection:
        connection.executemany("insert into drawers(id, wing, room, text) values (?, ?, 'r', ?)", rows)
        for number, _, _ in rows:
            vector = noise.normal(size=384).astype(np.float32)
            blob = as_blob(vector / np.linalg.norm(vector))
            connection.execute("insert into drawer_vectors values (?, ?, ?)", [number, blob, str(number)])
    return palace


def measure(palace: Palace, wing: str) -> dict[str, Any]:
    """Medians of the milliseconds that searches in a wing take: in all, and their lexical step."""
    requests = [parse_request({"q": query, "wing": wing, "context": 0}, palace.settings) for query in QUERIES]
    for request in requests:
        run_search(palace, request)
    totals, lexical = [], []
    for _ in range(ROUNDS):
        for request in requests:
            started = time.perf_counter()
            answer = run_search(palace, request)
            totals.append((time.perf_counter() - started) * 1000)
            lexical.append(answer["timings_ms"]["lexical"])
    return {"total": statistics.median(totals), "lexical": statistics.median(lexical)}


if __name__ == "__main__":
    main()
