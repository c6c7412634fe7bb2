"""Whatever happens to a mirror's files, searches answer and say so, the process survives, and the mirror comes back."""

import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from building import add, add_unread, find, make_palace, texts
from datasette_mempalace.cli import mempalace, register
from datasette_mempalace.errors import MempalaceError
from datasette_mempalace.keeper import keep_in_step
from datasette_mempalace.mirror import trouble as mirror_trouble
from datasette_mempalace.mirror.check import note_closed
from datasette_mempalace.palace import Palace
from datasette_mempalace.status import palace_status

SIZE = 1200
pytestmark = pytest.mark.long

if "rebuild" not in mempalace.commands:
    register(SimpleNamespace(add_command=lambda command: None))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A palace with enough vectors that Chroma has written its index files, its mirror closed in order."""
    folder = tmp_path_factory.mktemp("damage")
    with make_palace(folder / "p.db", [("the red fox", "w", "r")]) as palace:
        add_unread(palace, SIZE - 1)
        palace.mirror.sync()
        palace.checkpoint()
    return folder


@pytest.fixture
def path(original, tmp_path, monkeypatch):
    monkeypatch.setattr(mirror_trouble, "PAUSE_SECONDS", 0.2)
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path / "p.db"


def mirror_of(path):
    return path.with_name(path.name + ".chroma")


def index_files(path, name):
    found = list(mirror_of(path).glob(f"*/{name}"))
    assert found
    return found


def overwrite(file, start, stop):
    with file.open("r+b") as handle:
        handle.seek(int(start * file.stat().st_size))
        handle.write(os.urandom(int((stop - start) * file.stat().st_size)))


def each(name, harm):
    return lambda path: [harm(file) for file in index_files(path, name)]


def database(harm):
    return lambda path: harm(mirror_of(path) / "chroma.sqlite3")


def in_its_place(path):
    shutil.rmtree(mirror_of(path))
    mirror_of(path).write_text("a file where the folder should be")


DAMAGE = {
    "folder deleted": lambda path: shutil.rmtree(mirror_of(path)),
    "segment folders deleted": lambda path: [
        shutil.rmtree(folder) for folder in mirror_of(path).iterdir() if folder.is_dir()
    ],
    "pickle deleted": each("index_metadata.pickle", os.remove),
    "pickle garbage": each("index_metadata.pickle", lambda file: overwrite(file, 0, 1)),
    "header garbage": each("header.bin", lambda file: overwrite(file, 0, 1)),
    "header truncated": each("header.bin", lambda file: os.truncate(file, 10)),
    "level 0 garbage": each("data_level0.bin", lambda file: overwrite(file, 0, 1)),
    "level 0 garbage inside": each("data_level0.bin", lambda file: overwrite(file, 0.2, 0.8)),
    "level 0 truncated": each("data_level0.bin", lambda file: os.truncate(file, file.stat().st_size // 2)),
    "level 0 empty": each("data_level0.bin", lambda file: os.truncate(file, 0)),
    "database deleted": database(os.remove),
    "database empty": database(lambda file: file.write_bytes(b"")),
    "database garbage": database(lambda file: file.write_bytes(os.urandom(50_000))),
    "database garbage inside": database(lambda file: overwrite(file, 0.1, 0.9)),
    "database truncated": database(lambda file: os.truncate(file, file.stat().st_size // 2)),
}


def by_meaning(palace, **parameters):
    return find(palace, "the red fox", candidate_strategy="vector", **parameters)


def is_whole(palace):
    vector = palace.embedder.embed_query("the red fox")
    found = palace.mirror.nearest("drawer", vector, SIZE)
    return len(found) >= SIZE - 1 and found[0][0] == 1 and palace.mirror.holds_its_vectors()


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_while_nobody_looked(path, damage):
    DAMAGE[damage](path)
    with Palace.open(path) as palace:
        assert texts(by_meaning(palace))[0] == "the red fox"
        seen = {}
        keep_in_step(palace, seen)
        answer = by_meaning(palace)
        assert (answer["engine"], answer["vector_status"]) == ("chroma", "ok")
        assert texts(answer)[0] == "the red fox"
        assert is_whole(palace)


class Planted:
    """A pickle that leaves a mark when somebody opens it."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch '{self.mark}'",)


