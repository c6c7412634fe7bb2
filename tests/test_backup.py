"""What docs/backup.md says: copies in use are whole, older backups are noticed, what cannot be written is searched."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli
from datasette.utils.sqlite import sqlite3

from building import add, column, find, make_palace, one, texts
from datasette_mempalace import cli as commands
from datasette_mempalace.config import Settings
from datasette_mempalace.doctor import examine
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.errors import MirrorUnavailable, PalaceUnreadable
from datasette_mempalace.palace import Palace
from datasette_mempalace.status import palace_status

commands.register(datasette_cli)
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def palace(tmp_path):
    with make_palace(
        tmp_path / "notes.db", [("the red fox", "w"), ("the blue whale", "w")], mirror=True
    ) as palace:
        yield palace


def backup_api(source, target):
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        old.backup(new)
    old.close()
    new.close()


def vacuum_into(source, target):
    connection = sqlite3.connect(source)
    connection.execute("vacuum into ?", [str(target)])
    connection.close()


def assert_whole(path):
    connection = sqlite3.connect(path)
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    with connection:
        connection.execute("insert into drawers_fts(drawers_fts, rank) values ('integrity-check', 1)")
    connection.close()


def run(*arguments):
    done = CliRunner().invoke(datasette_cli, ["mempalace", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def mirrored_ids(palace):
    vector = palace.embedder.embed_query("fox")
    return {row_id for row_id, _ in palace.mirror.nearest("drawer", vector, 100)}


def truth(palace):
    return set(column(palace, "select id from drawer_vectors"))


# Back up


@pytest.mark.parametrize("copy", [backup_api, vacuum_into])
def test_a_copy_made_while_somebody_writes_is_a_whole_palace(palace, tmp_path, copy):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, palace.path],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        seen = [writer.stdout.readline().strip() for _ in range(50)]
        copy(palace.path, tmp_path / "copy.db")
        assert writer.poll() is None, "nobody was writing"
    finally:
        writer.kill()
        writer.communicate()
    assert_whole(tmp_path / "copy.db")
    with Palace.open(tmp_path / "copy.db") as copied:
        assert set(seen) <= set(column(copied, "select text from drawers"))
        assert texts(find(copied, "fox", n_results=1)) == ["the red fox"]


WRITER = """
import itertools, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30)
for number in itertools.count():
    with connection:
        connection.execute("insert into drawers(text) values (?)", [f"text {number}"])
    print(f"text {number}", flush=True)
"""


def test_a_copy_makes_a_mirror_of_its_own_and_embeds_nothing(palace, tmp_path):
    backup_api(palace.path, tmp_path / "copy.db")
    said = run("sync", tmp_path / "copy.db")
    assert "Embedded 0 texts." in said
    assert "filled anew" in said
    with Palace.open(tmp_path / "copy.db") as copied:
        assert find(copied, "fox")["engine"] in ("exact", "chroma")
    assert find(palace, "fox")["engine"] == "chroma", "the mirror of the other is left alone"


# Restore


@pytest.fixture
def older(palace, tmp_path):
    """A backup, after which the palace has gone on and its mirror with it."""
    backup_api(palace.path, tmp_path / "backup.db")
    add(palace, ("a green heron", "w"), ("a grey mole", "w"), mirror=True)
    with palace.writer() as connection:
        connection.execute("delete from drawers where id = 1")
    palace.mirror.sync()
    assert mirrored_ids(palace) == {2, 3, 4}
    return tmp_path / "backup.db"


def test_an_older_backup_in_place_of_the_palace_is_noticed(palace, older):
    palace.close()
    Path(palace.path).unlink()
    assert not Path(palace.path + "-wal").exists()
    shutil.copy(older, palace.path)
    with Palace.open(palace.path) as restored:
        assert texts(find(restored, "fox", n_results=1)) == ["the red fox"]
        restored.mirror.sync()
        assert mirrored_ids(restored) == truth(restored) == {1, 2}


def test_an_older_backup_is_noticed_after_the_palace_has_gone_on_from_it(palace, older):
    """As many changes later its log is as long as the mirror's position."""
    palace.close()
    Path(palace.path).unlink()
    shutil.copy(older, palace.path)
    with Palace.open(palace.path) as restored:
        add(restored, ("a white owl", "w"), ("a black cat", "w"), ("a brown dog", "w"), ("a pink pig", "w"))
    with Palace.open(palace.path) as restored:
        restored.mirror.sync()
        assert mirrored_ids(restored) == truth(restored) == {1, 2, 3, 4, 5, 6}
        assert texts(find(restored, "night bird that hoots", n_results=1)) == ["a white owl"]


def test_a_backup_restored_under_a_running_server_is_noticed(palace, older):
    palace.matrices  # noqa: B018
    assert texts(find(palace, "heron", n_results=1)) == ["a green heron"]
    backup_api(older, palace.path)
    assert texts(find(palace, "fox", n_results=1)) == ["the red fox"]
    assert palace.mirror.sync().rebuilt
    assert mirrored_ids(palace) == truth(palace) == {1, 2}
    assert texts(find(palace, "fox", n_results=5)) == ["the red fox", "the blue whale"]


# Copy by cp


def test_the_file_alone_lacks_what_is_in_the_log_until_doctor_has_mended_it(palace, tmp_path):
    palace.checkpoint()
    put_drawers(palace, [Drawer("the newest drawer")])
    shutil.copy(palace.path, tmp_path / "too-early.db")
    with Palace.open(tmp_path / "too-early.db") as copied:
        assert "the newest drawer" not in column(copied, "select text from drawers")
    palace.close()
    assert "empty: the file alone is the whole palace" in run("doctor", palace.path, "--fix")
    shutil.copy(palace.path, tmp_path / "copy.db")
    assert_whole(tmp_path / "copy.db")
    with Palace.open(tmp_path / "copy.db") as copied:
        assert "the newest drawer" in column(copied, "select text from drawers")


