"""Kills processes that mine, import, sync, rebuild, purge and serve, at random moments, and looks whether anything was lost or doubled.

Takes ten to thirty seconds a kill, so that it runs only when asked: KILLS=10 in CI, KILLS=100 before a release. SEED repeats
a run: what was done and how long each process lived, though not what the machine did meanwhile.
"""

import os
import random
import sys
from collections import Counter
from contextlib import closing

import chromadb
import pytest
from chromadb.config import Settings as ChromaSettings
from datasette.utils.sqlite import sqlite3

from killing import World

KILLS = int(os.environ.get("KILLS") or 0)
SEED = int(os.environ.get("SEED") or 0) or random.SystemRandom().randrange(1, 10**6)
TURNS = ("import", "server", "rebuild", "import-palace", "mine", "purge", "sync")

pytestmark = pytest.mark.skipif(not KILLS, reason="takes minutes; KILLS=10 in the environment runs it")


def test_a_kill_loses_nothing_and_doubles_nothing(tmp_path, capsys):
    world = World(tmp_path, SEED)
    killed, turn = Counter(), 0
    while killed.total() < KILLS:
        what = TURNS[turn % len(TURNS)]
        turn += 1
        was_killed, phase = world.kill_in(what)
        tell(capsys, f"SEED={SEED} turn {turn}: {what}, {phase}")
        world.check()
        if was_killed:
            killed[what, phase] += 1
    world.check_end()
    tell(capsys, f"{killed.total()} kills: {dict(sorted(killed.items()))}")


def test_the_checks_find_damage(tmp_path):
    """What a kill must not do, done by hand: else the test above could not fail."""
    world = World(tmp_path, SEED)
    world.look()
    world.check()
    with closing(sqlite3.connect(world.palace)) as connection, connection:
        connection.execute("delete from drawers where drawer_id = ?", [min(world.acknowledged)])
    with pytest.raises(AssertionError, match="acknowledged and lost"):
        world.check()
    world.acknowledged.clear()
    world.look()
    forget_a_vector(world.palace)
    with closing(sqlite3.connect(world.palace)) as connection, pytest.raises(AssertionError):
        world.check_mirror(connection)
    with closing(sqlite3.connect(world.palace)) as connection, connection:
        connection.execute("insert into drawers_fts(drawers_fts, rowid, text) values ('delete', 1, 'lamp')")
    with pytest.raises(sqlite3.DatabaseError):
        world.check()


def forget_a_vector(palace):
    client = chromadb.PersistentClient(
        f"{palace}.chroma", settings=ChromaSettings(anonymized_telemetry=False)
    )
    collection = client.get_collection("palace-palace_drawers", embedding_function=None)
    collection.delete(ids=collection.get(limit=1)["ids"])
    client.close()


def tell(capsys, line):
    """Say something while the test runs, so that a run that hangs shows where."""
    with capsys.disabled():
        sys.stderr.write(f"\n{line}")
