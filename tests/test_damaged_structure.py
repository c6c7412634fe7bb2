"""Tables, indexes and triggers that are gone: told in plain words, made again by `doctor --fix`, no drawer lost."""

import json

import pytest
import sqlite_utils
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli
from datasette.utils.sqlite import sqlite3

from building import find, make_palace, one, texts
from datasette_mempalace import cli as commands
from datasette_mempalace import structure
from datasette_mempalace.doctor import examine
from datasette_mempalace.drawers import Source, put_source
from datasette_mempalace.errors import PalaceDamaged
from datasette_mempalace.palace import Palace
from datasette_mempalace.vectors import embed_pending
from foreign_palaces import copy_palace
from test_import_palace_graph import TUNNEL, make_graph

commands.register(datasette_cli)
WHOLE = "select name, sql from sqlite_master where sql is not null order by name"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "palace.db"
    with make_palace(path, [("the red fox", "w"), ("the blue whale", "w")]) as palace:
        put_source(palace, Source("/notes/guide.md", "# Lamps\n\nHow the keeper trims a lamp.", wing="w"))
        embed_pending(palace)
        palace.mirror.sync()
    return path


def damage(path, *statements):
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def rows(path, query):
    connection = sqlite3.connect(path)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def run(*arguments):
    return CliRunner().invoke(datasette_cli, ["mempalace", *map(str, arguments)])