# What cannot be written


def state_of(folder):
    return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in folder.rglob("*")}


@pytest.mark.parametrize("mirrored", [False, True], ids=["without a mirror", "beside a mirror"])
async def test_an_immutable_palace_is_searched_and_nothing_is_written(make_datasette, palace, mirrored):
    """Chroma writes into a folder even to read it, and a palace that can't record a mirror would fill it at every start."""
    palace.mirror.sync()
    palace.close()
    folder = palace.mirror_path.parent
    if not mirrored:
        shutil.rmtree(palace.mirror_path)
        assert [file.name for file in folder.iterdir()] == ["notes.db"]
    before = state_of(folder)
    datasette = make_datasette(
        immutables=[palace.path], config={"plugins": {"datasette-mempalace": {"sync_seconds": 0.1}}}
    )
    response = await datasette.client.get("/notes/-/mempalace.json?q=whale")
    answer = response.json()
    assert answer["results"][0]["text"] == "the blue whale"
    assert answer["results"][0]["found_by"] == ["vector", "lexical"]
    await asyncio.sleep(0.5)  # the keeper has its turn
    assert state_of(folder) == before


def test_a_palace_that_can_only_be_read_is_searched_in_memory(palace, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.nearest.FEW", 0)
    palace.close()
    with Palace.open(palace.path, Settings(exact_limit=0), immutable=True) as reading:
        answer = find(reading, "whale", candidate_strategy="vector")
        assert texts(answer)[0] == "the blue whale"
        assert (answer["engine"], answer["vector_status"], answer["vector_note"]) == ("matrix", "ok", None)
        state = palace_status(reading)["mirror"]
        assert (state["state"], state["reason"]) == ("none", reading.mirror.sync().skipped_reason)
        with pytest.raises(MirrorUnavailable, match="can only be read"):
            reading.mirror.rebuild()
        assert [found.check for found in examine(reading) if not found.ok] == []


async def test_an_immutable_palace_is_the_file_alone(make_datasette, palace):
    """Search and Datasette's own pages see the same: neither what is in the write-ahead log."""
    palace.checkpoint()
    put_drawers(palace, [Drawer("the newest drawer")])
    datasette = make_datasette(immutables=[palace.path])
    response = await datasette.client.get("/notes/-/mempalace.json?q=newest+drawer&vector_disabled=1")
    assert "the newest drawer" not in response.text
    assert "the newest drawer" not in (await datasette.client.get("/notes/drawers.json")).text


@pytest.fixture
def as_nobody():
    """Run as somebody whose rights the system checks; root may write anywhere."""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def read_only_folder(palace):
    """A folder that cannot be written, with palaces in it, in write-ahead mode and out of it."""
    palace.close()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for file in ("wal.db", "plain.db"):
            shutil.copy(palace.path, folder / file)
            (folder / file).chmod(0o444)
        connection = sqlite3.connect(folder / "plain.db")
        connection.execute("pragma journal_mode = delete")
        connection.close()
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


@pytest.mark.parametrize("file", ["wal.db", "plain.db"])
def test_a_palace_in_a_folder_that_cannot_be_written_is_searched(read_only_folder, as_nobody, file):
    with Palace.open(read_only_folder / file) as palace:
        assert palace.read_only
        answer = find(palace, "whale")
        assert texts(answer)[0] == "the blue whale"
        assert answer["engine"] == "exact"
        assert find(palace, "whale", vector_disabled=True)["results"][0]["text"] == "the blue whale"
    assert sorted(file.name for file in read_only_folder.iterdir()) == ["plain.db", "wal.db"]


@pytest.fixture
def closed_folder(palace):
    """A folder that nobody may enter, with a palace in it."""
    palace.close()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        shutil.copy(palace.path, folder / "palace.db")
        folder.chmod(0)
        yield folder
        folder.chmod(0o755)


@pytest.mark.parametrize("use", [Palace.open, Palace.create])
def test_a_palace_in_a_folder_that_cannot_be_entered_is_told(closed_folder, as_nobody, use):
    with pytest.raises(PalaceUnreadable, match="palace.db cannot be reached: Permission denied"):
        use(closed_folder / "palace.db")


# Writing while others write


def test_another_writer_is_never_refused_while_a_large_import_runs(palace, tmp_path):
    records = tmp_path / "records.csv"
    lines = [f"r{number},the text number {number % 60} of a large import" for number in range(2500)]
    records.write_text("\n".join(["id,text", *lines]))
    importing = subprocess.Popen(
        [sys.executable, "-m", "datasette", "mempalace", "import", palace.path, str(records)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    # As impatient as Datasette's own write connection; a refusal raises.
    connection = sqlite3.connect(palace.path, timeout=5)
    written = 0
    while importing.poll() is None:
        with connection:
            connection.execute("insert into drawers(text) values (?)", [f"between {written}"])
        written += 1
        time.sleep(0.01)
    connection.close()
    assert importing.returncode == 0
    assert "2,500 added" in importing.stdout.read()
    importing.stdout.close()
    assert written > 10
    assert one(palace, "select count(*) from drawers where text like 'between %'") == (written,)
    assert one(palace, "select count(*) from drawers where drawer_id like 'r%'") >= (2500,)
