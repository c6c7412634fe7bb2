"""`mempalace_search` as a table: the same hits as the function's, narrowed by the conditions of the statement."""

import json
import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
from datasette.utils.sqlite import sqlite3
from hypothesis import given, settings
from hypothesis import strategies as st

from building import find, make_palace
from datasette_mempalace import search_table, sql_tables, table_function
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.palace import Palace
from datasette_mempalace.scope import Scope
from datasette_mempalace.search_table import COLUMNS, PARAMETERS, SHAPE, narrowed
from datasette_mempalace.snippets import plain
from datasette_mempalace.sql_functions import register
from datasette_mempalace.table_function import Condition

WHY_OFF = sql_tables.why_off(Settings())
pytestmark = pytest.mark.skipif(WHY_OFF is not None, reason=str(WHY_OFF))

WINGS = ["acme", "[acme]", "5", "05", "5.0", "日本語", "", None, "O'Brien", "ACME"]
ROOMS = ["auth", "Auth", "", None]
SOURCES = ["/a/notes.md", "/b/notes.md", "C:\\docs\\notes.md", "/a/Notes.md", "/dir/", "", None, "notes.md"]
FILED = [
    "2026-03-01T00:30:00+02:00", "2026-02-28T23:00:00", "2026-03-01", "2026-03-01 00:00:00", "yesterday", "", None,
    "2026-03-01T00:00:00Z", "20260301", "2026-12-31T23:59:59.999",
]  # fmt: skip


def odd_drawers():
    """Drawers whose columns hold what any writer may leave in them."""
    for number in range(60):
        yield Drawer(
            f"token {number}: the {'lamp' if number % 3 else 'ship'} of keeper {number % 7}",
            drawer_id=f"d{number}",
            wing=WINGS[number % len(WINGS)],
            room=ROOMS[number % len(ROOMS)],
            source_file=SOURCES[number % len(SOURCES)],
            chunk_index=[number % 5, None][number % 11 == 0],
            filed_at=FILED[number % len(FILED)],
            authored_at=FILED[number * 3 % len(FILED)],
            content_date=["2026-01-02", "2026-01", None][number % 3],
            hall=["h1", "h2", None][number % 3],
            added_by=["anna", "Anna", "bert", None][number % 4],
        )


@pytest.fixture(scope="module")
def palace(tmp_path_factory):
    with make_palace(tmp_path_factory.mktemp("table") / "odd.db", odd_drawers()) as palace:
        with palace.writer() as writer:
            for column, values in (
                ("wing", WINGS),
                ("room", ROOMS),
                ("source_file", SOURCES),
                ("filed_at", FILED),
            ):
                for number in range(60):
                    value = values[number % len(values)]
                    writer.execute(
                        f"update drawers set {column} = ? where drawer_id = ?", [value, f"d{number}"]
                    )
            writer.execute("update drawers set chunk_index = 'seven' where drawer_id = 'd7'")
        yield palace


@pytest.fixture(scope="module")
def connection(palace):
    connection = sqlite3.connect(f"file:{palace.path}?mode=ro", uri=True, check_same_thread=False)
    register(connection, palace)
    connection.execute(
        "create temp table everything as select * from mempalace_search('lamp of the keeper', null, null, 1000)"
    )
    yield connection
    connection.close()


@pytest.fixture
def searches(monkeypatch):
    """The requests that were searched for."""
    made = []
    run = search_table.run_search
    monkeypatch.setattr(
        search_table,
        "run_search",
        lambda palace, request, *more: made.append(request) or run(palace, request, *more),
    )
    return made


@pytest.fixture
def fresh(palace, searches):
    """A connection that remembers nothing yet."""
    connection = sqlite3.connect(f"file:{palace.path}?mode=ro", uri=True)
    register(connection, palace)
    yield connection
    connection.close()


def rows(connection, query, *parameters, **named):
    return [tuple(row) for row in connection.execute(query, named or parameters)]


def column(connection, query, *parameters):
    return [row[0] for row in connection.execute(query, parameters)]


# The same hits


