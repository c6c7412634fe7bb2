"""Kills processes that mine, import, sync and serve, at random moments, and looks whether anything was lost or doubled.

Takes about ten seconds a kill, so that it runs only when asked: KILLS=10 in CI, KILLS=100 before a release. SEED repeats
a run: what was done and how long each process lived, though not what the machine did meanwhile.
"""

import os
import random
import sys
from collections import Counter

import pytest

from killing import World

KILLS = int(os.environ.get("KILLS", "0"))
SEED = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


@pytest.mark.skipif(not KILLS, reason="takes minutes; KILLS=10 in the environment runs it")
def test_a_kill_loses_nothing_and_doubles_nothing(tmp_path, capsys):
    world = World(tmp_path, SEED)
    killed, turn = Counter(), 0
    while killed.total() < KILLS:
        what = ("import", "server", "mine", "sync")[turn % 4]
        turn += 1
        was_killed, phase = world.kill_in(what)
        tell(capsys, f"SEED={SEED} turn {turn}: {what}, {phase}")
        world.check()
        if was_killed:
            killed[what, phase] += 1
    world.check_end()
    tell(capsys, f"{killed.total()} kills: {dict(sorted(killed.items()))}")


def tell(capsys, line):
    """Say something while the test runs, so that a run that hangs shows where."""
    with capsys.disabled():
        sys.stderr.write(f"\n{line}")
