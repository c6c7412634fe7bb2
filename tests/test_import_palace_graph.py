"""Hallways, tunnels and the knowledge graph become tables, linked to drawers; the documented queries show them."""

import json
import re
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from datasette_mempalace.cli import mempalace, register
from datasette_mempalace.errors import BadInput
from datasette_mempalace.importers.mempalace import import_palace
from datasette_mempalace.palace import Palace
from foreign_palaces import copy_palace, state

if "export" not in mempalace.commands:
    register(SimpleNamespace(add_command=lambda command: None))

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "import.md"
QUERIES = re.findall(r"^```SQL\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
HALLWAY = {
    "id": "hallway_1", "wing": "harbour", "entity_a": "Lighthouse", "entity_b": "PostgreSQL", "co_occurrence_count": 2,
    "rooms": ["room 0", "room 1"], "label": "both", "created_at": "2026-01-01", "created_by": "auto", "strength": 1.0,
    "invented_later": {"a": 1},
}  # fmt: skip
TUNNEL = {
    "id": "tunnel_1", "kind": "explicit", "label": "same lamp", "created_at": "2026-01-02",
    "source": {"wing": "harbour", "room": "room 0", "drawer_id": "drawer_000"},
    "target": {"wing": "acme-app", "room": "room 1", "drawer_id": "not there"},
}  # fmt: skip


def make_graph(file, *extra):
    """A knowledge graph as MemPalace makes it, in WAL mode."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.executescript(
        """
        pragma journal_mode = wal;
        create table entities (id text primary key, name text not null, type text default 'unknown',
            properties text default '{}', created_at text);
        create table triples (id text primary key, subject text not null, predicate text not null, object text not null,
            valid_from text, valid_to text, confidence real default 1.0, source_closet text, source_file text,
            source_drawer_id text, adapter_name text, extracted_at text);
        insert into entities values ('max', 'Max', 'person', '{"age": 7}', '2026-01-01'), ('chess', 'Chess', 'game', '{}', null);
        insert into triples values
            ('t1', 'max', 'loves', 'chess', '2020-01-01', null, 0.9, 'closet_0', '/notes/0.md', 'drawer_000', 'x', '2026'),
            ('t2', 'max', 'lives_in', 'a harbour', '2020-01-01', '2021-01-01', 1.0, null, null, null, null, null);
        """
    )
    for statement in extra:
        connection.execute(statement)
    connection.close()
    return file


def run(*arguments):
    return CliRunner().invoke(mempalace, [str(argument) for argument in arguments])


@pytest.fixture
def palace(foreign, tmp_path):
    """A palace with everything beside and in it."""
    folder = copy_palace(foreign, "queued", tmp_path / "queued")
    (folder.parent / "hallways.json").write_text(json.dumps({"schema_version": 1, "hallways": [HALLWAY]}))
    (folder.parent / "tunnels.json").write_text(json.dumps([TUNNEL]))
    make_graph(folder / "knowledge_graph.sqlite3")
    return folder


@pytest.fixture
def database(tmp_path):
    return tmp_path / "mine.db"


def query(path, sql, **parameters):
    with Palace.open(path) as palace, palace.reader() as connection:
        cursor = connection.execute(sql, parameters)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def test_they_come_in_with_every_key_and_linked(palace, database):
    before = state(palace.parent)
    done = import_palace(database, palace)
    assert state(palace.parent) == before
    assert {name: tally.added for name, tally in done.tables.items()} == {
        "hallways": 1, "tunnels": 1, "kg_entities": 3, "kg_triples": 2,
    }  # fmt: skip
    [hallway] = query(database, "select * from hallways")
    assert (hallway["entity_b"], hallway["co_occurrence_count"]) == ("PostgreSQL", 2)
    assert json.loads(hallway["rooms"]) == ["room 0", "room 1"]
    assert json.loads(hallway["metadata"]) == {"invented_later": {"a": 1}}
    [tunnel] = query(
        database,
        "select tunnels.*, drawer_id from tunnels join drawers on drawers.id = source_drawer",
    )
    assert (tunnel["drawer_id"], tunnel["source_wing"], tunnel["target_room"]) == (
        "drawer_000",
        "harbour",
        "room 1",
    )
    assert (tunnel["target_drawer_id"], tunnel["target_drawer"]) == ("not there", None)
    facts = query(
        database,
        "select s.name as subject, predicate, o.name as object, valid_to, confidence, drawer_id, closet_id from kg_triples"
        " join kg_entities s on s.id = subject join kg_entities o on o.id = object"
        " left join drawers on drawers.id = source_drawer left join closets on closets.id = source_closet order by predicate",
    )
    assert [tuple(fact.values()) for fact in facts] == [
        ("Max", "lives_in", "a harbour", "2021-01-01", 1.0, None, None),
        ("Max", "loves", "Chess", None, 0.9, "drawer_000", "closet_0"),
    ]


TABLES = (
    "mempalace_origins",
    "origin_drawers",
    "origin_closets",
    "hallways",
    "tunnels",
    "kg_entities",
    "kg_triples",
)


def test_an_export_has_them_and_brings_them_back(palace, database, tmp_path):
    import_palace(database, palace)
    file, back = tmp_path / "all.ndjson", tmp_path / "back.db"
    assert run("export", database, file, "--vectors").exit_code == 0
    assert json.loads(file.read_text().splitlines()[0])["related"] == 1 + 1 + 1 + 1 + 1 + 3 + 2
    for _ in range(2):
        done = run("import", back, file)
        assert (done.exit_code, "10 lines" in done.stdout) == (0, True), done.output
    for table in TABLES:
        assert query(back, f"select * from {table}") == query(database, f"select * from {table}")
    again = import_palace(back, palace)
    assert (again.drawers.added, again.drawers.updated) == (0, 0)
    assert {(tally.added, tally.updated) for tally in again.tables.values()} == {(0, 0)}


def test_references_lead_to_the_same_drawers_where_these_have_other_numbers(palace, database, tmp_path):
    import_palace(database, palace)
    file, back = tmp_path / "all.ndjson", tmp_path / "back.db"
    run("export", database, file, "--vectors")
    with Palace.create(back) as opened, opened.writer() as connection:
        connection.executemany("insert into drawers (text) values (?)", [("filed by hand",)] * 3)
    assert run("import", back, file).exit_code == 0
    for table in ("tunnels", "kg_triples"):
        named = f"select {table}.source_drawer_id, drawer_id from {table} left join drawers on drawers.id = source_drawer"
        assert query(back, named) == query(database, named)
    first = "select id from drawers where drawer_id = 'drawer_000'"
    assert query(back, first) != query(database, first)


def test_a_part_of_a_palace_is_exported_without_them(palace, database, tmp_path):
    import_palace(database, palace)
    run("export", database, tmp_path / "part.ndjson", "--wing", "harbour")
    assert json.loads((tmp_path / "part.ndjson").read_text().splitlines()[0])["related"] == 0
    assert '"kind": "hallways"' not in (tmp_path / "part.ndjson").read_text()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"kind": "origin", "id": 2}, "an origin needs an id, a folder and a collection"),
        (
            {"kind": "hallways", "origin": 9, "row": {"hallway_id": "h"}},
            "origin: '9' is none that stands before it",
        ),
        ({"kind": "hallways", "origin": 1}, "it has no hallway_id"),
        (
            {"kind": "hallways", "origin": 1, "row": {"hallway_id": "h", "wing": []}},
            "wing: [] is no value of a column",
        ),
        ({"kind": "origin_drawers", "origin": 1, "ids": "x"}, "it has no list of ids"),
        ({"kind": ["hallways"]}, "neither a drawer nor a closet"),
    ],
)
def test_a_line_of_them_that_cannot_be_used_is_told(palace, database, tmp_path, line, says):
    import_palace(database, palace)
    run("export", database, tmp_path / "a.ndjson", "--vectors")
    with (tmp_path / "a.ndjson").open("a") as file:
        file.write(json.dumps(line) + "\n")
    done = run("import", tmp_path / "back.db", tmp_path / "a.ndjson")
    assert (done.exit_code, says in done.stderr) == (1, True), done.output
    assert query(tmp_path / "back.db", "select * from tunnels") == query(database, "select * from tunnels")


def test_a_second_import_brings_the_differences(palace, database):
    import_palace(database, palace)
    done = import_palace(database, palace)
    assert {(tally.added, tally.updated, tally.gone) for tally in done.tables.values()} == {(0, 0, 0)}
    (palace.parent / "tunnels.json").write_text(
        json.dumps({"tunnels": [{**TUNNEL, "label": "another"}, {"label": "no id"}]})
    )
    (palace.parent / "hallways.json").write_text("[]")
    done = import_palace(database, palace)
    assert (done.tables["tunnels"].added, done.tables["tunnels"].updated) == (1, 1)
    assert (done.tables["hallways"].gone, done.tables["hallways"].removed) == (1, 0)
    assert import_palace(database, palace, prune=True).tables["hallways"].removed == 1
    assert query(database, "select * from hallways") == []


def test_two_palaces_keep_their_own(palace, database, foreign, tmp_path):
    import_palace(database, palace)
    other = copy_palace(foreign, "synced", tmp_path / "other")
    (other.parent / "tunnels.json").write_text(json.dumps([{**TUNNEL, "label": "theirs"}]))
    import_palace(database, other, prune=True)
    assert [row["label"] for row in query(database, "select label from tunnels order by label")] == [
        "same lamp",
        "theirs",
    ]
    assert len(query(database, "select * from kg_triples")) == 2


def test_a_reference_ends_with_its_drawer(palace, database):
    import_palace(database, palace)
    with Palace.open(database) as opened, opened.writer() as connection:
        connection.execute("delete from drawers where drawer_id = 'drawer_000'")
    assert query(database, "select source_drawer from tunnels") == [{"source_drawer": None}]
    assert query(database, "select count(*) as n from kg_triples where source_drawer is not null") == [
        {"n": 0}
    ]


def test_a_palace_without_them_gets_no_tables(foreign, database):
    import_palace(database, foreign / "queued" / "palace")
    assert not query(
        database, "select name from sqlite_master where name like 'kg%' or name in ('hallways', 'tunnels')"
    )


def test_broken_files_are_told_of_and_keep_nothing_out(palace, database):
    (palace.parent / "hallways.json").write_text("{")
    (palace.parent / "tunnels.json").write_text('{"tunnels": 3}')
    (palace / "knowledge_graph.sqlite3").write_bytes(b"no database at all")
    done = import_palace(database, palace)
    assert done.drawers.added
    told = "\n".join([*done.found.notes, *done.notes])
    for what in (
        "hallways.json cannot be read as JSON",
        "no list of tunnels",
        "the knowledge graph is left out",
    ):
        assert what in told
    with pytest.raises(BadInput):
        import_palace(database, palace, knowledge_graph=palace / "knowledge_graph.sqlite3")
    (palace / "knowledge_graph.sqlite3").unlink()
    sqlite3.connect(palace / "knowledge_graph.sqlite3").close()
    assert any("knowledge graph cannot be read" in note for note in import_palace(database, palace).notes)


def test_a_graph_in_the_home_folder_is_named_and_taken_when_told(palace, database, tmp_path, monkeypatch):
    (palace / "knowledge_graph.sqlite3").unlink()
    home = tmp_path / "home" / ".mempalace"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home.parent))
    # Older graphs lack the newer columns.
    file = make_graph(
        home / "knowledge_graph.sqlite3",
        "alter table triples drop column source_drawer_id",
        "alter table triples drop column adapter_name",
    )
    done = import_palace(database, palace)
    assert "kg_triples" not in done.tables
    assert any(f"--knowledge-graph {file}" in note for note in done.found.notes)
    assert import_palace(database, palace, knowledge_graph=file).tables["kg_triples"].added == 2


@pytest.mark.parametrize("sql", QUERIES, ids=[re.search(r"from (\w+)", sql)[1] for sql in QUERIES])
async def test_documented_queries_show_them_in_datasette(palace, database, make_datasette, sql):
    import_palace(database, palace, re_embed=True)
    datasette = make_datasette(database)
    response = await datasette.client.get(
        "/mine.json", params={"sql": sql, "_shape": "array", "day": "2020-06-01"}, follow_redirects=True
    )
    assert response.status_code == 200, response.text
    assert response.json()


async def test_datasette_shows_references_as_links(palace, database, make_datasette):
    import_palace(database, palace)
    datasette = make_datasette(database)
    response = await datasette.client.get("/mine/kg_triples.json?_labels=on&_shape=array&_sort=triple_id")
    first = response.json()[0]
    assert (first["subject"]["label"], first["object"]["label"]) == ("Max", "Chess")
    page = (await datasette.client.get("/mine/tunnels")).text
    assert 'href="/mine/drawers/1"' in page


def test_queries_are_documented_for_every_table():
    text = " ".join(QUERIES)
    assert all(
        f"from {table}" in text for table in ("hallways", "tunnels", "kg_triples", "mempalace_origins")
    )