def test_a_row_is_a_hit(connection, palace):
    hits = find(palace, "lamp of the keeper", n_results=30)["results"]
    cursor = connection.execute("select * from mempalace_search('lamp of the keeper', null, null, 30)")
    names = [each[0] for each in cursor.description]
    assert names == list(COLUMNS)
    always = set(COLUMNS) - {"explain"}
    assert always == {key for hit in hits for key in hit}, "a column for every key of a hit"
    assert not set(COLUMNS) & set(PARAMETERS)
    for row, hit in zip(cursor.fetchall(), hits, strict=True):
        for name, value in zip(names, row, strict=True):
            expected = plain(hit["snippet"]) if name == "snippet" else hit.get(name)
            assert (json.loads(value) if isinstance(expected, list) else value) == expected, name


ARGUMENTS = [
    "'keeper ship'",
    "'keeper ship', 'acme'",
    "'keeper ship', json_array('acme', null)",
    "'keeper ship', '', 'auth', 5",
    "'keeper ship', null, null, '7', json_object('candidate_strategy', 'vector', 'since', '2026-03-01')",
    "'keeper ship', null, null, null, json_object('next', 3, 'wing__isnull', 1)",
    "null",
    "' '",
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_the_table_and_the_function_find_the_same(connection, arguments):
    hits = json.loads(column(connection, f"select mempalace_search({arguments})")[0])
    found = rows(connection, f"select rank, id, score from mempalace_search({arguments}) order by rank")
    assert found == [(hit["rank"], hit["id"], hit["score"]) for hit in hits]


def test_both_forms_in_one_statement(connection):
    query = (
        "select json_array_length(mempalace_search('lamp')), (select count(*) from mempalace_search('lamp'))"
    )
    assert rows(connection, query) == [(10, 10)]


def test_the_statement_it_is_made_for(connection):
    query = """
        select d.*, s.score from mempalace_search(:q) s join drawers d on d.id = s.id
        where s.wing = :wing and s.score > 0.4 order by s.rank
    """
    found = connection.execute(query, {"q": "lamp of the keeper", "wing": "acme"}).fetchall()
    everything = rows(connection, "select id from drawers where wing = 'acme'")
    assert {row[0] for row in found} <= {row[0] for row in everything}
    assert found
    assert all(row[-1] > 0.4 for row in found)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("'x', null, null, 0", "n_results: '0' is not allowed; it must be a whole number from 1 to 1,000."),
        ("'x', null, null, 5, 'no json'", "options: 'no json' is not allowed; it must be a JSON object"),
        ("'x', null, null, 5, '{\"limit\": 5}'", "options: 'limit' is not allowed"),
        ("'x', '[]'", "wing: '[]' is not allowed"),
        ("x'00ff'", "q: b'\\x00\\xff' is not allowed"),
    ],
)
def test_a_problem_is_told_in_words(connection, problem, said):
    with pytest.raises(sqlite3.OperationalError) as raised:
        rows(connection, f"select * from mempalace_search({problem})")
    assert str(raised.value).startswith(f"mempalace_search: {said}")


def test_words_that_are_missing(connection):
    with pytest.raises(
        sqlite3.OperationalError, match=r"argument query is missing; write mempalace_search\(:query\)"
    ):
        rows(connection, "select * from mempalace_search where wing = 'acme'")


# What is pushed down

NARROWED = [
    ("wing = 'acme'", Scope(wings=("acme",))),
    ("wing in ('acme', '5')", Scope(wings=("5", "acme"))),
    ("wing = 'acme' or wing = '5'", Scope(wings=("5", "acme"))),
    ("wing is null", Scope(wings=(None,))),
    ("room is 'auth' and wing = 'acme'", Scope(wings=("acme",), rooms=("auth",))),
    ("source_path = '/a/notes.md'", Scope(source_files=("/a/notes.md",))),
    ("id in (3, '4', 5.0)", Scope(ids=(3, 4, 5))),
    ("wing in ('acme', 5)", Scope(wings=("5", "acme"))),
    ("id in (select id from drawers where id < 3)", Scope(ids=(1, 2))),
]


@pytest.mark.parametrize(("where", "scope"), NARROWED)
def test_conditions_become_the_scope(fresh, searches, where, scope):
    rows(fresh, f"select id from mempalace_search('lamp') where {where}")
    (made,) = searches
    as_sets = {
        name: set(value) if isinstance(value, tuple) else value for name, value in vars(made.scope).items()
    }
    assert as_sets == {
        name: set(value) if isinstance(value, tuple) else value for name, value in vars(scope).items()
    }


