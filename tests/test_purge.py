"""After a purge no file of the palace holds a text that was deleted."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli
from datasette.utils.sqlite import sqlite3

from building import column, find, make_palace, texts
from datasette_mempalace import cli as commands
from datasette_mempalace.doctor import examine, is_well
from datasette_mempalace.drawers import Drawer, Source, delete_drawers, put_drawers, put_source
from datasette_mempalace.palace import Palace
from datasette_mempalace.scope import Scope
from datasette_mempalace.vectors import embed_pending

commands.register(datasette_cli)

SECRET = "xylophonequartz"
NOTES = f"""# The {SECRET} is hidden

Nobody may know where the {SECRET} lies, under the third stone of the garden wall.

# The garden

Roses grow along the wall, and lavender beside the path to the gate. {"They need water in summer. " * 30}
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "palace.db"
    with make_palace(path, [("the red fox", "w"), (f"a letter about the {SECRET}", "letters")]) as palace:
        # Equal texts share a vector, so that they fill pages without being embedded.
        put_drawers(palace, [Drawer("filler " * 90, drawer_id=f"filler {number}") for number in range(300)])
        put_source(palace, Source("/notes/garden.md", NOTES, wing="notes"))
        palace.mirror.sync()
        with palace.writer() as connection:
            connection.execute(
                "update drawers set metadata = ? where wing = 'letters'", [json.dumps({"x": SECRET})]
            )
        embed_pending(palace)
        palace.mirror.sync()
    return path


def files_with(path, text):
    """Files of a palace, of its mirror too, that hold a text, or its stem in the full-text index."""
    found = []
    for file in [*path.parent.glob(path.name + "*"), *path.parent.rglob("*/*")]:
        if file.is_file() and (text.encode() in file.read_bytes() or text[:12].encode() in file.read_bytes()):
            found.append(file.name)
    return sorted(set(found))


def delete_secret(path):
    with Palace.open(path) as palace:
        delete_drawers(palace, Scope(("letters",), (), ()))
        ids = tuple(column(palace, "select id from drawers where text like ?", f"%{SECRET}%"))
        delete_drawers(palace, Scope((), (), (), ids=ids))
        assert ids
        assert not column(palace, "select id from drawers where text like ?", f"%{SECRET}%")


def run(*arguments):
    return CliRunner().invoke(datasette_cli, ["mempalace", *map(str, arguments)])


def test_deleted_texts_are_in_no_file_afterwards(path):
    assert "palace.db" in files_with(path, SECRET)
    delete_secret(path)
    assert "palace.db" in files_with(path, SECRET), "deleting alone does not do it"
    done = run("purge", path)
    assert done.exit_code == 0, done.output
    assert files_with(path, SECRET) == []
    with Palace.open(path) as palace:
        assert is_well(examine(palace))
        assert texts(find(palace, "fox", n_results=1)) == ["the red fox"]
        assert "garden" in " ".join(column(palace, "select text from closets")).casefold()


def test_a_palace_in_use_is_told(path, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.connections.BUSY_SECONDS", 1)
    delete_secret(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("begin")
        other.execute("select count(*) from drawers").fetchone()
        done = run("purge", path)
        assert done.exit_code == 1
        assert "Another process has the palace open" in done.output
    assert run("purge", path).exit_code == 0
    assert files_with(path, SECRET) == []


def test_beside_a_server_nothing_is_purged(path):
    delete_secret(path)
    with Palace.open(path) as serving:
        serving.mirror.sync()
        content = column(serving, "select count(*) from spare_vectors"), path.stat().st_size
        done = run("purge", path)
        assert done.exit_code == 1
        assert "Nothing was done: stop the server or process that owns it, and run this again." in done.output
        assert "will mirror" not in done.output
        assert (column(serving, "select count(*) from spare_vectors"), path.stat().st_size) == content
    assert run("purge", path).exit_code == 0
    assert files_with(path, SECRET) == []


def test_it_says_what_it_did_and_does_nothing_twice(path):
    delete_secret(path)
    first = run("purge", path)
    assert "1 closet" in first.output
    assert "smaller" in first.output
    size = path.stat().st_size
    assert run("purge", path).exit_code == 0
    assert path.stat().st_size == size


def test_a_palace_that_cannot_be_written_is_not_purged(path, tmp_path):
    assert run("purge", tmp_path / "nowhere.db").exit_code == 2
    shutil.rmtree(str(path) + ".chroma")
    assert Path(path).exists()
    assert run("purge", path).exit_code == 0
