"""Damaged, half-written and unknown palaces: the text comes in, the readable vectors come in, the rest is named."""

import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from datasette_mempalace.errors import BadInput, MempalaceError
from datasette_mempalace.importers.mempalace import import_palace, snapshot
from datasette_mempalace.importers.mempalace.chroma_sql import as_number
from datasette_mempalace.importers.mempalace.hnsw_files import HnswFiles, Unreadable
from datasette_mempalace.importers.mempalace.snapshot import PalaceBusy, copy_database
from datasette_mempalace.palace import Palace
from datasette_mempalace.vectors import embed_pending
from foreign_palaces import IMPORTED, ask, copy_palace, edit, index_folder, state


@pytest.fixture
def synced(foreign, tmp_path):
    """A palace most of whose vectors lie in index files alone."""
    return copy_palace(foreign, "synced", tmp_path / "synced")


@pytest.fixture
def database(tmp_path):
    return tmp_path / "mine.db"


def in_queue(palace):
    """The ids whose last vector the queue still has; an addition may be one that Chroma ignored."""
    rows = ask(palace, "select distinct id from embeddings_queue where vector is not null and operation <> 0")
    return {key for (key,) in rows}


def check(done, palace, database, says):
    """Every text is here, what the queue holds has a vector, and what has none is counted, named and can be embedded."""
    assert done.drawers.added == IMPORTED
    with Palace.open(database) as opened:
        with opened.reader() as connection:
            rows = connection.execute(
                "select drawer_id, vector from drawers left join drawer_vectors using (id)"
            ).fetchall()
        missing = {key for key, vector in rows if vector is None}
        assert len(missing) == done.drawers.without_vector > 0
        assert not missing & in_queue(palace)
        report = "\n".join(done.lines("mine.db"))
        assert says in report
        assert "datasette mempalace sync mine.db" in report
        assert embed_pending(opened) > 0
    return missing


def overwrite(file, start, content):
    with file.open("r+b") as opened:
        opened.seek(start)
        opened.write(content)


def test_case_25_a_missing_segment_folder(synced, database):
    shutil.rmtree(index_folder(synced))
    check(import_palace(database, synced), synced, database, "the index's folder is missing")


@pytest.mark.parametrize("name", ["index_metadata.pickle", "data_level0.bin", "header.bin"])
def test_case_25_a_missing_file(synced, database, name):
    (index_folder(synced) / name).unlink()
    check(import_palace(database, synced), synced, database, f"{name} of the index is missing")