TABLES = {
    "drawers_fts": "the full-text index of drawers (drawers_fts)",
    "closets_fts": "the full-text index of closets (closets_fts)",
    "drawer_vectors": "the vectors of drawers (drawer_vectors)",
    "closet_vectors": "the vectors of closets (closet_vectors)",
    "spare_vectors": "(spare_vectors)",
    "drawer_changes": "the change log (drawer_changes)",
    "mempalace_settings": "the palace's settings (mempalace_settings)",
    "_sqlite_migrations": "the record of migrations (_sqlite_migrations)",
    "closets": "the closets (closets)",
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_was_dropped_is_told_everywhere_and_made_again(path, table):
    before, drawers = rows(path, WHOLE), rows(path, "select * from drawers order by id")
    damage(path, f"drop table {table}")
    for command in ("status", "init", "sync", "purge", "doctor"):
        told = run(command, path)
        assert told.exit_code == 1, (command, told.output)
        assert TABLES[table] in told.output
        assert "--fix" in told.output
    with pytest.raises(PalaceDamaged, match="datasette mempalace doctor palace.db --fix"):
        Palace.open(path)
    fixed = run("doctor", path, "--fix")
    assert fixed.exit_code == 0, fixed.output
    assert table in fixed.output
    assert rows(path, WHOLE) == before
    assert rows(path, "select * from drawers order by id") == drawers
    assert run("init", path).exit_code == 0
    with Palace.open(path) as palace:
        assert one(palace, "select count(*) from drawer_vectors") == (3,)
        assert palace.mirror.sync().upserted == 0
        assert palace.mirror.store.call("drawer", "count") == 3
        assert texts(find(palace, "fox", n_results=1)) == ["the red fox"]
        assert find(palace, "whale", n_results=1)["results"][0]["found_by"] == ["vector", "lexical"]
    damage(path, "insert into drawers(text) values ('a green heron')")
    with Palace.open(path) as palace:
        embed_pending(palace)
        palace.mirror.sync()
        assert texts(find(palace, "heron", n_results=1)) == ["a green heron"]
        assert [finding.check for finding in examine(palace) if not finding.ok] == []


@pytest.mark.parametrize("part", ["data", "idx", "docsize", "config"])
def test_a_part_of_a_full_text_index_that_is_gone(path, part):
    before = rows(path, WHOLE)
    damage(path, f"drop table drawers_fts_{part}")
    assert "the full-text index of drawers (drawers_fts)" in run("doctor", path).output
    fixed = run("doctor", path, "--fix")
    assert fixed.exit_code == 0, fixed.output
    assert rows(path, WHOLE) == before


@pytest.mark.parametrize("column", ["data.block", "idx.segid", "docsize.sz", "config.k"])
def test_a_part_of_a_full_text_index_that_has_lost_a_column(path, column):
    before, (part, _, name) = rows(path, WHOLE), column.partition(".")
    connection = sqlite3.connect(path)
    connection.execute(
        "pragma legacy_alter_table = on"
    )  # else SQLite asks the index, which it can no longer open
    connection.execute(f"alter table drawers_fts_{part} rename column {name} to other")
    connection.close()
    assert "the full-text index of drawers (drawers_fts)" in run("doctor", path).output
    fixed = run("doctor", path, "--fix")
    assert fixed.exit_code == 0, fixed.output
    assert rows(path, WHOLE) == before
    assert "the red fox" in run("search", path, "fox").output


def test_an_empty_record_of_migrations(path):
    before = rows(path, WHOLE)
    damage(path, "delete from _sqlite_migrations")
    assert "the record of migrations (_sqlite_migrations)" in run("init", path).output
    assert run("doctor", path, "--fix").exit_code == 0
    assert rows(path, WHOLE) == before
    assert run("status", path).exit_code == 0


def test_a_record_that_lacks_some_migrations(path):
    damage(path, "delete from _sqlite_migrations where name in ('m002_vectors_and_changes', 'm005_places')")
    assert "(_sqlite_migrations)" in run("status", path).output
    assert run("doctor", path, "--fix").exit_code == 0
    assert run("status", path).exit_code == 0


def test_several_are_told_and_made_together(path):
    before = rows(path, WHOLE)
    for table in TABLES:
        if table not in ("closets", "mempalace_settings"):
            damage(path, f"drop table {table}")
    told = run("doctor", path, "--fix")
    assert told.exit_code == 0, told.output
    assert rows(path, WHOLE) == before


@pytest.mark.parametrize(
    "statement", ["drop table drawers", "alter table drawers rename column wing to place"]
)
def test_what_cannot_be_mended_is_told(path, statement):
    damage(path, statement)
    for command in (("status", path), ("doctor", path), ("doctor", path, "--fix")):
        told = run(*command)
        assert told.exit_code == 1, told.output
        assert "Traceback" not in told.output
    assert "restore a backup" in told.output


def test_a_log_made_again_lets_a_matrix_of_the_old_one_begin_anew(path):
    """A process that has the palace open meanwhile holds a position of the old log."""
    with Palace.open(path) as serving:
        assert texts(find(serving, "fox", n_results=1)) == ["the red fox"]
        damage(path, "drop table drawer_changes")
        assert run("doctor", path, "--fix").exit_code == 0
        damage(path, "delete from drawers where text = 'the red fox'")
        assert "the red fox" not in texts(find(serving, "fox", n_results=5))


async def test_a_server_tells_it(path, make_datasette):
    damage(path, "drop table drawers_fts")
    datasette = make_datasette(path)
    for address in ("/", "/palace", "/palace/closets"):
        assert (await datasette.client.get(address)).status_code == 200
    for address in (
        "/palace/-/mempalace?q=fox",
        "/palace/-/mempalace.json?q=fox",
        "/palace/-/mempalace/status.json",
    ):
        response = await datasette.client.get(address)
        assert response.status_code == 500
        assert "datasette mempalace doctor palace.db --fix" in response.text
    assert run("doctor", path, "--fix").exit_code == 0
    response = await datasette.client.get("/palace/-/mempalace.json?q=fox")
    assert response.json()["results"][0]["text"] == "the red fox"


async def test_a_table_that_is_dropped_while_it_is_served(path, make_datasette):
    datasette = make_datasette(path)
    assert (await datasette.client.get("/palace/-/mempalace.json?q=fox")).status_code == 200
    damage(path, "drop table drawers_fts")
    for address in ("/palace/-/mempalace?q=fox", "/palace/-/mempalace.json?q=fox"):
        response = await datasette.client.get(address)
        assert response.status_code == 500
        assert "datasette mempalace doctor palace.db --fix" in response.text


def test_what_is_looked_for_is_what_migrations_make(path):
    """The quick look at every opening has names of its own."""
    made = {name for (name,) in rows(path, "select name from sqlite_master where type = 'table'")}
    assert made - {"sqlite_sequence"} == structure.TABLES


LOST = {
    "alter table mempalace_settings drop column value": "(mempalace_settings has lost value, or has it under another name)",
    "alter table mempalace_settings rename column key to name": "(mempalace_settings has lost key,",
    "alter table drawer_vectors drop column vector": "(drawer_vectors has lost vector,",
    "alter table closet_vectors rename column text_hash to hash": "(closet_vectors has lost text_hash,",
    "alter table spare_vectors drop column vector": "(spare_vectors has lost vector,",
    # SQLite writes the new name into the triggers.
    "alter table drawer_changes rename column row_id to row_number": "(drawer_changes has lost row_id,",
    "alter table _sqlite_migrations rename column name to title": "(_sqlite_migrations has lost name,",
}


@pytest.mark.parametrize("statement", LOST)
def test_a_column_of_an_inner_table_that_is_lost_is_told_everywhere_and_the_table_made_again(path, statement):
    before, drawers = rows(path, WHOLE), rows(path, "select * from drawers order by id")
    damage(path, statement)
    for command in (("search", path, "fox"), ("sync", path), ("status", path), ("doctor", path)):
        told = run(*command)
        assert told.exit_code == 1, (command, told.output)
        assert LOST[statement] in told.output
        assert "datasette mempalace doctor" in told.output
    fixed = run("doctor", path, "--fix")
    assert fixed.exit_code == 0, fixed.output
    assert rows(path, WHOLE) == before
    assert rows(path, "select * from drawers order by id") == drawers
    with Palace.open(path) as palace:
        assert find(palace, "whale", n_results=1)["results"][0]["found_by"] == ["vector", "lexical"]
    damage(path, "insert into drawers(text) values ('a green heron')")
    assert "a green heron" in run("search", path, "heron").output


def test_triggers_of_what_import_palace_adds_are_told_and_made_again(tmp_path, foreign):
    """As sqlite-utils transform takes them away; what was deleted meanwhile is caught up with."""
    path = tmp_path / "palace.db"
    folder = copy_palace(foreign, "queued", tmp_path / "theirs")
    make_graph(folder / "knowledge_graph.sqlite3")
    (folder / "tunnels.json").write_text(json.dumps([TUNNEL]))
    assert run("import-palace", path, folder).exit_code == 0
    before = rows(path, WHOLE)
    gone = {
        name for (name,) in rows(path, "select name from sqlite_master where name like '%_forget_origin'")
    } | {name for (name,) in rows(path, "select name from sqlite_master where name like '%_gone'")}
    assert len(gone) == 6
    sqlite_utils.Database(path)["drawers"].transform(defaults={"wing": "unsorted"})
    damage(path, "drop trigger closets_forget_origin", "drop trigger kg_triples_source_closet_gone")
    damage(path, "drop index idx_kg_triples_2")
    row_id, drawer_id = rows(path, "select source_drawer, source_drawer_id from tunnels")[0]
    damage(path, f"delete from drawers where id = {row_id}")
    told = run("doctor", path)
    assert told.exit_code == 1
    for name in (*gone, "idx_kg_triples_2"):
        assert name in told.output
    fixed = run("doctor", path, "--fix")
    assert fixed.exit_code == 0, fixed.output
    now = rows(path, WHOLE)
    assert [row for row in now if row[0] != "drawers"] == [row for row in before if row[0] != "drawers"]
    assert rows(path, "select source_drawer, source_drawer_id from tunnels") == [(None, drawer_id)]
    assert rows(path, f"select * from origin_drawers where drawer_id = '{drawer_id}'") == []


def test_a_table_of_another_program_is_no_part_of_a_palace(path):
    damage(path, "create table tunnels (id integer primary key, length real)")
    assert run("doctor", path).exit_code == 0
