"""The pages to look around in a palace of 1,000 drawers and in one of 100,000, side by side in one run.

    .venv/bin/python benchmarks/pages.py [--small 1000] [--large 100000] [--times 7]

Synthetic drawers of about 700 characters, 20 to a source, in up to 300 wings of very different sizes, filed over six
years. "First" is a page that nothing is kept for (the palace has just changed); "again" is the same page afterwards.
Whole requests through Datasette, medians. Prints Markdown; read the ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from datasette.app import Datasette

from datasette_mempalace.kept import KeptAnswers
from datasette_mempalace.palace import Palace
from datasette_mempalace.registry import open_palace

PER_SOURCE = 20
WORDS = [f"word{number}" for number in range(5000)]
SOURCE = "/notes/wing%200/source-0.md"
PAGES = {
    "palace": "",
    "a wing": "?wing=wing+0",
    "a month": "?since=2022-03-01&before=2022-04-01",
    "rooms": "/rooms",
    "sources": "/sources",
    "timeline": "/timeline.json",
    "a source": f"/source?source_file={SOURCE}",
}


def main() -> None:
    """Build both palaces, measure in turns, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--small", type=int, default=1_000)
    arguments.add_argument("--large", type=int, default=100_000)
    arguments.add_argument("--times", type=int, default=7)
    options = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mempalace-pages-"))
    sizes = {"small": options.small, "large": options.large}
    for name, size in sizes.items():
        fill(folder / f"{name}.db", size)
    asyncio.run(measure(folder, sizes, options.times))


def fill(path: Path, drawers: int) -> None:
    """A palace with some drawers and a closet for each source."""
    chance = random.Random(1)
    with Palace.create(path) as palace, palace.writer() as connection:
        for source in range(drawers // PER_SOURCE):
            wing = int(300 * chance.random() ** 3) if source else 0
            name = f"/notes/wing {wing}/source-{source}.md"
            filed = f"{2020 + source % 6}-{1 + source % 12:02}-{1 + source % 28:02}T10:00:00"
            connection.executemany(
                "insert into drawers (wing, room, text, source_file, chunk_index, added_by, filed_at, metadata)"
                " values (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        f"wing {wing}", f"room {source % 7}", " ".join(chance.choices(WORDS, k=90)), name, number,
                        f"agent {source % 3}", filed, json.dumps({"heading": f"Chapter {number} of {source}"}),
                    )
                    for number in range(PER_SOURCE)
                ],
            )  # fmt: skip
            connection.execute(
                "insert into closets (closet_id, wing, source_file, text) values (?, ?, ?, ?)",
                [name, f"wing {wing}", name, f"Lamps of chapter {source}|Lamp|→drawer"],
            )
        palace_size = connection.execute("select count(*) from drawers").fetchone()[0]
        assert palace_size == drawers // PER_SOURCE * PER_SOURCE
    with Palace.open(path) as palace:
        palace.checkpoint()


async def measure(folder: Path, sizes: dict[str, int], times: int) -> None:
    """Ask for every page of both palaces in turns."""
    # Immutable, so that nothing is embedded meanwhile.
    served = Datasette(immutables=[str(folder / f"{name}.db") for name in sizes])
    await served.invoke_startup()
    found: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(times):
        for page, path in PAGES.items():
            for name in sizes:
                (await open_palace(served, name)).kept_answers = KeptAnswers()
                for state in ("first", "again"):
                    found.setdefault((page, name, state), []).append(
                        await asked(served, f"/{name}/-/mempalace{path}")
                    )
    print(f"Medians of {times}, in milliseconds, of {sizes['small']:,} and {sizes['large']:,} drawers.\n")
    print("| page | first, small | first, large | ratio | again, small | again, large | ratio |")
    print("|---|---|---|---|---|---|---|")
    for page in PAGES:
        cells = []
        for state in ("first", "again"):
            small, large = (statistics.median(found[page, name, state][1:]) for name in ("small", "large"))
            cells += [f"{small:.0f}", f"{large:.0f}", f"{large / small:.1f}"]
        print(f"| {page} | {' | '.join(cells)} |")


async def asked(served: Any, path: str) -> float:
    """Milliseconds that a page takes."""
    started = time.perf_counter()
    response = await served.client.get(path)
    assert response.status_code == 200, response.text[:300]
    return 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