@pytest.mark.parametrize(
    "where",
    [
        "wing = 5", "wing = 5.0", "wing = x'05'", "id in ('a', 'b')", "chunk_index = 1.5",
        "wing = 'ACME' collate nocase", "wing like 'acme'", "wing <> 'acme'", "+wing = 'acme'",
        "score > 0.5", "rank < 4", "id = 3", "wing = 'acme' or room = 'auth'", "heading = 'x'", "wing > 7",
    ],
)  # fmt: skip
def test_what_may_mean_something_else_to_sqlite_is_left_to_it(fresh, searches, where):
    rows(fresh, f"select id from mempalace_search('lamp') where {where}")
    assert [made.scope for made in searches] == [Scope()]


def test_the_plan_shows_it(connection):
    query = """
        explain query plan select id from mempalace_search('lamp')
        where wing in ('acme', '5') and room = 'auth' and source_file = 'notes.md' and filed_at >= '2026'
        and filed_at < '2027' and id in (1, 2) order by rank limit 5
    """
    said = " ".join(row[3] for row in rows(connection, query))
    for part in ("wing in", "room =", "source_file =", "filed_at >=", "filed_at <", "id in", "limit"):
        assert part in said
    assert "ORDER BY" not in said


def test_arguments_options_and_conditions_hold_together(fresh, searches):
    found = rows(
        fresh,
        "select wing from mempalace_search('lamp', '[\"acme\", \"5\"]', null, 100, json_object('ids', json_array(1, 3)))"
        " where wing in ('acme', '日本語') and id in (1, 2)",
    )
    assert [made.scope for made in searches] == [Scope(wings=("acme",), ids=(1,))]
    assert found == [("acme",)]
    query = "select 1 from mempalace_search('lamp', 'acme') where wing = '5'"
    assert rows(fresh, query) == []
    assert len(searches) == 1, "what cannot match is not searched for"


def test_a_scope_that_is_narrowed_to_nothing():
    assert narrowed(Scope(ids=(1,)), Condition("id", "in", (2,))) is None
    assert narrowed(Scope(rooms=("a",)), Condition("room", "=", "b")) is None
    assert narrowed(Scope(rooms=("a", None)), Condition("room", "is null", None)) == Scope(rooms=(None,))


def test_a_limit_asks_for_more_and_never_for_fewer(fresh, searches):
    lamp = "mempalace_search('lamp')"
    for rest, wanted in [
        (f"{lamp} limit 3", 10),
        (f"{lamp} order by rank limit 25", 25),
        (f"{lamp} order by rank limit 20 offset 5", 25),
        (f"{lamp} where hall in ('h1', 'h2') order by rank limit 26", 26),
        (f"{lamp} limit 5000", 1000),
        (f"{lamp} where score > 0 limit 24", 10),
        (f"{lamp} where wing = 5 limit 24", 10),
        (f"{lamp} order by score limit 24", 10),
        ("mempalace_search('lamp', null, null, 7) limit 24", 7),
        ("mempalace_search('lamp', null, null, null, '{\"n_results\": 8}') limit 24", 8),
    ]:
        rows(fresh, f"select id from {rest}")
        assert searches[-1].n_results == wanted, rest


def test_a_limit_that_is_pushed_down_cuts_the_same_ranking(connection):
    for limit in (1, 5, 10, 20, 39):
        query = "select id from mempalace_search('lamp of the keeper', null, null, {n}) where hall in ('h1', 'h2') {order}"
        cut = column(connection, query.format(n="null", order=f"order by rank limit {limit}"))
        asked = column(connection, query.format(n=max(limit, 10), order="order by rank"))
        assert cut == asked[:limit]


TEXTS = {
    "wing": [*WINGS, "b", "a"], "room": ROOMS, "source_path": SOURCES, "source_file": ["notes.md", "Notes.md", "dir", "", None],
    "filed_at": [*FILED, "2026-03"], "authored_at": FILED, "content_date": ["2026-01", "2026-01-02", None],
    "hall": ["h1", "h3", None], "added_by": ["anna", "Anna", None], "drawer_id": ["d1", "d2", "D1", None],
    "chunk_index": [0, 1, 3, "2", "02", "2.0", "seven", None, 2.5], "id": [1, 2, 3, "4", "05", 6.0, "x", None],
}  # fmt: skip
ODD_VALUES = [None, 5, 5.0, 1.5, -1, b"acme", "", "5", "acme\0", 2**62, "'", '["a"]']