def test_case_25_a_truncated_file_gives_the_vectors_that_are_whole(synced, database):
    file = index_folder(synced) / "data_level0.bin"
    os.truncate(file, file.stat().st_size // 2)
    missing = check(import_palace(database, synced), synced, database, "data_level0.bin ends after")
    assert 5 < len(missing) < 40


@pytest.mark.parametrize("content", ["zeros", "noise", "nothing"])
def test_case_25_garbage_instead_of_vectors(synced, database, content):
    file = index_folder(synced) / "data_level0.bin"
    size = file.stat().st_size
    noise = np.random.default_rng(0).bytes(size)
    file.write_bytes({"zeros": bytes(size), "noise": noise, "nothing": b""}[content])
    check(import_palace(database, synced), synced, database, "Without a vector")


def test_a_single_broken_vector_is_left_out(synced, database):
    file = index_folder(synced) / "data_level0.bin"
    size = int.from_bytes((file.parent / "header.bin").read_bytes()[28:36], "little")
    overwrite(file, 20 * size + 400, b"\xff" * 8)
    says = "neither the index nor the queue has a sound one"
    assert len(check(import_palace(database, synced), synced, database, says)) <= 2


class Evil:
    def __reduce__(self):
        return os.system, ("touch was-run",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        b"\x80\x03}(",
        pickle.dumps({"label_to_id": np.float64(1)}),
        pickle.dumps(Evil()),
        pickle.dumps([1]),
    ],
    ids=["empty", "text", "truncated", "other class", "command", "list"],
)
def test_a_pickle_that_cannot_be_trusted_is_not_run(synced, tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (index_folder(synced) / "index_metadata.pickle").write_bytes(content)
    with pytest.raises(Unreadable, match=r"index_metadata\.pickle"):
        HnswFiles(index_folder(synced), unit=True)
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("header", ["known", "of another version"])
def test_chroma_is_never_given_a_pickle_that_cannot_be_trusted(
    synced, database, tmp_path, monkeypatch, header
):
    monkeypatch.chdir(tmp_path)
    (index_folder(synced) / "index_metadata.pickle").write_bytes(pickle.dumps(Evil()))
    if header != "known":
        overwrite(index_folder(synced) / "header.bin", 0, b"\x63")
    done = import_palace(database, synced)
    check(done, synced, database, "Chroma was not asked")
    assert ("it names posix.system" in done.vector_problem) == (header == "known")
    assert not (tmp_path / "was-run").exists()


def test_chroma_in_a_child_is_asked_where_the_files_cannot_be_read_here(synced, database):
    overwrite(index_folder(synced) / "header.bin", 0, b"\x63")
    done = import_palace(database, synced)
    check(done, synced, database, "header.bin is of version 99")
    assert "Chroma, in a process of its own," in done.vector_problem


def test_files_of_an_unknown_form_are_read_through_chroma_in_a_child(synced, database, foreign):
    before = state(synced)
    expected = json.loads((foreign / "expected.json").read_text())["synced"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datasette_mempalace.importers.mempalace.hnsw_files._VERSION", 99)
        done = import_palace(database, synced)
    assert done.drawers.without_vector == 0
    assert state(synced) == before
    with Palace.open(database) as palace, palace.reader() as connection:
        rows = connection.execute(
            "select drawer_id, vector from drawers join drawer_vectors using (id)"
        ).fetchall()
    for key, blob in rows:
        exact = np.array(expected[key]["vector"])
        assert np.frombuffer(blob, dtype="<f4") == pytest.approx(exact / np.linalg.norm(exact), abs=1e-6)


def test_case_23_sequence_numbers_as_blobs(synced, database):
    edit(
        synced,
        "update embeddings set seq_id = cast(x'11113432' as blob) where id % 2",
        "update embeddings set seq_id = cast(x'000000000000002a' as blob) where not id % 2",
    )
    edit(synced, "update max_seq_id set seq_id = cast(x'00000000000000ff' as blob)")
    done = import_palace(database, synced)
    assert (done.drawers.added, done.drawers.without_vector) == (IMPORTED, 0)


def test_case_23_both_forms_of_a_sequence_number():
    assert as_number(b"\x00\x00\x00\x00\x00\x00\x00\x01") == 1
    assert as_number(b"\x11\x11" + b"192997") == 192_997
    assert (as_number(7), as_number(None)) == (7, 0)


@pytest.mark.parametrize("marked", ["behind", "far ahead"])
def test_rows_that_only_the_queue_has_come_in_too(foreign, database, tmp_path, marked):
    """As a Chroma that was stopped leaves them, or one whose position was spoiled (case 23's repair did that)."""
    palace = copy_palace(foreign, "queued", tmp_path / "queued")
    segment = "(select metadata_of_drawers from (select s.id as metadata_of_drawers from segments s join collections c"
    segment += " on c.id = s.collection where s.scope = 'METADATA' and c.name = 'mempalace_drawers'))"
    lost = f"(select id from embeddings where segment_id = {segment} and seq_id between 40 and 66)"
    edit(
        palace,
        f"delete from embedding_metadata where id in {lost}",
        f"delete from embeddings where id in {lost}",
        f"update embeddings set seq_id = 5 where segment_id = {segment} and seq_id > 39",
        f"update max_seq_id set seq_id = {39 if marked == 'behind' else 10**15} where segment_id = {segment}",
    )
    assert len(ask(palace, f"select 1 from embeddings where segment_id = {segment}")) < 40
    done = import_palace(database, palace)
    assert (done.drawers.added, done.drawers.without_vector) == (IMPORTED, 0)
    assert done.waiting
    assert any("waited in Chroma's queue" in line for line in done.lines("mine.db"))
    with Palace.open(database) as palace, palace.reader() as connection:
        rows = dict(connection.execute("select drawer_id, text from drawers where text <> ''").fetchall())
    assert rows["drawer_008"] == "Harbour seals."
    assert rows["drawer_004"] == "The keeper sleeps."


def test_case_24_an_older_schema_without_newer_columns(synced, database):
    edit(
        synced,
        "drop table embedding_metadata_array",
        "alter table collections drop column schema_str",
        "alter table collections drop column config_json_str",
        "alter table embedding_metadata drop column bool_value",
        "delete from migrations",
    )
    done = import_palace(database, synced)
    assert (done.drawers.added, done.drawers.without_vector) == (IMPORTED, 0)


def test_a_palace_without_a_queue_or_metric(synced, database):
    edit(synced, "drop table embeddings_queue", "drop table collection_metadata", "drop table max_seq_id")
    done = import_palace(database, synced)
    assert done.drawers.added == IMPORTED
    assert done.found.drawers.metric == "cosine", "the schema says it, too"


def test_case_24_an_unknown_schema_says_what_it_saw(synced, database):
    edit(
        synced, "alter table embeddings rename column segment_id to segment", "drop table embedding_metadata"
    )
    with pytest.raises(BadInput, match="no segment_id in embeddings; no table embedding_metadata") as caught:
        import_palace(database, synced)
    assert "collections" in caught.value.message
    assert "metadb 6" in caught.value.message
    assert not database.exists()


@pytest.mark.parametrize("content", [b"", b"no database" * 100])
def test_a_file_that_is_no_database(synced, database, content):
    (synced / "chroma.sqlite3").write_bytes(content)
    with pytest.raises(BadInput, match=r"chroma\.sqlite3"):
        import_palace(database, synced)


def test_text_that_is_no_utf8_comes_in(synced, database):
    edit(
        synced,
        "update embedding_metadata set string_value = cast(x'ff41' as text)"
        " where key = 'chroma:document' and id = (select id from embeddings where embedding_id = 'no_metadata')",
    )
    import_palace(database, synced)
    with Palace.open(database) as palace, palace.reader() as connection:
        assert connection.execute("select text from drawers where drawer_id = 'no_metadata'").fetchone() == (
            "\ufffdA",
        )


def test_rows_of_no_collection_are_told_of(synced, database):
    edit(synced, "insert into embeddings(segment_id, embedding_id, seq_id) values ('nobody', 'lost', 1)")
    assert any(
        "1 rows belong to no collection" in note for note in import_palace(database, synced).found.notes
    )


# A palace in use

WRITER = """
import sqlite3, sys, os
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(f"pragma journal_mode = {sys.argv[2]}")
connection.execute("create table if not exists t(a)")
connection.execute("pragma cache_size = 1")
connection.execute("pragma wal_autocheckpoint = 0")
connection.executemany("insert into t values (?)", [("x" * 500,) for _ in range(100)])
if "uncommitted" in sys.argv:
    connection.execute("begin")
    connection.execute("update t set a = 'y' || a")
    connection.execute("update t set a = 'y' || a")
if "stay" in sys.argv:
    print("ready", flush=True)
    sys.stdin.readline()
if "close" in sys.argv:
    connection.close()
os._exit(0)
"""


@pytest.mark.parametrize("live", [False, True], ids=["", "open"])
@pytest.mark.parametrize("how", ["", "uncommitted", "close"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_case_28_a_database_is_copied_without_a_trace(tmp_path, monkeypatch, mode, how, live):
    monkeypatch.setattr(snapshot, "LOCK_SECONDS", 0.05)
    monkeypatch.setattr(snapshot, "PAUSE", 0.01)
    source = tmp_path / "foreign"
    source.mkdir()
    words = [sys.executable, "-c", WRITER, str(source / "a.db"), mode, how, "stay" if live else ""]
    writer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if live:
        assert writer.stdout.readline() == "ready\n"
    else:
        writer.wait()
    before = state(source)
    try:
        if (mode, how, live) == ("delete", "uncommitted", True):  # a writer that keeps every reader out
            with pytest.raises(PalaceBusy):
                copy_database(source / "a.db", tmp_path / "copy.db")
            assert state(source) == before
            return
        copied = sqlite3.connect(copy_database(source / "a.db", tmp_path / "copy.db"))
        assert copied.execute("select count(*), min(a) from t").fetchone() == (100, "x" * 500)
        copied.close()
        assert state(source) == before
    finally:
        writer.communicate("\n")


def test_a_locked_database_is_refused_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "LOCK_SECONDS", 0.05)
    monkeypatch.setattr(snapshot, "PAUSE", 0.01)
    source = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    source.execute("create table t(a)")
    source.execute("begin exclusive")
    with pytest.raises(PalaceBusy, match="is being written to"):
        copy_database(tmp_path / "a.db", tmp_path / "copy.db")
    source.close()


def test_index_files_that_change_all_the_time_are_refused_and_once_is_tried_again(
    synced, database, monkeypatch
):
    monkeypatch.setattr(snapshot, "PAUSE", 0.01)
    file, copy = index_folder(synced) / "data_level0.bin", snapshot._copy_folder
    changes = []

    def changing(source, target):
        copy(source, target)
        if len(changes) < limit:
            changes.append(os.utime(file, (len(changes), len(changes))))

    monkeypatch.setattr(snapshot, "_copy_folder", changing)
    limit = 100
    with pytest.raises(PalaceBusy, match="nothing was imported"):
        import_palace(database, synced)
    assert not database.exists()
    changes.clear()
    limit = 1
    assert import_palace(database, synced).drawers.without_vector == 0


def test_a_disk_that_is_full_is_said_beforehand(synced, database, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10))
    with pytest.raises(MempalaceError, match="make room there"):
        import_palace(database, synced)


LIVE = """
import sys, time, chromadb
from chromadb.config import Settings
client = chromadb.PersistentClient(sys.argv[1], settings=Settings(anonymized_telemetry=False))
metadata = {"hnsw:space": "cosine", "hnsw:batch_size": 10, "hnsw:sync_threshold": 20}
drawers = client.create_collection("mempalace_drawers", metadata=metadata, embedding_function=None)
for start in range(0, 100_000, 7):
    numbers = range(start, start + 7)
    drawers.add(
        ids=[f"d{n}" for n in numbers], documents=[f"text {n}" for n in numbers], metadatas=[{"n": n} for n in numbers],
        embeddings=[[n, 1.0] for n in numbers],
    )
    if start == 140:
        print("ready", flush=True)
    time.sleep(0.05)
"""


@pytest.mark.slow
def test_a_palace_that_chroma_writes_to_comes_in_as_of_one_moment_or_not_at_all(tmp_path, database):
    folder = tmp_path / "palace"
    writer = subprocess.Popen([sys.executable, "-c", LIVE, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout.readline() == "ready\n"
        counts = []
        for _ in range(3):
            try:
                done = import_palace(database, folder)
            except PalaceBusy:
                continue
            counts.append(done.drawers.added + done.drawers.unchanged)
            assert done.drawers.without_vector == 0
    finally:
        writer.terminate()
        writer.communicate()
    done = import_palace(database, folder)
    assert counts == sorted(counts)
    with Palace.open(database) as palace, palace.reader() as connection:
        rows = connection.execute(
            "select drawer_id, text, vector from drawers join drawer_vectors using (id)"
        ).fetchall()
    assert len(rows) == done.drawers.added + done.drawers.unchanged >= 140
    for key, text, blob in rows:
        number = int(key[1:])
        assert text == f"text {number}"
        exact = np.array([number, 1.0]) / np.hypot(number, 1)
        assert np.frombuffer(blob, dtype="<f4") == pytest.approx(exact, abs=1e-6)
