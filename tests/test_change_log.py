"""The change log: pruned once it was read, its numbers never used twice, and nobody misled by what is gone."""

import pytest
from datasette.utils.sqlite import sqlite3

from building import column, find, make_palace, one, texts
from datasette_mempalace.change_log import changed_since, horizon, last_change, last_gap, prune
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.errors import LogTooShort
from datasette_mempalace.keeper import keep_in_step
from datasette_mempalace.palace import Palace
from datasette_mempalace.repair import mend_full_text
from datasette_mempalace.vectors import embed_pending


@pytest.fixture
def palace(tmp_path):
    drawers = [(f"a note about {animal}", "w") for animal in ("foxes", "whales", "herons", "moles")]
    with make_palace(tmp_path / "p.db", drawers, mirror=True) as palace:
        mend_full_text(palace)
        yield palace


def log(palace):
    return column(palace, "select seq from drawer_changes order by seq")


def last(palace):
    with palace.reader() as connection:
        return last_change(connection)


def in_another_process(path, statement, *parameters):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, parameters)
    connection.close()


def ids_in_mirror(palace, animal="foxes"):
    vector = palace.embedder.embed_query(animal)
    return {row_id for row_id, _ in palace.mirror.nearest("drawer", vector, 50)}


def test_what_was_read_is_pruned_and_the_newest_stays(palace):
    end = last(palace)
    assert len(log(palace)) == end > 1
    assert prune(palace, tail=1) == end - 1
    assert log(palace) == [end]
    assert last(palace) == end
    assert prune(palace, tail=1) == 0


def test_a_tail_is_kept(palace):
    prune(palace, tail=3)
    assert log(palace) == list(range(last(palace) - 2, last(palace) + 1))
    assert prune(palace) == 0, "so few are kept by default"


def test_what_the_mirror_has_not_read_stays(palace):
    read = last(palace)
    put_drawers(palace, [Drawer("not mirrored yet")])
    mend_full_text(palace)
    prune(palace, tail=1)
    assert log(palace) == list(range(read + 1, last(palace) + 1))


def test_what_the_repair_has_not_read_stays(tmp_path):
    with make_palace(tmp_path / "p.db", [("a fox", "w")], mirror=True) as palace:
        assert prune(palace, tail=1) == 0


def test_a_palace_that_was_never_mirrored_is_pruned_and_its_mirror_begins_with_the_tables(tmp_path):
    with make_palace(tmp_path / "p.db", [("a fox", "w"), ("a whale", "w")]) as palace:
        mend_full_text(palace)
        assert prune(palace, tail=1)
        palace.mirror.sync()
        assert ids_in_mirror(palace) == {1, 2}


def test_a_mirror_that_never_comes_does_not_keep_the_log_for_ever(palace, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.change_log.MOST", 10)
    read = last(palace)
    put_drawers(palace, [Drawer(f"text {number}") for number in range(30)])
    embed_pending(palace)
    mend_full_text(palace)
    prune(palace, tail=1)
    assert log(palace) == list(range(last(palace) - 9, last(palace) + 1))
    with palace.reader() as connection:
        assert horizon(connection) > read
    report = palace.mirror.sync()
    assert report.rebuilt
    assert ids_in_mirror(palace) == set(column(palace, "select id from drawers"))


def test_numbers_are_never_used_twice(palace):
    end = last(palace)
    in_another_process(palace.path, "delete from drawer_changes")
    assert last(palace) == end
    in_another_process(palace.path, "insert into drawers(text) values ('one more')")
    assert log(palace)[0] == end + 1


def test_a_position_before_the_horizon_is_refused(palace):
    prune(palace, tail=3)
    with palace.reader() as connection:
        first = horizon(connection)
        assert changed_since(connection, "drawer", first, 10)
        with pytest.raises(LogTooShort, match="begins after"):
            changed_since(connection, "drawer", first - 1, 10)


def test_pruning_is_done_in_short_transactions(palace, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.change_log.BATCH", 3)
    begun = []
    original = Palace.writer

    def counting(self, *arguments, **options):
        begun.append(self)  # keepers of other tests' palaces may be at work, too
        return original(self, *arguments, **options)

    monkeypatch.setattr(Palace, "writer", counting)
    removed = prune(palace, tail=1)
    assert begun.count(palace) == -(-removed // 3)


def test_a_matrix_older_than_the_log_is_loaded_anew(palace):
    vector = palace.embedder.embed_query("badgers")
    with palace.reader() as connection:
        palace.matrices.get(connection, "drawer", len(vector))
    in_another_process(palace.path, "update drawers set text = 'a note about badgers' where id = 1")
    in_another_process(palace.path, "delete from drawers where id = 2")
    with Palace.open(palace.path) as elsewhere:
        keep_in_step(elsewhere, {})
        embed_pending(elsewhere)
    in_another_process(
        palace.path, "delete from drawer_changes where seq < (select max(seq) from drawer_changes)"
    )
    with palace.reader() as connection:
        matrix, changed = palace.matrices.get(connection, "drawer", len(vector))
    assert matrix.ids.tolist() == [1, 3, 4]
    assert changed == []
    assert matrix.vectors[0] @ vector > matrix.vectors[1] @ vector


def test_searches_are_right_in_a_process_whose_mirror_is_older_than_the_log(palace):
    assert find(palace, "foxes")["engine"] == "chroma"
    in_another_process(palace.path, "update drawers set text = 'a note about badgers' where id = 1")
    with Palace.open(palace.path) as elsewhere:
        embed_pending(elsewhere)
    in_another_process(
        palace.path, "delete from drawer_changes where seq < (select max(seq) from drawer_changes)"
    )
    answer = find(palace, "badgers", n_results=1)
    assert texts(answer) == ["a note about badgers"]
    assert answer["engine"] != "chroma"
    assert "The change log begins after" in answer["vector_note"]
    assert palace.mirror.sync().rebuilt
    answer = find(palace, "badgers", n_results=1)
    assert texts(answer) == ["a note about badgers"]
    assert answer["engine"] == "chroma"


def test_a_full_text_index_that_the_log_cannot_vouch_for_is_rebuilt(palace):
    in_another_process(
        palace.path, "insert or replace into drawers(id, text) values (1, 'a note about owls')"
    )
    in_another_process(palace.path, "delete from drawer_changes")
    in_another_process(palace.path, "insert into drawers(text) values ('one more')")
    assert "drawers" in mend_full_text(palace)
    with palace.writer() as connection:
        connection.execute("insert into drawers_fts(drawers_fts, rank) values ('integrity-check', 1)")


def test_a_gap_is_found(palace):
    with palace.reader() as connection:
        assert last_gap(connection) is None
    in_another_process(palace.path, "delete from drawer_changes where seq in (3, 4, 7)")
    with palace.reader() as connection:
        assert last_gap(connection) == 8


def test_the_keeper_prunes(palace, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.keeper.prune", lambda palace: prune(palace, tail=1))
    put_drawers(palace, [Drawer("one more")])
    keep_in_step(palace, {})
    keep_in_step(palace, {})
    assert log(palace) == [last(palace)]


def test_a_palace_that_can_only_be_read_is_not_pruned(palace, tmp_path):
    before = log(palace)
    palace.close()
    settings = Settings(mirror_path=str(tmp_path / "elsewhere"))
    with Palace.open(palace.path, settings, read_only=True) as reading:
        keep_in_step(reading, {})
        assert log(reading) == before
        assert one(reading, "select count(*) from drawers") == (4,)