@st.composite
def conditions(draw):
    """A condition with the values it binds, in one of the ways in which people write them."""
    name = draw(st.sampled_from(sorted(TEXTS)))
    value = st.one_of(st.sampled_from(TEXTS[name]), st.sampled_from(ODD_VALUES))
    form = draw(
        st.sampled_from(
            ["{c} {o} ?", "{c} {o} ?", "? {o} {c}", "{c} in ({many})", "{c} in ({many})", "{c} is ?", "{c} is null",
             "{c} is not null", "{c} {o} cast(? as text)", "{c} {o} cast(? as integer)", "{c} {o} ? collate nocase",
             "{c} in (select value from json_each(json_array({texts})))", "{c} between ? and ?", "+{c} {o} ?",
             "{c} in (select {stored} from drawers where id % 3 = 0)", "{c} = (select {stored} from drawers where id = 9)",
             "({c} = ? or {c} = ?)", "not {c} {o} ?", "{c} like ?"]
        )
    )  # fmt: skip
    many = ", ".join("?" * draw(st.integers(1, 4)))
    texts = many if "{texts}" in form else ""
    stored = {"source_path": "source_file"}.get(name, name)
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "=", "<>"]))
    sql = form.format(c=name, o=operator, many=many, texts=texts, stored=stored)
    plain = [one for one in [*TEXTS[name], *ODD_VALUES] if not isinstance(one, bytes)]
    values = st.sampled_from(plain) if texts else value
    return sql, [draw(values) for _ in range(sql.count("?"))]


@settings(max_examples=300, deadline=None)
@given(st.lists(conditions(), min_size=1, max_size=3))
def test_the_answer_is_the_same_with_and_without_push_down(connection, wanted):
    where = " and ".join(sql for sql, _ in wanted)
    values = [value for _, bound in wanted for value in bound]
    searched = "select id from mempalace_search('lamp of the keeper', null, null, 1000)"
    found = column(connection, f"{searched} where {where}", *values)
    assert Counter(found) == Counter(column(connection, f"select id from everything where {where}", *values))


def plainly(row, name, operator, value):
    """A condition as Python has it, for texts and numbers of the column's own kind."""
    held = row[name]
    if operator == "in":
        return held in value
    if held is None:
        return False
    return {
        "=": held == value,
        "<": held < value,
        "<=": held <= value,
        ">": held > value,
        ">=": held >= value,
    }[operator]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([name for name in TEXTS if name not in ("chunk_index", "id")]),
    st.sampled_from(["=", "<", "<=", ">", ">=", "in"]),
    st.data(),
)
def test_the_answer_is_the_same_as_filtering_in_python(connection, palace, name, operator, data):
    choices = st.sampled_from([each for each in TEXTS[name] if each is not None])
    value = data.draw(st.lists(choices, min_size=2, max_size=3) if operator == "in" else choices)
    place = f"({', '.join('?' * len(value))})" if operator == "in" else "?"
    found = column(
        connection,
        f"select id from mempalace_search('lamp of the keeper', null, null, 1000) where {name} {operator} {place}",
        *(value if operator == "in" else [value]),
    )
    hits = find(palace, "lamp of the keeper", n_results=1000)["results"]
    assert set(found) == {hit["id"] for hit in hits if plainly(hit, name, operator, value)}


# One search a statement

ONCE = [
    "select d.id from drawers d join mempalace_search('lamp') s on s.id = d.id",
    "select d.id from mempalace_search('lamp') s join drawers d on s.id = d.id",
    "select d.id from drawers d left join mempalace_search('lamp') s on s.id = d.id",
    "select d.id from mempalace_search('lamp') s left join drawers d on s.id = d.id",
    "select d.id from drawers d cross join mempalace_search('lamp') s on s.id = d.id",
    "select d.id from drawers d join mempalace_search('lamp') s on s.wing = d.wing",
    "select d.id from drawers d join mempalace_search('lamp') s on s.wing = d.wing and s.room = d.room where d.hall = 'h1'",
    "select d.id from drawers d join mempalace_search('lamp') s on s.source_path = d.source_file where s.wing = 'acme'",
    "select d.id from drawers d, mempalace_search('lamp') s where s.id = d.id and d.id = 5",
    "select d.id from drawers d join drawers e using (id) join mempalace_search('lamp') s on s.id = e.id and s.wing = d.wing",
    "with w(wing) as (values ('acme'), ('5'), (null)) select s.id from w join mempalace_search('lamp') s using (wing)",
    "select id from drawers where id in (select id from mempalace_search('lamp'))",
    "select id from drawers d where exists (select 1 from mempalace_search('lamp') s where s.id = d.id)",
    "select id, (select rank from mempalace_search('lamp') s where s.id = d.id) from drawers d",
    "select id from mempalace_search('lamp') where id in (select id from drawers)",
    "select id from mempalace_search('lamp') where wing in (select distinct wing from drawers)",
    "select id from mempalace_search('lamp') where wing = 'acme' or room = 'auth' or id = 4",
    "select id from mempalace_search('lamp') union all select id from mempalace_search('lamp')",
    "with s as (select * from mempalace_search('lamp')) select a.id from s a join s b on a.rank = b.rank + 1",
    "with s as materialized (select * from mempalace_search('lamp')) select a.id from s a, s b",
    "select wing, count(*), (select count(*) from mempalace_search('lamp')) from mempalace_search('lamp') group by wing",
]


