"""Exporting a palace and reading it back, a small palace and a large one side by side: time, and memory at its highest.

    .venv/bin/python benchmarks/exporting.py [--drawers 100000]

Each step is a process of its own; filling the mirror is not part of it. Texts are pieces of Python's language reference, vectors random. Prints Markdown; read
the ratios.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
from datasette.cli import cli

from datasette_mempalace.importers.restoring import restore
from datasette_mempalace.palace import Palace
from datasette_mempalace.vectors import as_blob, embedded_hash

DIMENSION = 384
STEPS = {
    "export, NDJSON with vectors": ["export", "{folder}/palace.db", "{folder}/palace.ndjson", "--vectors"],
    "reading it back": ["restore", "{folder}/back.db", "{folder}/palace.ndjson"],
    "reading it back again": ["restore", "{folder}/back.db", "{folder}/palace.ndjson"],
    "export, CSV": ["export", "{folder}/palace.db", "{folder}/palace.csv"],
    "export, Markdown": ["export", "{folder}/palace.db", "{folder}/tree"],
}


def main() -> None:
    """Build the palaces, measure, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--drawers", type=int, default=100_000)
    arguments.add_argument("--step", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.step:
        one_step(given.step)
        return
    large, small = given.drawers, given.drawers // 10
    with tempfile.TemporaryDirectory() as name:
        folders = {count: Path(name) / str(count) for count in (small, large)}
        for count, folder in folders.items():
            build(folder, count)
        print(f"| step | {small:,} drawers, s | {large:,}, s | {small:,}, MB | {large:,}, MB | MB ratio |")
        print("|---|---|---|---|---|---|")
        for step, words in STEPS.items():
            (fast, low), (slow, high) = (measure(folder, words) for folder in folders.values())
            print(
                f"| {step} | {fast:.1f} | {slow:.1f} | {low:.0f} | {high:.0f} | {high / low:.2f} |",
                flush=True,
            )


def build(folder: Path, count: int) -> None:
    """A palace of random pieces of text, with vectors."""
    folder.mkdir()
    chance, numbers = random.Random(1), np.random.default_rng(1)
    words = " ".join(topics.values()).split()
    with Palace.create(folder / "palace.db") as palace, palace.writer() as connection:
        connection.execute(
            "insert into mempalace_settings values ('embedding_dimension', ?)", [str(DIMENSION)]
        )
        for number in range(count):
            start = chance.randrange(len(words) - 100)
            text = f"{number} " + " ".join(words[start : start + 100])
            row = connection.execute(
                "insert into drawers (wing, room, source_file, chunk_index, text, metadata) values (?, ?, ?, ?, ?, '{}')",
                [f"wing {number % 20}", f"room {number % 7}", f"/notes/{number // 10}.md", number % 10, text],
            ).lastrowid
            vector = numbers.standard_normal(DIMENSION, dtype=np.float32)
            connection.execute(
                "insert into drawer_vectors values (?, ?, ?)",
                [row, as_blob(vector / np.linalg.norm(vector)), embedded_hash("drawer", text)],
            )


def measure(folder: Path, words: list[str]) -> tuple[float, float]:
    """Seconds and megabytes of one step in a process of its own; its start is part of it."""
    step = [word.format(folder=folder) for word in words]
    started = time.perf_counter()
    done = subprocess.run([sys.executable, __file__, "--step", *step], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return time.perf_counter() - started, float(done.stdout.splitlines()[-1])


def one_step(words: list[str]) -> None:
    """Run a command here and print the most memory that this process had, in megabytes."""
    if words[0] == "restore":
        with Palace.create(words[1]) as palace, Path(words[2]).open("rb") as stream:
            restore(palace, stream)
    else:
        try:
            cli(["mempalace", *words])
        except SystemExit as end:
            if end.code:
                raise
    scale = 2**20 if sys.platform == "darwin" else 2**10
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale)


if __name__ == "__main__":
    main()