def test_a_pickle_that_somebody_planted_is_never_given_to_chroma(path, tmp_path, caplog):
    for file in index_files(path, "index_metadata.pickle"):
        file.write_bytes(pickle.dumps(Planted(tmp_path / "was-run")))
    note_closed(mirror_of(path))  # as whoever planted it would do, so that it counts as untouched
    with Palace.open(path) as palace:
        palace.mirror.sync()
        assert "it names posix.system" in caplog.text
        assert is_whole(palace)
    assert not any(b"touch" in file.read_bytes() for file in mirror_of(path).rglob("*.pickle"))
    assert not (tmp_path / "was-run").exists()


SERVER = """
    import sys, time, logging
    sys.path[:0] = [{tests!r}]
    from building import add, find
    from datasette_mempalace.mirror import trouble as mirror_trouble
    from datasette_mempalace.errors import MempalaceError
    from datasette_mempalace.keeper import keep_in_step
    from datasette_mempalace.palace import Palace

    mirror_trouble.PAUSE_SECONDS = 0.2
    with Palace.open({path!r}) as palace:
        seen = {{}}
        keep_in_step(palace, seen)
        assert find(palace, "the red fox", candidate_strategy="vector")["engine"] == "chroma"
        print("open", flush=True)
        sys.stdin.readline()
        for number in range(12):
            answer = find(palace, "the red fox", candidate_strategy="vector")
            assert answer["results"][0]["text"] == "the red fox", answer
            if number % 3 == 0:
                add(palace, (f"written after the damage: {{number}}",))
            try:
                keep_in_step(palace, seen)
            except MempalaceError as error:
                print("told:", error, flush=True)
            time.sleep(0.25)
        answer = find(palace, "the red fox", candidate_strategy="vector")
        assert (answer["engine"], answer["vector_status"]) == ("chroma", "ok"), answer["vector_note"]
        assert len(palace.mirror.nearest("drawer", palace.embedder.embed_query("fox"), 3000)) >= {size}
        print("whole", flush=True)
"""


@pytest.mark.parametrize(
    "damage",
    [
        "folder deleted",
        "segment folders deleted",
        "level 0 garbage inside",
        "database garbage inside",
        "database empty",
    ],
)
def test_damage_while_a_server_has_it_open(path, damage):
    program = textwrap.dedent(SERVER).format(tests=os.path.dirname(__file__), path=str(path), size=SIZE)
    server = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout.readline() == "open\n", server.communicate()
    DAMAGE[damage](path)
    said, errors = server.communicate("\n", timeout=120)
    assert server.returncode == 0, errors
    assert said.endswith("whole\n")


def test_a_file_where_the_folder_should_be(path):
    in_its_place(path)
    with Palace.open(path) as palace:
        assert "cannot be used" in palace.mirror.sync().skipped_reason
        palace.settings = type(palace.settings)(exact_limit=0, matrix_mb=0)
        answer = by_meaning(palace)
        assert texts(answer)[0] == "the red fox"
        assert (answer["engine"], answer["vector_status"]) == ("exact", "mirror_unavailable")
        assert "cannot be used" in answer["vector_note"]
        with pytest.raises(MempalaceError, match="cannot be used"):
            palace.mirror.rebuild()
        mirror_of(path).unlink()
        assert palace.mirror.rebuild().upserted == SIZE


LOCKING = """
    import sqlite3, sys
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("begin exclusive")
    print("locked", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def locked(path):
    """Another process that holds Chroma's database locked until it is let go."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(LOCKING), str(mirror_of(path) / "chroma.sqlite3")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.wait()


def test_a_database_that_another_process_keeps_locked_holds_nobody_up(path, locked):
    assert locked.stdout.readline() == "locked\n"
    with Palace.open(path) as palace:
        started = time.monotonic()
        with pytest.raises(MempalaceError, match="locked"):
            palace.mirror.sync()
        answer = by_meaning(palace)
        assert time.monotonic() - started < 30
        assert texts(answer)[0] == "the red fox"
        assert answer["vector_status"] == "mirror_unavailable"
        assert "locked" in palace_status(palace)["mirror"]["reason"]
        locked.communicate("\n")
        assert not palace.mirror.sync().rebuilt, "nothing was wrong with it"
        assert by_meaning(palace)["engine"] == "chroma"