@pytest.mark.parametrize("statement", ONCE)
def test_one_search_a_statement(fresh, searches, statement):
    rows(fresh, statement)
    assert len(searches) == 1


def test_a_search_for_every_wing_where_that_is_asked_for(fresh, searches):
    query = "select d.id, s.id from drawers d left join mempalace_search('lamp') s on s.wing = d.wing and s.id = d.id"
    rows(fresh, query)
    assert len(searches) == len({wing for wing in WINGS if wing is not None})


def test_the_same_search_again_is_remembered_until_the_palace_changes(tmp_path, searches):
    with make_palace(tmp_path / "p.db", [Drawer("the red fox", drawer_id="fox")]) as palace:
        connection = sqlite3.connect(palace.path)
        register(connection, palace)
        query = "select drawer_id from mempalace_search('fox', null, null, null, '{\"vector_disabled\": 1}')"
        for _ in range(3):
            assert column(connection, query) == ["fox"]
        assert len(searches) == 1
        put_drawers(palace, [Drawer("the red fox", drawer_id="second")])
        assert set(column(connection, query)) == {"fox", "second"}
        connection.execute("delete from drawers where drawer_id = 'fox'")
        assert column(connection, query) == ["second"]
        connection.close()


def test_what_is_remembered_is_bounded(fresh, searches, palace, monkeypatch):
    monkeypatch.setattr(search_table, "REMEMBERED_HITS", 25)
    made = search_table._Searches(palace, fresh)
    for words in ("lamp", "ship", "keeper", "token"):
        made.rows({"query": words, **dict.fromkeys(PARAMETERS[1:])}, (), None)
    assert len(made.remembered) == 2
    made.rows({"query": "lamp", "in_wing": None, "in_room": None, "n_results": 50, "options": None}, (), None)
    assert len(made.remembered) == 1


# Where it lives


def test_switched_off_by_a_setting(palace):
    off = Settings(table_function=False)
    assert sql_tables.why_off(off) == "the setting table_function is false"
    with Palace.open(palace.path, off) as switched_off:
        connection = sqlite3.connect(palace.path)
        register(connection, switched_off)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            rows(connection, "select * from mempalace_search('lamp')")
        assert len(json.loads(column(connection, "select mempalace_search('lamp')")[0])) == 10
        connection.close()


@pytest.mark.parametrize("way", ["unproven", "refused"])
def test_everything_else_works_without_it(palace, monkeypatch, way):
    def refuse(*given):
        raise RuntimeError("no")

    if way == "unproven":
        monkeypatch.setattr(table_function, "why_off", lambda module: "the self-test failed")
    else:
        monkeypatch.setattr(table_function, "register", refuse)
    connection = sqlite3.connect(palace.path)
    register(connection, palace)
    assert len(json.loads(column(connection, "select mempalace_search('lamp')")[0])) == 10
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        rows(connection, "select * from mempalace_search('lamp')")
    connection.close()


@pytest.mark.parametrize("options", ["mode=ro", "mode=ro&immutable=1", "mode=rw"])
def test_files_that_can_only_be_read(palace, tmp_path, options):
    palace.checkpoint()
    copy = tmp_path / "copy.db"
    shutil.copy(palace.path, copy)
    copy.chmod(0o444)
    with Palace.open(copy, read_only=True) as read_only:
        connection = sqlite3.connect(f"file:{copy}?{options}", uri=True)
        register(connection, read_only)
        connection.execute("pragma query_only = on")
        assert len(rows(connection, "select id from mempalace_search('lamp') where wing = 'acme'")) == 6
        connection.close()


