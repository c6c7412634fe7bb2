"""The mirror follows every change, can be thrown away, and is never needed for an answer."""

import multiprocessing
import os
import shutil
import threading
import time

import pytest

from building import add, add_unread, find, make_palace, one, texts
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, delete_drawers, put_drawers
from datasette_mempalace.errors import MempalaceError, MirrorUnavailable
from datasette_mempalace.mirror.sync import Sync
from datasette_mempalace.palace import Palace
from datasette_mempalace.scope import Scope
from datasette_mempalace.vectors import embed_pending

DRAWERS = [("the red fox", "w", "r"), ("the blue whale", "w", "s"), ("the green lizard", "v", None)]


@pytest.fixture
def palace(tmp_path):
    with make_palace(tmp_path / "p.db", DRAWERS, mirror=True) as palace:
        yield palace


def held(palace, where=None):
    """The ids that the mirror really holds, asked of Chroma itself."""
    vector = palace.embedder.embed_query("fox")
    return {row_id for row_id, _ in palace.mirror.nearest("drawer", vector, 100, where)}


def through_chroma_alone(palace, monkeypatch):
    """Take away what is tried before Chroma for a filtered search of a small palace."""
    monkeypatch.setattr("datasette_mempalace.nearest.FEW", 0)
    monkeypatch.setattr(palace, "settings", Settings(exact_limit=0, matrix_mb=0))


def test_a_sync_with_nothing_to_do_does_nothing(palace):
    report = palace.mirror.sync()
    assert (report.upserted, report.deleted, report.skipped_reason) == (0, 0, None)
    assert held(palace) == {1, 2, 3}


def test_added_changed_moved_and_deleted_drawers_reach_the_mirror(palace):
    add(palace, ("a yellow canary", "w", "r"))
    delete_drawers(palace, Scope(ids=(2,)))
    with palace.writer() as connection:
        connection.execute("update drawers set wing = 'moved' where id = 1")
        connection.execute("update drawers set wing = null where id = 3")
        connection.execute("update drawers set text = 'another text' where id = 3")
    embed_pending(palace)
    palace.mirror.sync()
    assert held(palace) == {1, 3, 4}
    assert held(palace, {"wing": "moved"}) == {1}
    assert held(palace, {"wing": "v"}) == set(), "a key that was taken away must not survive"


def test_case_34_the_mirror_is_given_no_text(palace):
    add(palace, ("a secret: xyzzyplugh", "w", "r"), mirror=True)
    held_rows = palace.mirror.store.call("drawer", "get", include=["documents", "metadatas", "uris"])
    assert set(held_rows["documents"]) == {None}
    assert {key for keys in held_rows["metadatas"] for key in keys} == {"id", "wing", "room"}
    palace.mirror.close()
    # The index files are left out: Chroma writes memory there that it never set, with whatever the process had in it.
    files = list(palace.mirror_path.glob("chroma.sqlite3*"))
    assert files
    for file in files:
        assert b"xyzzyplugh" not in file.read_bytes()


def test_a_mirror_that_was_thrown_away_comes_back_without_embedding(palace, monkeypatch):
    palace.close()
    shutil.rmtree(palace.mirror_path)
    with Palace.open(palace.path) as again:
        monkeypatch.setattr(again.embedder, "embed", lambda *arguments: pytest.fail("embedded again"))
        assert again.mirror.sync().rebuilt
        monkeypatch.undo()
        assert held(again) == {1, 2, 3}


def test_rebuilding_fills_it_anew(palace):
    assert palace.mirror.rebuild().upserted == 3
    assert held(palace) == {1, 2, 3}


def test_the_mirror_of_a_database_restored_from_a_backup_is_filled_anew(palace, tmp_path):
    palace.checkpoint()
    backup = tmp_path / "backup.db"
    shutil.copy(palace.path, backup)
    add(palace, ("a yellow canary",), mirror=True)
    palace.close()
    shutil.copy(backup, palace.path)
    with Palace.open(palace.path) as restored:
        report = restored.mirror.sync()
        assert report.rebuilt
        assert held(restored) == {1, 2, 3}