def test_a_database_locked_while_it_is_open(path, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.mirror.folder.ASK_SECONDS", 0.5)
    monkeypatch.setattr("datasette_mempalace.mirror.folder.WRITE_SECONDS", 1.0)
    with Palace.open(path) as palace:
        palace.mirror.sync()
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(LOCKING), str(mirror_of(path) / "chroma.sqlite3")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "locked\n"
        threads = threading.active_count()
        try:
            add(palace, ("written while it was locked",))
            started = time.monotonic()
            with pytest.raises(MempalaceError, match="locked"):
                palace.mirror.sync()
            for _ in range(10):
                answer = by_meaning(palace)
                assert texts(answer)[0] == "the red fox"
            assert time.monotonic() - started < 20
            assert threading.active_count() <= threads + 2, "threads pile up"
        finally:
            process.communicate("\n")
        deadline = time.monotonic() + 60
        while True:
            try:
                palace.mirror.sync()
                break
            except MempalaceError:
                assert time.monotonic() < deadline
                time.sleep(0.2)
        assert by_meaning(palace)["engine"] == "chroma"
        assert is_whole(palace)


FULL = """
    import resource, sys
    sys.path[:0] = [{tests!r}]
    from building import find
    from datasette_mempalace.errors import MempalaceError
    from datasette_mempalace.palace import Palace

    with Palace.open({path!r}) as palace:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        try:
            print(palace.mirror.rebuild().upserted)
        except MempalaceError as error:
            print("told:", error)
        answer = find(palace, "the red fox", candidate_strategy="vector")
        assert answer["results"][0]["text"] == "the red fox"
        print(answer["engine"], answer["vector_status"])
"""


def test_a_disk_that_is_full(path):
    program = textwrap.dedent(FULL).format(tests=os.path.dirname(__file__), path=str(path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("told: "), done.stdout
    assert done.stdout.endswith(" mirror_unavailable\n")
    with Palace.open(path) as palace:
        palace.mirror.sync()
        assert is_whole(palace)


READING = """
    import os, sys
    sys.path[:0] = [{tests!r}]
    import filelock  # what is imported later may lie where only root can read
    from building import find
    from datasette_mempalace import mirror, search_table
    from datasette_mempalace.palace import Palace

    with Palace.open({path!r}) as palace:
        find(palace, "fox", vector_disabled=True)
    os.setuid(65534)
    with Palace.open({path!r}) as palace:
        print(palace.mirror.sync().skipped_reason)
        answer = find(palace, "fox", vector_disabled=True)
        assert answer["results"][0]["text"] == "the red fox"
"""


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_can_only_be_read(original):
    with tempfile.TemporaryDirectory() as folder:  # where somebody else may look, unlike in pytest's own
        path = Path(folder) / "p.db"
        shutil.copytree(original, folder, dirs_exist_ok=True)
        for part in mirror_of(path).rglob("*"):
            part.chmod(0o755 if part.is_dir() else 0o444)
        mirror_of(path).chmod(0o555)
        Path(folder).chmod(0o777)
        path.chmod(0o666)
        program = textwrap.dedent(READING).format(tests=os.path.dirname(__file__), path=str(path))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "cannot be used" in done.stdout


def test_rebuilding_on_the_command_line(path):
    DAMAGE["segment folders deleted"](path)
    done = CliRunner().invoke(mempalace, ["rebuild", str(path), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["upserted"], found["rebuilt"]) == (SIZE, True)
    done = CliRunner().invoke(mempalace, ["rebuild", str(path)])
    assert f"was filled anew: {SIZE:,} vectors" in done.stdout
    with Palace.open(path) as palace:
        palace.mirror.sync()
        assert is_whole(palace)
        other = subprocess.run(
            [sys.executable, "-m", "datasette", "mempalace", "rebuild", str(path)],
            capture_output=True,
            text=True,
        )
        assert other.returncode == 1
        assert "Another process or server owns the mirror" in other.stderr
        assert "Nothing was done: stop the server" in other.stderr
        assert "will mirror" not in other.stderr
        assert is_whole(palace)


def test_nothing_is_embedded_by_a_rebuild(path, monkeypatch):
    with Palace.open(path) as palace:
        monkeypatch.setattr(palace.embedder, "embed", lambda *given: pytest.fail("embedded"))
        assert palace.mirror.rebuild().upserted == SIZE


def test_a_palace_copied_without_its_mirror_fills_one(path, tmp_path):
    copy = tmp_path / "copy.db"
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()
    with Palace.open(copy) as palace:
        assert palace.mirror.sync().upserted == SIZE
        assert is_whole(palace)