def test_sixteen_threads_with_connections_of_their_own(palace):
    def work(number):
        connection = sqlite3.connect(f"file:{palace.path}?mode=ro", uri=True)
        register(connection, palace)
        for turn in range(6):
            wing = ["acme", "5", "ACME"][(number + turn) % 3]
            found = column(connection, "select wing from mempalace_search('lamp') where wing = ?", wing)
            assert found == [wing] * 6
            with pytest.raises(sqlite3.OperationalError, match="n_results"):
                rows(connection, "select * from mempalace_search('lamp', null, null, ?)", -turn)
        connection.close()
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(32)))


def test_an_interruption_inside_the_search(fresh):
    fresh.set_progress_handler(lambda: 1, 1)
    with pytest.raises(sqlite3.OperationalError) as raised:
        rows(fresh, "select * from mempalace_search('lamp at midnight')")
    assert str(raised.value) == "interrupted", "as Datasette knows it"
    fresh.set_progress_handler(None, 0)
    assert rows(fresh, "select id from mempalace_search('lamp at midnight')")


# Through Datasette


async def ask(datasette, sql, **parameters):
    query = urlencode({"sql": sql, "_shape": "array", **parameters})
    return await datasette.client.get(f"/palace.json?{query}", follow_redirects=True)


async def test_through_datasettes_json_api(served):
    query = """
        select d.*, s.score from mempalace_search(:q) s join drawers d on d.id = s.id
        where s.wing = :wing and s.score > 0.4 order by s.rank
    """
    response = await ask(served, query, q="login token", wing="acme-app")
    assert response.status_code == 200, response.text
    found = response.json()
    assert found
    assert {row["wing"] for row in found} == {"acme-app"}
    response = await ask(served, "select * from mempalace_search(:q, '', '', :n)", q="token", n="none")
    assert response.status_code == 400
    assert response.json()["error"].startswith("mempalace_search: n_results: 'none' is not allowed")


async def test_an_immutable_palace_through_datasette(make_datasette, palace_named):
    copy = palace_named("palace.db")
    datasette = make_datasette(immutables=[str(copy)])
    response = await ask(
        datasette, "select wing from mempalace_search('token') where wing in ('markup', 'a/b')"
    )
    assert sorted(row["wing"] for row in response.json()) == ["a/b", "markup"]


async def test_no_table_in_other_databases(make_datasette, palace_path, tmp_path):
    sqlite3.connect(tmp_path / "other.db").execute("create table t(id)").connection.close()
    datasette = make_datasette(palace_path, tmp_path / "other.db")
    query = urlencode({"sql": "select * from mempalace_search('token')", "_shape": "array"})
    response = await datasette.client.get(f"/other.json?{query}", follow_redirects=True)
    assert response.status_code == 400
    assert "no such table" in response.json()["error"]


async def test_datasettes_time_limit(make_datasette, palace_path, monkeypatch):
    datasette = make_datasette(palace_path, settings={"sql_time_limit_ms": 100})
    await ask(datasette, "select 1")

    def slow(palace, request, connection):
        time.sleep(0.15)
        connection.execute(
            "with recursive c(n) as (select 1 union all select n + 1 from c) select max(n) from c"
        )

    monkeypatch.setattr(search_table, "run_search", slow)
    response = await ask(datasette, "select * from mempalace_search('token')")
    assert response.status_code == 400
    assert "time limit" in response.text.lower()
    monkeypatch.undo()
    assert (await ask(datasette, "select 1 as one")).json() == [{"one": 1}]


async def test_many_requests_at_once(served):
    import asyncio

    queries = [
        f"select rank from mempalace_search('token {n % 5}') where wing = 'acme-app'" for n in range(40)
    ]
    answers = await asyncio.gather(*(ask(served, query) for query in queries))
    assert {response.status_code for response in answers} == {200}
    assert all(len(response.json()) == 10 for response in answers)


def test_the_shape_names_columns_that_there_are():
    assert set(SHAPE.narrowing) <= set(COLUMNS)
    assert SHAPE.key in COLUMNS
    assert SHAPE.order in COLUMNS