def test_a_sync_that_was_cut_off_goes_on_from_the_last_acknowledged_change(palace, monkeypatch):
    add(palace, ("a yellow canary",))
    monkeypatch.setattr(Sync, "_record", lambda *given: (_ for _ in ()).throw(RuntimeError("killed")))
    with pytest.raises(MirrorUnavailable, match="killed"):
        palace.mirror.sync()
    monkeypatch.undo()
    palace.close()
    with Palace.open(palace.path) as again:
        report = again.mirror.sync()
        assert not report.rebuilt
        assert held(again) == {1, 2, 3, 4}


def test_what_the_mirror_does_not_hold_yet_is_found_all_the_same(palace, monkeypatch):
    add(palace, ("a canary singing in the cage", "w", "r"))
    delete_drawers(palace, Scope(ids=(1,)))
    answer = find(palace, "bird song", candidate_strategy="vector")
    assert answer["engine"] == "chroma"
    assert texts(answer)[0] == "a canary singing in the cage"
    assert "the red fox" not in texts(answer)


def test_both_engines_give_the_same_hits_and_numbers(palace, monkeypatch):
    def numbers(answer):
        return [(hit["id"], hit["score"], hit["distance"]) for hit in answer["results"]]

    through_chroma = find(palace, "an animal of the sea")
    assert through_chroma["engine"] == "chroma"
    palace.mirror.close()
    exact = find(palace, "an animal of the sea")
    assert exact["engine"] == "exact"
    assert numbers(exact) == numbers(through_chroma)


def test_a_filtered_vector_query_that_fails_is_repeated_without_the_filter_and_says_so(palace, monkeypatch):
    through_chroma_alone(palace, monkeypatch)
    nearest = palace.mirror.nearest

    def fails_on_filters(kind, vector, count, where=None):
        if where:
            raise MirrorUnavailable("Chroma could not answer: broken filter")
        return nearest(kind, vector, count, where)

    monkeypatch.setattr(palace.mirror, "nearest", fails_on_filters)
    answer = find(palace, "sea", wing="w", candidate_strategy="vector")
    assert {hit["id"] for hit in answer["results"]} == {1, 2}
    assert "repeated wider without its filter" in answer["vector_note"]


def test_a_mirror_that_fails_costs_nothing_but_speed(palace, monkeypatch):
    def broken(*arguments):
        raise MirrorUnavailable("Chroma could not answer: broken")

    monkeypatch.setattr(palace.mirror, "nearest", broken)
    answer = find(palace, "sea", n_results=1)
    assert texts(answer) == ["the blue whale"]
    assert answer["engine"] in ("exact", "matrix")
    assert "broken" in answer["vector_note"]


def test_case_32_chroma_is_given_vectors_and_never_embeds(palace, monkeypatch):
    from chromadb.utils.embedding_functions import DefaultEmbeddingFunction, ONNXMiniLM_L6_V2

    for function in (DefaultEmbeddingFunction, ONNXMiniLM_L6_V2):
        monkeypatch.setattr(function, "__call__", lambda *given: pytest.fail("Chroma embedded"))
    palace.close()
    with Palace.open(palace.path) as again:
        add(again, ("a yellow canary", "w", "r"), mirror=True)
        assert held(again) == {1, 2, 3, 4}


def test_an_empty_palace_has_an_empty_mirror(tmp_path):
    with make_palace(tmp_path / "empty.db") as palace:
        assert palace.mirror.sync().upserted == 0
        assert find(palace, "anything")["results"] == []


@pytest.mark.long
def test_case_33_more_vectors_than_one_batch_of_chroma_takes(tmp_path):
    with make_palace(tmp_path / "many.db", [("one text", "w", "r")]) as palace:
        put_drawers(palace, [Drawer("one text", wing="w", room=str(number)) for number in range(6000)])
        assert embed_pending(palace) == 0
        assert palace.mirror.sync().upserted == 6001
        assert palace.mirror.store.call("drawer", "count") == 6001


