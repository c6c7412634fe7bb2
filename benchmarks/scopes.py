"""Recall and time of a filtered vector search, by size of scope and by engine, side by side in one run.

    .venv/bin/python benchmarks/scopes.py [--drawers 100000] [--queries 20]

The palace is synthetic: short texts, clustered vectors of unit length, one wing whose cluster lies far from every
query. Recall is against every stored vector of the scope, compared in double precision. Prints Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from datasette_mempalace import nearest as engines
from datasette_mempalace.config import Settings
from datasette_mempalace.errors import MempalaceError
from datasette_mempalace.nearest import nearest
from datasette_mempalace.palace import Palace
from datasette_mempalace.rows import count_in_scope
from datasette_mempalace.scope import Scope
from datasette_mempalace.vectors import as_blob

DIMENSION = 384
CLUSTERS = 200
LIMIT = 10
WORDS = [f"word{number}" for number in range(5000)]


def main() -> None:
    """Build the palace, measure, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--drawers", type=int, default=100_000)
    arguments.add_argument("--queries", type=int, default=20)
    options = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mempalace-scopes-"))
    chance = np.random.default_rng(1)
    centres = unit(chance.normal(size=(CLUSTERS, DIMENSION)))
    with Palace.create(folder / "palace.db", Settings(matrix_mb=4096)) as palace:
        fill(palace, options.drawers, centres, chance)
        palace.mirror.sync()
        queries = unit(
            centres[chance.integers(1, CLUSTERS, options.queries)] + noise(chance, options.queries)
        )
        print(
            f"{options.drawers:,} drawers, {options.queries} queries, the nearest {LIMIT}; ms are medians.\n"
        )
        print(
            "| scope | drawers | exact ms | matrix ms | chroma ms | chosen | recall chosen | recall chroma |"
        )
        print("|---|---|---|---|---|---|---|---|")
        for name, scope in scopes(options.drawers):
            print(row(palace, name, scope, queries), flush=True)


def unit(vectors: Any) -> Any:
    """Vectors scaled to length one."""
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def noise(chance: Any, rows: int) -> Any:
    """What spreads the members of a cluster: their cosine with its centre is about 0.8."""
    return 0.75 / np.sqrt(DIMENSION) * chance.normal(size=(rows, DIMENSION))


def fill(palace: Palace, drawers: int, centres: Any, chance: Any) -> None:
    """Drawers with vectors: `part` says to which power-of-ten share a drawer belongs; wing "far" is cluster 0 alone."""
    clusters = chance.integers(1, CLUSTERS, drawers)
    clusters[chance.random(drawers) < 0.03] = 0
    with palace.writer() as connection:
        for start in range(0, drawers, 5000):
            members = clusters[start : start + 5000]
            vectors = unit(centres[members] + noise(chance, len(members)))
            ids = range(start + 1, start + len(members) + 1)
            connection.executemany(
                "insert into drawers(id, drawer_id, wing, room, text, filed_at) values (?, ?, ?, ?, ?, ?)",
                [
                    (
                        row_id,
                        str(row_id),
                        "far" if cluster == 0 else ("half" if row_id % 2 else "other"),
                        part(row_id),
                        " ".join(chance.choice(WORDS, 12)),
                        f"2026-{1 + row_id % 12:02d}-01",
                    )
                    for row_id, cluster in zip(ids, members, strict=True)
                ],
            )
            connection.executemany(
                "insert into drawer_vectors values (?, ?, ?)",
                [(row_id, as_blob(vector), str(row_id)) for row_id, vector in zip(ids, vectors, strict=True)],
            )


def part(row_id: int) -> str:
    """A room of one, 100, 1 % or 10 % of the drawers, or the rest."""
    if row_id == 77:
        return "one"
    if row_id % 1000 == 3:
        return "0.1 %"
    if row_id % 100 == 5:
        return "1 %"
    return "10 %" if row_id % 10 == 7 else "rest"


def scopes(drawers: int) -> list[tuple[str, Scope]]:
    """Scopes of every size."""
    return [
        ("one drawer", Scope(rooms=("one",))),
        ("0.1 %", Scope(rooms=("0.1 %",))),
        ("1 %", Scope(rooms=("1 %",))),
        ("far cluster, 3 %", Scope(wings=("far",))),
        ("10 %", Scope(rooms=("10 %",))),
        ("a month", Scope(since="2026-03-01 00:00:00", before="2026-04-01 00:00:00")),
        ("half", Scope(wings=("half",))),
        ("all", Scope()),
    ]


def row(palace: Palace, name: str, scope: Scope, queries: Any) -> str:
    """One line of the table."""
    with palace.reader() as connection:
        size = count_in_scope(connection, scope)
        truth = [by_hand(connection, scope, query) for query in queries[:5]]
        times: dict[str, float | None] = {}
        recalls: dict[str, float] = {}
        choose = engines._engines
        for engine in ("exact", "matrix", "chroma", "chosen"):
            if engine != "chosen":
                engines._engines = lambda *given, engine=engine: [engine]  # type: ignore[assignment]
            try:
                nearest(palace, connection, "drawer", queries[0], scope, LIMIT, size)
                taken, found = [], []
                for query in queries:
                    started = time.perf_counter()
                    answer = nearest(palace, connection, "drawer", query, scope, LIMIT, size)
                    taken.append((time.perf_counter() - started) * 1000)
                    found.append(answer)
                used = found[0].engine
                times[engine] = statistics.median(taken) if engine in ("chosen", used) else None
                recalls[engine] = recall(truth, found) if times[engine] is not None else float("nan")
            except MempalaceError:
                times[engine] = None
            finally:
                engines._engines = choose
    shown = {engine: f"{value:.1f}" if value is not None else "–" for engine, value in times.items()}
    chroma = f"{recalls['chroma']:.3f}" if times.get("chroma") is not None else "–"
    return (
        f"| {name} | {size:,} | {shown['exact']} | {shown['matrix']} | {shown['chroma']} | {used} {shown['chosen']}"
        f" | {recalls['chosen']:.3f} | {chroma} |"
    )


def by_hand(connection: Any, scope: Scope, query: Any) -> set[int]:
    """The true nearest, compared one by one."""
    where, parameters = scope.where()
    rows = connection.execute(
        f"select id, vector from drawer_vectors where id in (select id from drawers where {where})",
        parameters,
    )
    wanted = query.astype(np.float64)
    found = sorted((1 - float(np.frombuffer(blob, "<f4") @ wanted), row_id) for row_id, blob in rows)
    return {row_id for _, row_id in found[:LIMIT]}


def recall(truth: list[set[int]], found: list[Any]) -> float:
    """The share of the true nearest that were found."""
    shares = [
        len(true & set(answer.distances)) / len(true)
        for true, answer in zip(truth, found, strict=False)
        if true
    ]
    return statistics.mean(shares) if shares else 1.0


if __name__ == "__main__":
    main()
