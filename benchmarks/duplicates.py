"""Time of looking for duplicates and for similar drawers, at 1,000 to 100,000 drawers, side by side in one run.

    .venv/bin/python benchmarks/duplicates.py [--drawers 100000]

The palace is synthetic: short texts, clustered vectors of unit length, one drawer in fifty a copy of another and one in fifty a
near copy. What is found is held against what was planted. Prints Markdown; read the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from datasette_mempalace.config import Settings
from datasette_mempalace.duplicates import run_duplicates
from datasette_mempalace.duplicates.request import parse_duplicates
from datasette_mempalace.palace import Palace
from datasette_mempalace.similar import parse_similar, run_similar
from datasette_mempalace.vectors import as_blob

DIMENSION = 384
CLUSTERS = 200
SHARE = 50  # one drawer in so many is a copy, and one a near copy
REPEATS = 5


def main() -> None:
    """Build palaces, measure, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--drawers", type=int, default=100_000)
    options = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mempalace-duplicates-"))
    print(
        "| drawers | equal texts, ms | one call, s | looked at | all, s | planted pairs found | similar, ms |"
    )
    print("|---|---|---|---|---|---|---|")
    for drawers in (1_000, 10_000, 100_000):
        if drawers > options.drawers:
            break
        with Palace.create(
            folder / f"{drawers}.db", Settings(matrix_mb=4096, time_limit_ms=60_000)
        ) as palace:
            planted = fill(palace, drawers, np.random.default_rng(1))
            print(row(palace, drawers, planted), flush=True)


def unit(vectors: Any) -> Any:
    """Vectors scaled to length one."""
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def fill(palace: Palace, drawers: int, chance: Any) -> int:
    """Drawers with vectors; returns how many have a copy or near copy planted for them."""
    centres = unit(chance.normal(size=(CLUSTERS, DIMENSION)))
    noise = 0.75 / np.sqrt(DIMENSION) * chance.normal(size=(drawers, DIMENSION))
    vectors = unit(centres[chance.integers(0, CLUSTERS, drawers)] + noise)
    texts = [
        f"Drawer {number} tells of what was kept and why it was kept there." for number in range(drawers)
    ]
    planted = 0
    for number in range(SHARE, drawers, SHARE):
        texts[number], vectors[number] = texts[number - 1], vectors[number - 1]
        near = vectors[number - 2] + 0.1 / np.sqrt(DIMENSION) * chance.normal(size=DIMENSION)
        vectors[number - 3] = unit(near)
        planted += 2
    rows = [(n + 1, f"d{n}", text, f"/{n // 20}.md", n % 20) for n, text in enumerate(texts)]
    stored = [(n + 1, as_blob(vector), f"h{texts[n]}") for n, vector in enumerate(vectors)]
    with palace.writer() as connection:
        connection.executemany(
            "insert into drawers(id, drawer_id, text, source_file, chunk_index) values (?, ?, ?, ?, ?)", rows
        )
        connection.executemany("insert into drawer_vectors(id, vector, text_hash) values (?, ?, ?)", stored)
        connection.execute(
            "insert or replace into mempalace_settings(key, value) values ('embedding_dimension', ?)",
            [str(DIMENSION)],
        )
    return planted


def row(palace: Palace, drawers: int, planted: int) -> str:
    """One line of the table."""
    equal = median(lambda: run_duplicates(palace, parse_duplicates({"threshold": 1}, palace.settings)))
    asked = parse_duplicates({}, palace.settings)
    once, one_call = timed(lambda: run_duplicates(palace, asked))
    all_of_them, everything = timed(lambda: run_duplicates(palace, asked, pairs=None))
    question = parse_similar({"drawer_id": drawers // 2}, palace.settings)
    run_similar(palace, question)  # loads the matrix
    similar = median(lambda: run_similar(palace, question))
    return (
        f"| {drawers:,} | {1000 * equal:.0f} | {once:.1f} | {one_call['looked_at']:,} | {all_of_them:.0f} "
        f"| {everything['found']:,} of {planted:,} | {1000 * similar:.0f} |"
    )


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def median(work: Callable[[], Any]) -> float:
    """The median of a few runs, in seconds."""
    return statistics.median(timed(work)[0] for _ in range(REPEATS))


if __name__ == "__main__":
    main()