def search_elsewhere(path, answers):
    """Another process: searches, writes, and tries to sync the mirror that is owned elsewhere."""
    with Palace.open(path) as palace:
        report = palace.mirror.sync()
        add(palace, ("written by another process", "w", "r"))
        answers.put((report.skipped_reason, texts(find(palace, "fox", n_results=1))))


def test_case_29_case_36_one_process_owns_the_mirror_and_others_still_search_and_write(palace):
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=search_elsewhere, args=(palace.path, answers))
    process.start()
    reason, found = answers.get(timeout=60)
    process.join(timeout=60)
    assert "owns the mirror" in reason
    assert found == ["the red fox"]
    assert texts(find(palace, "another process", n_results=1)) == ["written by another process"]
    assert palace.mirror.sync().upserted == 1
    assert held(palace) == {1, 2, 3, 4}


def test_a_mirror_whose_folder_cannot_be_made_is_told_and_not_needed(tmp_path):
    (tmp_path / "p.db.chroma").write_text("a file where the folder should be")
    with make_palace(tmp_path / "p.db", DRAWERS) as palace:
        assert "cannot be used" in palace.mirror.sync().skipped_reason
        assert texts(find(palace, "fox", n_results=1)) == ["the red fox"]
        assert one(palace, "select count(*) from drawers") == (3,)


def segment_files(palace, name):
    found = list(palace.mirror_path.glob(f"*/{name}"))
    assert found
    return found


@pytest.fixture
def large(tmp_path):
    """A palace with enough vectors that Chroma has written its index files, its mirror closed in order."""
    with make_palace(tmp_path / "large.db", [("the red fox", "w", "r")]) as palace:
        add_unread(palace, 1100)
        palace.mirror.sync()
        yield palace


# What crashes who asks, and what answers too little without a word; every other kind is in test_mirror_damage.py.
DAMAGE = {
    "garbage in the index": lambda palace: [
        file.write_bytes(os.urandom(file.stat().st_size)) for file in segment_files(palace, "data_level0.bin")
    ],
    "segment folders deleted": lambda palace: [
        shutil.rmtree(folder) for folder in palace.mirror_path.iterdir() if folder.is_dir()
    ],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_mirror_is_found_out_and_filled_anew(large, damage):
    large.mirror.close()
    DAMAGE[damage](large)
    with Palace.open(large.path) as again:
        report = again.mirror.sync()
        assert report.rebuilt
        assert report.upserted == 1101
        vector = again.embedder.embed_query("the red fox")
        found = again.mirror.nearest("drawer", vector, 1100)
        assert found[0][0] == 1
        assert len(found) == 1100


def test_a_mirror_closed_in_order_is_opened_without_a_probe(large, monkeypatch):
    large.mirror.close()
    monkeypatch.setattr(
        "datasette_mempalace.mirror.check.subprocess.run", lambda *given, **options: pytest.fail("probed")
    )
    with Palace.open(large.path) as again:
        assert not again.mirror.sync().rebuilt


def test_a_search_does_not_wait_for_a_sync(palace):
    entered, leave = threading.Event(), threading.Event()

    def holds_the_lock():
        with palace.mirror._lock:
            entered.set()
            leave.wait(20)

    palace.mirror.close()
    thread = threading.Thread(target=holds_the_lock)
    thread.start()
    entered.wait(5)
    try:
        palace.settings = Settings(exact_limit=0, matrix_mb=0)
        started = time.monotonic()
        answer = find(palace, "sea", n_results=1)
        assert time.monotonic() - started < 5
        assert texts(answer) == ["the blue whale"]
    finally:
        leave.set()
        thread.join()


def test_a_closed_palace_is_not_opened_again_by_who_still_holds_it(tmp_path):
    palace = make_palace(tmp_path / "p.db", DRAWERS)
    palace.close()
    for use in (palace.reader, palace.writer):
        with pytest.raises(MempalaceError, match="was closed"), use():
            pass
