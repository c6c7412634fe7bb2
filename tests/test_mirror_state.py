"""What is said of a mirror is true: by its own files, without Chroma, after kills and in folders of other palaces."""

import shutil
import signal
import subprocess
import sys

import pytest
from datasette.utils.sqlite import sqlite3

from building import make_palace
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.palace import Palace
from datasette_mempalace.status import palace_status, vectors_state

KILLED = """
import os, signal, sys
from datasette_mempalace.mirror.sync import Sync
from datasette_mempalace.palace import Palace

def killed(self, *given):
    os.kill(os.getpid(), signal.SIGKILL)

Sync._add = killed
with Palace.open(sys.argv[1]) as palace:
    palace.mirror.rebuild()
"""


@pytest.fixture
def path(tmp_path):
    with make_palace(tmp_path / "palace.db", [("the red fox", "w"), ("the blue whale", "w")], mirror=True):
        pass
    return tmp_path / "palace.db"


def state(path):
    with Palace.open(path) as palace:
        found = palace_status(palace)["mirror"]
        assert vectors_state(palace)["mirror"] == found["state"]
        return found


def test_a_mirror_that_was_filled_is_in_step_without_chroma(path):
    assert state(path)["state"] == "in step"
    assert (
        "chromadb"
        not in subprocess.run(
            [sys.executable, "-c", LOADED, path], capture_output=True, text=True, check=True
        ).stdout.split()
    )


LOADED = """
import sys
from datasette_mempalace.palace import Palace
from datasette_mempalace.status import palace_status
with Palace.open(sys.argv[1]) as palace:
    assert palace_status(palace)["mirror"]["state"] == "in step"
print(*sys.modules)
"""


def test_a_rebuild_that_was_killed_half_way_is_not_in_step(path):
    killed = subprocess.run([sys.executable, "-c", KILLED, path], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert state(path)["state"] == "none"
    with Palace.open(path) as palace:
        assert palace.mirror.sync().rebuilt
        assert palace_status(palace)["mirror"]["state"] == "in step"
    assert state(path)["state"] == "in step"


def test_a_folder_of_another_palace_is_not_in_step(path, tmp_path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "palace.db"
    with make_palace(other, [("a green heron", "w"), ("a grey mole", "w")], mirror=True):
        pass
    shutil.rmtree(f"{path}.chroma")
    shutil.copytree(f"{other}.chroma", f"{path}.chroma")
    found = state(path)
    assert found["state"] == "none"
    assert "another palace" in found["reason"]
    with Palace.open(path) as palace:
        assert palace.mirror.sync().rebuilt
    assert state(path)["state"] == "in step"


def test_a_folder_that_is_older_than_the_palace_is_behind(path, tmp_path):
    shutil.copytree(f"{path}.chroma", tmp_path / "older")
    with Palace.open(path) as palace:
        put_drawers(palace, [Drawer("a yellow canary")])
        palace.mirror.sync()
        assert palace_status(palace)["mirror"]["state"] == "in step"
    shutil.rmtree(f"{path}.chroma")
    shutil.copytree(tmp_path / "older", f"{path}.chroma")
    assert state(path)["state"] == "behind"


def test_an_empty_folder_is_no_mirror(path):
    shutil.rmtree(f"{path}.chroma")
    (path.parent / "palace.db.chroma").mkdir()
    assert state(path)["state"] == "none"


def test_a_mirror_that_cannot_be_read_now_is_not_checked(path):
    connection = sqlite3.connect(f"{path}.chroma/chroma.sqlite3", isolation_level=None)
    connection.execute("begin exclusive")
    found = state(path)
    connection.close()
    assert (found["state"], found["reason"]) == (
        "not checked",
        "it is in step by the palace's own record; the mirror itself was not asked",
    )


def test_another_palace_object_of_the_process_knows_it(path):
    """Opening the database a second time in one process would take Chroma's locks away."""
    with Palace.open(path) as palace:
        palace.mirror.sync()
        assert state(path)["state"] == "in step"
        put_drawers(palace, [Drawer("a yellow canary")])
        assert state(path)["state"] == "behind"
