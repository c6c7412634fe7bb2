"""Many clients at once, while drawers are written: errors, times, Datasette's own pages meanwhile, memory.

    .venv/bin/python benchmarks/load.py [--clients 50] [--seconds 60] [--drawers 10000] [--sql]

A server in a process of its own serves a synthetic palace: texts of random words, and vectors that are random directions of
unit length, not the model's. Queries are embedded by the real model; new drawers, five a second, come through plain SQL in
this process and are embedded and mirrored by the server's keeper. So times are real, and what is found means nothing.

Clients ask one search after another, each with words of its own: JSON, or with `--sql` the SQL function, which runs in
Datasette's own SQL threads. One more client asks for Datasette's pages (`/`, the database, a row) all the while, before the load
and under it. Prints JSON; times are milliseconds. Clients share the machine with the server, so more of it is theirs than in use.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from datasette.app import Datasette

from datasette_mempalace.palace import Palace
from datasette_mempalace.text import text_hash
from datasette_mempalace.vectors import as_blob

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))
from server import Server

DIMENSION = 384
WRITES_A_SECOND = 5
WORDS = [
    f"{first}{second}" for first in ("lamp", "harbour", "keeper", "garden", "letter") for second in range(400)
]
PAGES = ("/", "/palace", "/palace/drawers/1", "/-/versions.json")
IS_ONE = hasattr(Datasette, "allowed")


def main() -> None:
    """Build, serve, load, report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--drawers", type=int, default=10_000)
    parser.add_argument("--sql", action="store_true", help="search by the SQL function rather than by JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "palace.db"
        build(path, given.drawers)
        with Server(path, "/palace/-/mempalace.json?q=lamp1", 10_000) as server:
            for number in range(20):
                ask(f"{server.url}/palace/-/mempalace.json?q=lamp{number}")
            print(json.dumps(load(server, path, given), indent=2))


def build(path: Path, drawers: int) -> None:
    """A palace of random texts and random vectors."""
    chance, numbers = random.Random(1), np.random.default_rng(1)
    with Palace.create(path) as palace:
        palace.embedder.load()
        with palace.writer() as connection:
            for row_id in range(1, drawers + 1):
                text = " ".join(chance.choices(WORDS, k=60))
                connection.execute(
                    "insert into drawers(id, drawer_id, wing, room, text, filed_at) values (?, ?, ?, ?, ?, ?)",
                    [
                        row_id,
                        str(row_id),
                        f"wing {row_id % 20}",
                        f"room {row_id % 100}",
                        text,
                        f"2026-{1 + row_id % 12:02d}-01",
                    ],
                )
                vector = numbers.normal(size=DIMENSION).astype(np.float32)
                connection.execute(
                    "insert into drawer_vectors values (?, ?, ?)",
                    [row_id, as_blob(vector / np.linalg.norm(vector)), text_hash(text)],
                )
        palace.checkpoint()


def load(server: Server, path: Path, given: Any) -> dict[str, Any]:
    """Ask, write and watch for a while."""
    alone = Asker(server.url, lambda chance: chance.choice(PAGES), 0)
    alone.run_until(time.monotonic() + min(5.0, given.seconds))
    end = time.monotonic() + given.seconds
    askers = [
        Asker(server.url, sql_search if given.sql else json_search, number)
        for number in range(1, given.clients + 1)
    ]
    pages = Asker(server.url, lambda chance: chance.choice(PAGES), 0, pause=0.05)
    written: list[int] = []
    threads = [threading.Thread(target=asker.run_until, args=(end,)) for asker in (*askers, pages)]
    threads.append(threading.Thread(target=write, args=(path, end, written)))
    memory = [server.memory()]
    for thread in threads:
        thread.start()
    time.sleep(given.seconds / 2)
    memory.append(server.memory())
    for thread in threads:
        thread.join()
    memory.append(server.memory())
    times = [spent for asker in askers for spent in asker.times]
    problems = [problem for asker in (*askers, pages) for problem in asker.problems]
    return {
        "clients": given.clients,
        "seconds": given.seconds,
        "drawers": given.drawers,
        "searches": "SQL function" if given.sql else "JSON",
        "answered": len(times),
        "a_second": round(len(times) / given.seconds, 1),
        "errors": len(problems),
        "first_errors": problems[:5],
        "search_ms": quantiles(times),
        "pages_alone_ms": quantiles(alone.times),
        "pages_under_load_ms": quantiles(pages.times),
        "drawers_written": len(written),
        "memory_mb": dict(zip(("start", "middle", "end"), memory, strict=True)),
    }


class Asker:
    """A client that asks for one address after another."""

    def __init__(self, url: str, address: Any, seed: int, pause: float = 0.0):
        self.url, self.address, self.pause = url, address, pause
        self.chance = random.Random(seed)
        self.times: list[float] = []
        self.problems: list[str] = []

    def run_until(self, end: float) -> None:
        """Ask until a moment of `time.monotonic`."""
        while time.monotonic() < end:
            started = time.perf_counter()
            status, said = ask(self.url + self.address(self.chance))
            self.times.append(1000 * (time.perf_counter() - started))
            if status != 200 or '{\\"ok\\": false' in said:
                self.problems.append(f"{status}: {said[:200]}")
            time.sleep(self.pause)


def json_search(chance: random.Random) -> str:
    """A search as JSON; every third in one wing."""
    given = {"q": " ".join(chance.choices(WORDS, k=4))} | (
        {"wing": f"wing {chance.randrange(20)}"} if chance.random() < 0.3 else {}
    )
    return f"/palace/-/mempalace.json?{urllib.parse.urlencode(given)}"


def sql_search(chance: random.Random) -> str:
    """A search by the SQL function."""
    given = {
        "sql": "select mempalace_search(:q) as hits",
        "q": " ".join(chance.choices(WORDS, k=4)),
        "_shape": "array",
    }
    return f"/palace{'/-/query' if IS_ONE else ''}.json?{urllib.parse.urlencode(given)}"


def ask(url: str) -> tuple[int, str]:
    """Status and body; 0 and the reason where there is none."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.status, response.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode("utf-8", "replace")
    except OSError as error:
        return 0, str(error)


def write(path: Path, end: float, written: list[int]) -> None:
    """Five new drawers a second, by plain SQL."""
    chance = random.Random(2)
    connection = sqlite3.connect(path, timeout=30)
    while time.monotonic() < end:
        with connection:
            connection.execute(
                "insert into drawers(text, wing) values (?, 'new')", [" ".join(chance.choices(WORDS, k=40))]
            )
        written.append(1)
        time.sleep(1 / WRITES_A_SECOND)
    connection.close()


def quantiles(times: list[float]) -> dict[str, float]:
    """p50, p95, p99 and the longest."""
    if len(times) < 2:
        return {}
    cut = statistics.quantiles(times, n=100)
    return {"p50": round(cut[49]), "p95": round(cut[94]), "p99": round(cut[98]), "max": round(max(times))}


if __name__ == "__main__":
    main()
