"""The schema holds whoever writes: migrations, full-text index, vectors that go with their text, change log."""

from pathlib import Path

import pytest
import sqlite_utils
from click.testing import CliRunner
from datasette.utils.sqlite import sqlite3
from sqlite_utils.cli import cli as sqlite_utils_cli

from building import add, column, find, make_palace, one, texts
from datasette_mempalace import schema
from datasette_mempalace.drawers import Drawer
from datasette_mempalace.errors import PalaceNotFound, PalaceReadOnly, PalaceReplaced, PalaceTooNew
from datasette_mempalace.palace import Palace
from datasette_mempalace.repair import mend_full_text
from datasette_mempalace.vectors import count_pending, embed_pending


@pytest.fixture
def palace(tmp_path):
    with make_palace(tmp_path / "p.db", [("the red fox", "w", "r"), ("the blue whale", "w", "r")]) as palace:
        yield palace


def raw(palace, *statements):
    """Run statements as any other program would: plain sqlite3, no pragmas of ours."""
    connection = sqlite3.connect(palace.path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def changes(palace):
    return column(palace, "select change from drawer_changes where kind = 'drawer' order by seq")


def test_making_a_palace_twice_changes_nothing(palace):
    before = column(palace, "select sql from sqlite_master order by name")
    Palace.create(palace.path).close()
    assert column(palace, "select sql from sqlite_master order by name") == before
    assert one(palace, "select count(*) from drawers") == (2,)


def test_an_older_palace_is_brought_up_to_date_when_opened(tmp_path):
    database = sqlite_utils.Database(tmp_path / "old.db")
    schema.migrations.apply(database, stop_before="m002_vectors_and_changes")
    database.close()
    with Palace.open(tmp_path / "old.db") as palace, palace.reader() as connection:
        assert schema.pending_migrations(connection) == []
        assert connection.execute("select count(*) from drawer_changes").fetchone() == (0,)


def test_drawers_of_an_older_palace_count_as_pending(tmp_path):
    database = sqlite_utils.Database(tmp_path / "old.db")
    schema.migrations.apply(database, stop_before="m002_vectors_and_changes")
    database["drawers"].insert({"drawer_id": "a", "text": "kept from before"})
    database.close()
    with Palace.open(tmp_path / "old.db") as palace:
        assert embed_pending(palace) == 1
        assert palace.mirror.sync().upserted == 1
        assert texts(find(palace, "kept")) == ["kept from before"]


def test_a_newer_palace_is_refused_and_left_alone(palace):
    raw(
        palace,
        f"insert into _sqlite_migrations(migration_set, name, applied_at) values ('{schema.MIGRATIONS}', 'm999_future', '')",
    )
    for opening in (Palace.open, Palace.create):
        with pytest.raises(PalaceTooNew, match="m999_future.*upgrade"):
            opening(palace.path)


def test_what_is_no_palace_is_named(tmp_path):
    with pytest.raises(PalaceNotFound, match="does not exist.*mempalace init"):
        Palace.open(tmp_path / "no.db")
    with pytest.raises(PalaceNotFound, match="is a folder"):
        Palace.open(tmp_path)
    (tmp_path / "text.db").write_text("no database at all, but long enough to be one, is it not?" * 20)
    with pytest.raises(PalaceNotFound, match="cannot be read as a SQLite database"):
        Palace.open(tmp_path / "text.db")
    sqlite_utils.Database(tmp_path / "other.db")["t"].insert({"a": 1})
    with pytest.raises(PalaceNotFound, match="without a palace in it"):
        Palace.open(tmp_path / "other.db")
    with pytest.raises(PalaceNotFound, match="folder .* does not exist"):
        Palace.create(tmp_path / "no" / "p.db")


def test_a_palace_can_be_made_inside_another_database(tmp_path):
    sqlite_utils.Database(tmp_path / "other.db")["t"].insert({"a": 1})
    with Palace.create(tmp_path / "other.db") as palace:
        assert one(palace, "select a from t") == (1,)


def test_plain_sql_is_found_at_once_by_its_words(palace):
    raw(palace, "insert into drawers(drawer_id, text, wing) values ('x', 'a green lizard', 'w')")
    assert texts(find(palace, "lizard", vector_disabled=1)) == ["a green lizard"]
    raw(palace, "update drawers set text = 'a yellow canary' where drawer_id = 'x'")
    assert texts(find(palace, "lizard", vector_disabled=1)) == []
    assert texts(find(palace, "canary", vector_disabled=1)) == ["a yellow canary"]
    raw(palace, "delete from drawers where drawer_id = 'x'")
    assert texts(find(palace, "canary", vector_disabled=1)) == []
    assert changes(palace)[-3:] == ["insert", "update", "delete"]


def test_a_text_alone_is_enough_for_an_insert(palace):
    raw(palace, "insert into drawers(text) values ('a pink flamingo')")
    drawer_id, filed_at = one(
        palace, "select drawer_id, filed_at from drawers where text = 'a pink flamingo'"
    )
    assert drawer_id.startswith("drawer_")
    assert filed_at.startswith("20")
    assert texts(find(palace, "flamingo", vector_disabled=1)) == ["a pink flamingo"]


def test_a_vector_goes_when_its_text_changes_and_stays_when_only_its_place_does(palace):
    raw(palace, "update drawers set wing = 'elsewhere' where id = 1")
    assert one(palace, "select count(*) from drawer_vectors") == (2,)
    raw(palace, "update drawers set text = 'the red panda' where id = 1")
    assert column(palace, "select id from drawer_vectors") == [2]
    with palace.reader() as connection:
        assert count_pending(connection) == 1
    raw(palace, "delete from drawers where id = 2")
    assert column(palace, "select id from drawer_vectors") == []


def test_a_changed_id_takes_the_vector_away(palace):
    raw(palace, "update drawers set id = 70 where id = 1")
    assert column(palace, "select id from drawer_vectors") == [2]
    embed_pending(palace)
    assert texts(find(palace, "red fox", n_results=1)) == ["the red fox"]


def test_case_21_insert_or_replace_by_plain_sqlite3_neither_breaks_a_search_nor_fools_the_mirror(palace):
    palace.mirror.sync()
    drawer_id = one(palace, "select drawer_id from drawers where id = 1")[0]
    raw(
        palace,
        f"insert or replace into drawers(drawer_id, text, wing) values ('{drawer_id}', 'the grey wolf', 'w')",
    )
    for query in ("fox", "wolf", "red"):
        assert "the red fox" not in texts(find(palace, query, vector_disabled=1))
    assert texts(find(palace, "wolf", vector_disabled=1)) == ["the grey wolf"]
    with palace.writer() as connection, pytest.raises(sqlite3.DatabaseError, match="malformed"):
        connection.execute("insert into drawers_fts(drawers_fts, rank) values ('integrity-check', 1)")
    assert mend_full_text(palace) == ["drawers"]
    assert mend_full_text(palace) == []
    with palace.writer() as connection:
        connection.execute("insert into drawers_fts(drawers_fts, rank) values ('integrity-check', 1)")
    embed_pending(palace)
    palace.mirror.sync()
    vector = palace.embedder.embed_query("the red fox")
    assert {row_id for row_id, _ in palace.mirror.nearest("drawer", vector, 10)} == {2, 3}
    assert texts(find(palace, "grey wolf", n_results=1)) == ["the grey wolf"]


def test_a_row_replaced_under_its_own_id_is_found_stale_and_an_upsert_is_not(palace):
    mend_full_text(palace)
    raw(
        palace,
        "insert into drawers(drawer_id, text) select drawer_id, 'x' from drawers where id = 2 on conflict(drawer_id) do update set text = 'the pink whale'",
    )
    assert mend_full_text(palace) == []
    raw(palace, "insert or replace into drawers(id, drawer_id, text) values (2, 'other', 'the grey wolf')")
    assert mend_full_text(palace) == ["drawers"]
    assert texts(find(palace, "whale", vector_disabled=1)) == []
    with palace.writer() as connection:
        connection.execute(
            "insert or replace into drawers(drawer_id, text) values ('other', 'the black wolf')"
        )
    assert mend_full_text(palace) == [], "recursive_triggers are on there"


def test_tools_that_rebuild_every_full_text_table_work(palace):
    palace.close()
    for command in ("rebuild-fts", "optimize", "vacuum"):
        done = CliRunner().invoke(sqlite_utils_cli, [command, palace.path])
        assert done.exit_code == 0, done.output
    with Palace.open(palace.path) as again:
        assert texts(find(again, "whale", n_results=1)) == ["the blue whale"]


def test_case_21_reimporting_by_our_own_writer_leaves_the_index_whole(palace):
    drawer_id = one(palace, "select drawer_id from drawers where id = 1")[0]
    add(palace, Drawer("the grey wolf", drawer_id=drawer_id, wing="w"))
    assert texts(find(palace, "fox", vector_disabled=1)) == []
    with palace.writer() as connection:
        connection.execute("insert into drawers_fts(drawers_fts, rank) values ('integrity-check', 1)")


def test_a_write_that_fails_leaves_nothing_behind(palace):
    with pytest.raises(RuntimeError), palace.writer() as connection:
        connection.execute("delete from drawers")
        raise RuntimeError("in the middle")
    assert one(palace, "select count(*) from drawers") == (2,)


def test_readers_cannot_write(palace):
    with palace.reader() as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("delete from drawers")


def test_a_read_only_palace_says_so(palace):
    with Palace.open(palace.path, read_only=True) as reading:
        with pytest.raises(PalaceReadOnly, match="nothing was changed"), reading.writer():
            pass
        assert texts(find(reading, "whale", n_results=1)) == ["the blue whale"]


def test_case_41_after_a_checkpoint_the_file_alone_is_the_whole_palace(palace, tmp_path):
    palace.checkpoint()
    copy = tmp_path / "copy.db"
    copy.write_bytes(Path(palace.path).read_bytes())
    connection = sqlite3.connect(f"file:{copy}?immutable=1", uri=True)
    assert connection.execute("select count(*) from drawers").fetchone() == (2,)
    connection.close()


def test_a_palace_that_was_deleted_does_not_come_back_as_an_empty_file(palace):
    palace.checkpoint()
    palace.close()
    opened = Palace.open(palace.path)
    for file in Path(palace.path).parent.glob("p.db*"):
        if file.is_file():
            file.unlink()
    with pytest.raises(PalaceReplaced, match="moved away"), opened.writer():
        pass
    opened.close()
    assert not Path(palace.path).exists()
