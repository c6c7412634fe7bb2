"""The demo palace: the same texts every time, no text twice, and no half-built palace that looks finished."""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli

from datasette_mempalace import cli as commands
from datasette_mempalace.chunking import chunk
from datasette_mempalace.importers import python_docs
from datasette_mempalace.importers.python_docs import C_MODULES, LANGUAGE, LIBRARY, OTHER_ROOM, sources
from datasette_mempalace.palace import Palace
from datasette_mempalace.schema import get_setting

commands.register(datasette_cli)
DIGEST = (
    "import hashlib; from datasette_mempalace.importers.python_docs import sources;"
    "print(hashlib.sha256(repr(sources()).encode()).hexdigest())"
)


@pytest.fixture(scope="module")
def every():
    return sources()


@pytest.fixture
def few(monkeypatch, every):
    """A demo palace of a few sources."""
    chosen = [
        source for source in every if source.source_file in ("json/decoder.py", "pydoc_data/topics/with.rst")
    ]
    monkeypatch.setattr(python_docs, "sources", lambda: chosen)
    return chosen


def run(*arguments):
    return CliRunner().invoke(datasette_cli, ["mempalace", *map(str, arguments)])


def test_size_and_places(every):
    drawers = Counter()
    for source in every:
        drawers[source.wing] += len(chunk(source.text))
    assert 1500 <= sum(drawers.values()) <= 2400
    assert drawers[LANGUAGE] > 400
    assert drawers[LIBRARY] > 900
    rooms = {(source.wing, source.room) for source in every}
    assert {
        (LANGUAGE, "statements"),
        (LANGUAGE, "operators"),
        (LIBRARY, "json"),
        (LIBRARY, "asyncio"),
    } <= rooms
    assert (LANGUAGE, OTHER_ROOM) not in rooms
    assert all("." not in room for _, room in rooms)


def test_sources_are_named_after_real_files(every):
    names = {source.source_file for source in every}
    assert len(names) == len(every)
    assert {
        "pydoc_data/topics/with.rst",
        "json/decoder.py",
        "asyncio/tasks.py",
        "datetime.py",
        "builtins",
    } <= names
    assert all(name.endswith((".py", ".rst")) or name in C_MODULES for name in names)


def test_the_licence_is_noted(every):
    assert all(source.metadata["license"] == "PSF-2.0" for source in every)
    assert all(source.added_by == "demo" for source in every)


def test_no_docstring_or_section_twice(every):
    language, library = Counter(), Counter()
    for source in every:
        if source.wing == LANGUAGE:
            language.update(body.strip() for _, body in python_docs._sections(source.text) if body.strip())
        else:
            library.update(part.strip() for part in re.split(r"^#+ .*$", source.text, flags=re.MULTILINE)[1:])
    assert max(language.values()) == 1
    assert max(library.values()) == 1
    # json.dump and json.dumps explain their arguments in the same words, so that one chunk may be met again.
    chunks = Counter(piece.text for source in every for piece in chunk(source.text))
    assert sum(count - 1 for count in chunks.values()) <= 3


def test_headings_name_what_is_documented(every):
    decoder = next(source for source in every if source.source_file == "json/decoder.py")
    assert decoder.text.startswith(
        "# json.decoder\n\nImplementation of JSONDecoder\n\n## json.decoder.JSONDecode"
    )
    assert "### json.decoder.JSONDecoder.raw_decode(self, s, idx=0)\n\nDecode a JSON document" in decoder.text


def test_the_same_texts_every_time():
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=os.path.dirname(os.path.dirname(__file__)),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_small_demo(tmp_path, few):
    path = tmp_path / "demo.db"
    result = run("demo", path)
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(tmp_path)) == ["demo.db", "demo.db.chroma"]
    with Palace.open(path) as palace:
        with palace.reader() as connection:
            indexes = connection.execute(
                "select chunk_index from drawers where room = 'json' order by 1"
            ).fetchall()
            assert [row[0] for row in indexes] == list(range(len(indexes)))
            assert connection.execute("select count(*) from closets").fetchone()[0] == 2
            missing = "select count(*) from drawers where id not in (select id from drawer_vectors)"
            assert connection.execute(missing).fetchone()[0] == 0
            assert get_setting(connection, "demo").startswith("Python 3.")
        assert not palace.mirror.sync().rebuilt  # what was moved is a mirror still
    found = run("search", path, "decode a JSON document", "--n-results", "1")
    assert "python-library / json" in found.output
    again = run("demo", path)
    assert (again.exit_code, "is there already" in again.output) == (0, True)


def test_a_log_tells_now_and_then_how_far_it_is(tmp_path, few, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.cli.working.LINE_SECONDS", 0)
    said = run("demo", tmp_path / "demo.db").stderr.splitlines()
    assert {"Reading: 100%", "Embedding: 100%", "Mirroring: 100%"} <= set(said)
    assert all(re.fullmatch(r"(Reading|Embedding|Mirroring): \d+%", line) for line in said)


def test_another_file_is_left_alone(tmp_path):
    Palace.create(tmp_path / "mine.db").close()
    (tmp_path / "text.db").write_text("not a database " * 100)
    for name in ("mine.db", "text.db"):
        before = (tmp_path / name).stat().st_size
        result = run("demo", tmp_path / name)
        assert result.exit_code == 2
        assert "Traceback" not in result.output
        assert (tmp_path / name).stat().st_size == before


def test_a_failed_build_leaves_nothing(tmp_path, few, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("datasette_mempalace.vectors.embed_pending", stop)
    assert run("demo", tmp_path / "demo.db").exit_code == 1
    assert os.listdir(tmp_path) == []


def test_a_killed_build_does_not_look_finished(tmp_path, few):
    path = tmp_path / "demo.db"
    program = (
        "from datasette.cli import cli; from datasette_mempalace import cli as c; c.register(cli);"
        f"cli(['mempalace', 'demo', {str(path)!r}])"
    )
    build = subprocess.Popen([sys.executable, "-c", program], cwd=os.path.dirname(os.path.dirname(__file__)))
    deadline = time.monotonic() + 30
    while not (tmp_path / ".demo.db.building" / "demo.db").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    build.send_signal(signal.SIGKILL)
    build.wait()
    assert os.listdir(tmp_path) == [".demo.db.building"]
    assert run("demo", path).exit_code == 0
    assert sorted(os.listdir(tmp_path)) == ["demo.db", "demo.db.chroma"]


def test_drawers_are_titled_by_their_headings(every):
    """A docstring's section is found under its own name, not under what its prose happens to begin with."""
    titles = {piece.heading for source in every for piece in chunk(source.text, headings=source.headings)}
    assert {"contextlib.ExitStack", 'The "try" statement'} <= titles
    assert not {
        title for title in titles if title and title.startswith(("function ", "class ", "def ", "async def "))
    }
    untitled = [source.source_file for source in every if not source.headings]
    assert not untitled
