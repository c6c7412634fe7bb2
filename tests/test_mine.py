"""Mining a folder: what is read, what is left out and why, and that a palace follows its folder."""

import os
import shutil
import socket
import stat

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datasette_mempalace.drawers import Drawer, Source, put_drawers, put_source
from datasette_mempalace.errors import BadInput, EmbedderUnavailable
from datasette_mempalace.importers import files
from datasette_mempalace.importers.files import mine
from datasette_mempalace.importers.reading import CannotRead, read_text
from datasette_mempalace.palace import Palace

LONG = "\n\n".join(
    f"Paragraph {number}. " + f"The gardener plants bed {number} with herbs. " * 8 for number in range(12)
)


@pytest.fixture
def palace(tmp_path):
    with Palace.create(tmp_path / "mined.db") as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "garden"
    root.mkdir()
    return root


def write(folder, files):
    """Make files from a mapping of relative path to text or bytes."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())


def sources(palace, root=None):
    with palace.reader() as connection:
        found = [
            row[0]
            for row in connection.execute("select distinct source_file from drawers order by source_file")
        ]
    return [os.path.relpath(name, root) for name in found] if root else found


def everything(palace):
    with palace.reader() as connection:
        return connection.execute("select * from drawers order by drawer_id").fetchall()


def test_wings_rooms_and_sources(palace, folder):
    write(
        folder,
        {
            "README": "Read me.",
            "notes.md": "# Notes\n\nText.",
            "beds/herbs/mint.rst": "Mint\n====\n\nGrows.",
            "beds/rose.txt": "Rose.",
            "src/app.py": "def water():\n    pass\n",
            "Makefile": "all:\n\techo\n",
            "odd.unknown": "text without a known ending",
        },
    )
    done = mine(palace, folder)
    with palace.reader() as connection:
        found = connection.execute(
            "select source_file, wing, room, added_by from drawers order by source_file"
        ).fetchall()
    assert {(os.path.relpath(source, folder), wing, room) for source, wing, room, _ in found} == {
        ("README", "garden", "general"),
        ("notes.md", "garden", "general"),
        ("Makefile", "garden", "general"),
        ("odd.unknown", "garden", "general"),
        ("beds/herbs/mint.rst", "garden", "beds"),
        ("beds/rose.txt", "garden", "beds"),
        ("src/app.py", "garden", "src"),
    }
    assert {row[3] for row in found} == {"mine"}
    assert all(os.path.isabs(row[0]) for row in found)
    assert (done.files, done.report.added, done.embedded) == (7, 7, done.embedded)
    assert done.embedded >= 7


def test_wing_and_room_can_be_said(palace, folder):
    write(folder, {"a/x.md": "one", "y.md": "two"})
    mine(palace, folder, wing="日本語", room="O'Brien")
    with palace.reader() as connection:
        assert connection.execute("select distinct wing, room from drawers").fetchall() == [
            ("日本語", "O'Brien")
        ]
    mine(palace, folder)
    with palace.reader() as connection:
        rows = connection.execute("select wing, room from drawers order by room").fetchall()
    assert rows == [("garden", "a"), ("garden", "general")]


def test_what_is_left_out_is_counted_with_its_reason(palace, folder, tmp_path, monkeypatch):
    write(
        folder,
        {
            "good.md": "good",
            "picture.png": b"\x89PNG\r\n\x1a\n\0\0\0",
            "paper.pdf": b"%PDF-1.4\n1 0 obj\n",
            "latin.txt": "caf\xe9".encode("latin-1"),
            "empty.md": "",
            "blank.md": " \n\t\n",
            "huge.txt": "x" * 3000,
            ".env": "PASSWORD=hunter2",
            ".env.example": "PASSWORD=",
            "id_rsa": "-----BEGIN",
            "package-lock.json": "{}",
            "node_modules/left/index.js": "module.exports = 1",
            ".venv/pyvenv.cfg": "home = /usr",
            ".venv/lib/x.py": "x = 1",
            "cache/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
            "cache/x.txt": "cached",
            ".git/config": "[core]",
            "worktree/.git": "gitdir: elsewhere",
        },
    )
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (tmp_path / "outside.md").write_text("outside")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(folder)  # the path of a socket must be short
        listener.bind("socket")
        done = mine(palace, folder, max_bytes=2000)
    assert sources(palace, folder) == [".env.example", "good.md"]
    assert dict(done.skipped) == {
        "binary": 2,
        "not UTF-8": 1,
        "empty": 2,
        "larger than --max-bytes": 1,
        "may hold secrets": 2,
        "made by a tool": 6,
        "symbolic link": 1,
        "not a regular file": 2,
    }
    assert done.examples["may hold secrets"] == [".env", "id_rsa"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_text_with_a_mark_is_read_and_newlines_stay(palace, folder, encoding):
    text = "eins\r\nzwei\rdrei\nvier \u2028 fünf 日本 😀\n"
    write(folder, {"a.txt": text.encode(encoding)})
    mine(palace, folder)
    with palace.reader() as connection:
        assert connection.execute("select text from drawers").fetchall() == [(text,)]


def test_gitignore(palace, folder):
    write(
        folder,
        {
            ".gitignore": "*.log\nbuild/\n/top.md\n!keep.log\n[broken\n!\n# comment\nonly/*\n!only/this.md\n",
            "a.log": "x",
            "keep.log": "x",
            "build/out.txt": "x",
            "top.md": "x",
            "sub/top.md": "x",
            "sub/.gitignore": "!a.log\n*.tmp\nmore/\n",
            "sub/a.log": "x",
            "sub/b.tmp": "x",
            "sub/more/c.md": "x",
            "c.tmp": "x",
            "only/this.md": "x",
            "only/that.md": "x",
        },
    )
    done = mine(palace, folder)
    assert sources(palace, folder) == sorted(
        [".gitignore", "keep.log", "sub/.gitignore", "sub/top.md", "sub/a.log", "c.tmp", "only/this.md"]
    )
    assert done.skipped["ignored by .gitignore"] == 6


def test_gitignore_of_the_repository_around(palace, folder):
    write(
        folder,
        {
            ".git/HEAD": "x",
            ".gitignore": "*.log\nsecret/\n",
            "docs/a.md": "x",
            "docs/b.log": "x",
            "secret/c.md": "x",
        },
    )
    mine(palace, folder / "docs")
    assert sources(palace, folder) == ["docs/a.md"]
    mine(palace, folder / "secret")  # ignored as a whole, but asked for by name
    assert sources(palace, folder) == ["docs/a.md", "secret/c.md"]


def test_links_are_not_followed_and_loops_end(palace, folder, tmp_path):
    outside = tmp_path / "elsewhere"
    write(outside, {"x.md": "outside"})
    write(folder, {"a/b.md": "inside"})
    (folder / "a" / "loop").symlink_to(folder)
    (folder / "out").symlink_to(outside)
    (folder / "inner.md").symlink_to(folder / "a" / "b.md")
    done = mine(palace, folder)
    assert sources(palace, folder) == ["a/b.md"]
    assert done.skipped == {"symbolic link": 3}


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_put_in_place_between_looking_and_reading_is_not_followed(
    palace, folder, tmp_path, monkeypatch, what
):
    outside = tmp_path / "elsewhere"
    write(outside, {"x.md": "outside"})
    write(folder, {"a/x.md": "inside", "b.md": "inside too"})
    look_through = files._look_through

    def swapped(*arguments):
        found = look_through(*arguments)
        (folder / "a").rename(folder / "moved")
        if what == "folder":
            (folder / "a").symlink_to(outside)
        else:
            (folder / "a").mkdir()
            (folder / "a" / "x.md").symlink_to(outside / "x.md")
        return found

    monkeypatch.setattr(files, "_look_through", swapped)
    done = mine(palace, folder)
    assert sources(palace, folder) == ["b.md"]
    assert done.skipped == {"unreadable": 1}


def test_the_folder_may_itself_be_a_link(palace, folder, tmp_path):
    write(folder, {"a.md": "x"})
    (tmp_path / "current").symlink_to(folder)
    mine(palace, tmp_path / "current")
    assert sources(palace) == [str(tmp_path / "current" / "a.md")]


def test_a_palace_in_the_folder_leaves_itself_out(tmp_path):
    write(tmp_path, {"a.md": "text"})
    with Palace.create(tmp_path / "palace.db") as palace:
        mine(palace, tmp_path)
        palace.mirror.sync()
        done = mine(palace, tmp_path)
        assert sources(palace, tmp_path) == ["a.md"]
        assert set(done.skipped) == {"part of the palace"}


def test_mining_again_changes_only_what_changed(palace, folder):
    write(folder, {"same.md": LONG, "changed.md": LONG.replace("herbs", "roses"), "gone/x.md": "soon gone"})
    first = mine(palace, folder)
    before = {row[1]: row for row in everything(palace)}
    os.utime(folder / "same.md", (1, 1))
    nothing = mine(palace, folder)
    assert (nothing.report.added, nothing.report.updated, nothing.report.removed, nothing.embedded) == (
        0,
        0,
        0,
        0,
    )
    assert nothing.report.unchanged == first.report.added
    assert {row[1]: row for row in everything(palace)} == before

    text = (folder / "changed.md").read_text()
    (folder / "changed.md").write_text(text + "\n\nA new last paragraph.")
    shutil.rmtree(folder / "gone")
    third = mine(palace, folder)
    assert third.gone == 1
    assert sources(palace, folder) == ["changed.md", "same.md"]
    assert third.report.unchanged >= first.report.added - 3
    assert 0 < third.embedded <= 3
    after = {row[1]: row for row in everything(palace)}
    assert all(after[key] == row for key, row in before.items() if str(row[5]).endswith("same.md"))
    with palace.reader() as connection:
        assert (
            connection.execute("select count(*) from closets where source_file like '%gone%'").fetchone()[0]
            == 0
        )


def test_a_renamed_file_is_not_embedded_again(palace, folder):
    write(folder, {"old.md": LONG})
    first = mine(palace, folder)
    (folder / "old.md").rename(folder / "new.md")
    again = mine(palace, folder)
    assert sources(palace, folder) == ["new.md"]
    assert first.report.added == again.report.added == again.report.removed
    assert again.embedded == 0
    with palace.reader() as connection:
        pending = connection.execute(
            "select count(*) from drawers where id not in (select id from drawer_vectors)"
        ).fetchone()[0]
    assert pending == 0


def test_only_what_was_mined_here_is_removed(palace, folder, tmp_path):
    other = tmp_path / "garden-2"
    write(folder, {"a.md": "one", "sub/b.md": "two"})
    write(other, {"c.md": "three"})
    mine(palace, folder)
    mine(palace, other)
    put_drawers(palace, [Drawer("by hand", source_file=str(folder / "gone.md"), added_by="import")])
    put_source(palace, Source(str(folder / "mail.md"), "a mail", added_by="import"))
    shutil.rmtree(other)
    other.mkdir()
    (folder / "a.md").unlink()
    mine(palace, folder / "sub")
    assert len(sources(palace)) == 5
    mine(palace, folder)
    assert sources(palace, tmp_path) == [
        "garden-2/c.md",
        "garden/gone.md",
        "garden/mail.md",
        "garden/sub/b.md",
    ]
    mine(palace, other)
    assert sources(palace, tmp_path) == ["garden/gone.md", "garden/mail.md", "garden/sub/b.md"]


def test_a_file_that_cannot_be_read_this_time_is_not_gone(palace, folder, monkeypatch):
    write(folder, {"a.md": "one", "b.md": "two", "c.md": "three", "d.md": "four", "deep/er/e.md": "five"})
    mine(palace, folder)
    write(folder, {"b.md": b"caf\xe9 \xff", "c.md": "c" * 9000, "d.md": b"\0\1\2"})

    def no_a(path, max_bytes, within=None):
        if path.endswith("a.md"):
            raise CannotRead("unreadable", lasting=False)
        return read_text(path, max_bytes, within)

    real = os.scandir

    def no_deep(path):
        if str(path).endswith("deep"):
            raise PermissionError(path)
        return real(path)

    monkeypatch.setattr(files, "read_text", no_a)
    monkeypatch.setattr(os, "scandir", no_deep)
    done = mine(palace, folder, max_bytes=5000)
    assert sources(palace, folder) == ["a.md", "b.md", "c.md", "d.md", "deep/er/e.md"]
    assert (done.gone, done.files, sum(done.skipped.values())) == (0, 0, 5)


def test_what_became_empty_or_ignored_is_gone(palace, folder):
    write(folder, {"a.md": "one", "b.md": "two", "c.md": "three"})
    mine(palace, folder)
    write(folder, {"a.md": "", ".gitignore": "b.md"})
    mine(palace, folder)
    assert sources(palace, folder) == [".gitignore", "c.md"]


def test_without_a_model_the_texts_are_stored_and_the_rest_goes_on(palace, folder, monkeypatch):
    write(folder, {"a.md": "one", "b.md": "two"})
    mine(palace, folder)
    (folder / "b.md").unlink()
    write(folder, {"c.md": "three"})

    def missing(*_):
        raise EmbedderUnavailable("there is no model")

    monkeypatch.setattr(files, "embed_pending", missing)
    done = mine(palace, folder)
    assert sources(palace, folder) == ["a.md", "c.md"]
    assert "no model" in done.problem.message


def test_a_file_can_be_put_together_from_its_drawers(palace, folder):
    text = "# Heading\r\n\r\n" + LONG + "\n\tdef code():\n" + "x" * 3000 + " 日本語 " * 300 + "end"
    write(folder, {"a.md": text})
    mine(palace, folder)
    with palace.reader() as connection:
        query = "select text, json_extract(metadata, '$.char_start') from drawers order by chunk_index"
        joined = ""
        for piece, start in connection.execute(query):
            joined = joined[:start] + piece
    assert joined == text


def test_a_folder_that_is_none(palace, folder, tmp_path):
    write(folder, {"a.md": "x"})
    for wrong, words in ((tmp_path / "nowhere", "does not exist"), (folder / "a.md", "is a file")):
        with pytest.raises(BadInput, match=words):
            mine(palace, wrong)


def test_a_file_name_that_is_no_text(palace, folder):
    try:
        (folder / os.fsdecode(b"caf\xe9.md")).write_text("x")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    write(folder, {"日本 😀.md": "x"})
    done = mine(palace, folder)
    assert sources(palace, folder) == ["日本 😀.md"]
    assert done.skipped == {"its name is not valid text": 1}


def test_a_file_without_permission(folder):
    write(folder, {"a.md": "x"})
    (folder / "a.md").chmod(0)
    if os.access(folder / "a.md", os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(CannotRead) as caught:
        read_text(str(folder / "a.md"))
    assert not caught.value.lasting
    (folder / "a.md").chmod(stat.S_IRUSR)


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300),
    st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]),
)
def test_any_text_is_read_as_it_is(tmp_path_factory, text, encoding):
    assume(not text.startswith("\0"))  # UTF-16's mark and a NUL are UTF-32's mark
    file = tmp_path_factory.getbasetemp() / "any.txt"
    file.write_bytes(text.encode(encoding))
    try:
        assert read_text(str(file)) == text
    except CannotRead as error:
        assert error.reason == "empty"
        assert not text.strip()


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_a_reason(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "any.bin"
    file.write_bytes(data)
    try:
        text = read_text(str(file))
    except CannotRead:
        return
    assert text.strip()
