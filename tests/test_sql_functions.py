"""The SQL functions, on plain connections and with every argument a person may think of."""

import json

import pytest
from datasette.utils.sqlite import sqlite3

from building import find, make_palace
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.sql_functions import register

DRAWERS = [
    Drawer("the red fox runs through the forest", drawer_id="fox", wing="animals", room="land"),
    Drawer("the blue whale swims in the sea", drawer_id="whale", wing="animals", room="sea"),
    Drawer("tax report of the forest office", drawer_id="tax", wing="[finance", room=None),
]


@pytest.fixture(scope="module")
def palace(tmp_path_factory):
    with make_palace(tmp_path_factory.mktemp("sql") / "p.db", DRAWERS) as palace:
        yield palace


@pytest.fixture
def connection(palace):
    connection = sqlite3.connect(f"file:{palace.path}?mode=ro", uri=True)
    register(connection, palace)
    yield connection
    connection.close()


def value(connection, query, *parameters):
    return connection.execute(query, parameters).fetchone()[0]


def ids(text):
    return [hit["drawer_id"] for hit in json.loads(text)]


def test_one_to_five_arguments(connection, palace):
    expected = [hit["drawer_id"] for hit in find(palace, "forest animal")["results"]]
    assert ids(value(connection, "select mempalace_search('forest animal')")) == expected
    assert ids(value(connection, "select mempalace_search('forest animal', 'animals')")) == ["fox", "whale"]
    assert ids(value(connection, "select mempalace_search('forest animal', null, 'sea')")) == ["whale"]
    assert ids(value(connection, "select mempalace_search('forest animal', '', '', 1)")) == expected[:1]
    options = "json_object('max_distance', 0.6, 'candidate_strategy', 'vector')"
    assert ids(value(connection, f"select mempalace_search('forest animal', null, null, null, {options})"))


def test_wings_as_a_json_array(connection):
    query = "select mempalace_search('forest', json_array('animals', '[finance'))"
    assert set(ids(value(connection, query))) == {"fox", "whale", "tax"}
    assert ids(value(connection, "select mempalace_search('forest', '[finance')")) == ["tax"]
    assert ids(value(connection, "select mempalace_search('forest', null, json_array(null))")) == ["tax"]


@pytest.mark.parametrize("query", [None, "", "   "])
def test_no_words_give_no_hits(connection, query):
    assert value(connection, "select mempalace_search(?)", query) == "[]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("'x', null, null, 0", "n_results: '0' is not allowed"),
        ("'x', null, null, 'many'", "n_results: 'many' is not allowed"),
        ("'x', null, null, 5000", "1 to 1,000"),
        ("'x', null, null, 5, 'no json'", "options: 'no json' is not allowed; it must be a JSON object"),
        ("'x', null, null, 5, '[1]'", "it must be a JSON object"),
        ("'x', null, null, 5, '{\"limit\": 5}'", "options: 'limit'"),
        ("'x', null, null, 5, '{\"since\": \"soon\"}'", "since: 'soon' is not allowed"),
        ("'x', '[]'", "at least one name"),
        ("'x', x'00ff'", "wing"),
    ],
)
def test_a_problem_is_a_readable_error_object(connection, arguments, said):
    answer = json.loads(value(connection, f"select mempalace_search({arguments})"))
    assert answer["ok"] is False
    assert answer["status"] == 400
    assert said in answer["error"]


def test_a_wrong_number_of_arguments_is_told_by_sqlite(connection):
    with pytest.raises(
        sqlite3.OperationalError, match="wrong number of arguments to function mempalace_search"
    ):
        connection.execute("select mempalace_search()")


def test_hits_join_drawers_and_are_filtered_by_sql(connection):
    query = """
        select drawers.drawer_id, json_extract(hit.value, '$.score') as score
        from json_each((select mempalace_search('forest'))) as hit
        join drawers on drawers.id = json_extract(hit.value, '$.id')
        where drawers.wing = 'animals' order by hit.key
    """
    assert [row[0] for row in connection.execute(query)] == ["fox", "whale"]


def test_the_same_search_in_one_query_runs_once(connection, palace, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "datasette_mempalace.sql_functions.run_search", lambda *given: calls.append(given) or {"results": []}
    )
    connection.execute(
        "select drawers.id from drawers left join json_each(mempalace_search('once only'))"
    ).fetchall()
    assert len(calls) == 1


def test_a_change_of_the_data_is_seen_by_the_same_connection(tmp_path):
    with make_palace(tmp_path / "p.db", [Drawer("the red fox", drawer_id="fox")]) as palace:
        connection = sqlite3.connect(palace.path)
        register(connection, palace)
        query = "select mempalace_search('fox', null, null, null, json_object('vector_disabled', 1))"
        assert ids(value(connection, query)) == ["fox"]
        put_drawers(palace, [Drawer("the red fox", drawer_id="second")])
        assert set(ids(value(connection, query))) == {"fox", "second"}
        connection.execute("delete from drawers where drawer_id = 'fox'")
        assert ids(value(connection, query)) == ["second"]
        connection.close()


def test_a_time_limit_becomes_an_error_object(connection):
    connection.set_progress_handler(lambda: 1, 1)
    try:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute("select mempalace_search('forest at midnight')").fetchone()
    finally:
        connection.set_progress_handler(None, 0)
    assert ids(value(connection, "select mempalace_search('forest at midnight')"))


def test_case_19_a_persons_words_as_a_safe_match_expression(connection):
    query = "select count(*) from drawers_fts where drawers_fts match mempalace_fts_query(?)"
    assert value(connection, query, "red fox") == 1
    assert value(connection, query, "red-fox") == 1
    assert value(connection, query, 'NOT "unbal') == 0
    assert value(connection, query, "") == 0
    assert value(connection, query, None) == 0


def test_similarity_of_a_drawer_and_a_text(connection):
    same = value(connection, "select mempalace_similarity('fox', 'the red fox runs through the forest')")
    assert same == pytest.approx(1, abs=1e-4)
    assert value(connection, "select mempalace_similarity(1, 'the red fox runs through the forest')") == same
    ordered = connection.execute(
        "select drawer_id from drawers order by mempalace_similarity(drawer_id, 'an animal of the ocean') desc"
    ).fetchall()
    assert ordered[0] == ("whale",)
    for arguments in ("'nobody', 'x'", "null, 'x'", "'fox', null", "'fox', ' '"):
        assert value(connection, f"select mempalace_similarity({arguments})") is None


async def test_searching_leaves_no_temporary_schema_for_the_page_of_the_database_to_list(served):
    database = served.get_database("palace")
    for query in (
        "select mempalace_search('login token')",
        "select snippet from mempalace_search('login token')",
        "select mempalace_search('tokne')",
    ):
        found = await database.execute(query)
        assert found.rows
    assert [each.name for each in await database.attached_databases()] == []


async def test_the_table_has_snippets_without_marks(served):
    found = await served.get_database("palace").execute("select snippet from mempalace_search('login token')")
    assert any("token" in row[0] for row in found.rows)
    assert not any(mark in row[0] for row in found.rows for mark in "\x01\x02")
