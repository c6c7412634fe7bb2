"""Table-valued functions through ctypes: what reaches the function, what reaches the statement, and what must not crash."""

import itertools
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from datasette.utils.sqlite import sqlite3

from datasette_mempalace import table_function
from datasette_mempalace.table_function import Condition, Rows, Shape, TableError, glue, proof, why_off
from datasette_mempalace.table_function.library import Library
from datasette_mempalace.table_function.shapes import Offer, plan

pytestmark = pytest.mark.skipif(why_off(sqlite3) is not None, reason=str(why_off(sqlite3)))
FOLDER = Path(table_function.__file__).parent
SHAPE = Shape(
    name="numbers",
    columns={"n": "integer", "square": "integer", "word": "text", "extra": ""},
    parameters=("count", "prefix", "given"),
    key="n",
    narrowing={
        "square": frozenset({"in", "=", "<", ">="}),
        "word": frozenset({"=", "in", "is", "is null"}),
        "n": frozenset({"in"}),
    },
    order="n",
)


class Numbers:
    """A table of numbers that notes what it was asked for and narrows nothing itself."""

    def __init__(self):
        self.asked = []

    def rows(self, arguments, conditions, limit):
        self.asked.append((arguments, conditions, limit))
        if callable(arguments["count"]) or arguments["count"] is None:
            return Rows([])
        if arguments["count"] == -1:
            raise TableError("count: é is too small")
        if arguments["count"] == -2:
            raise KeyError("lost")
        if arguments["count"] == -3:
            raise sqlite3.OperationalError("interrupted")
        if arguments["count"] == -4:
            raise KeyboardInterrupt
        return Rows(
            [
                {
                    "n": n,
                    "square": n * n,
                    "word": f"{arguments['prefix'] or ''}{n}",
                    "extra": arguments["given"],
                }
                for n in range(int(arguments["count"]))
            ]
        )


@pytest.fixture
def numbers():
    return Numbers()


@pytest.fixture
def connection(numbers):
    connection = sqlite3.connect(":memory:")
    kept = table_function.register(sqlite3, connection, SHAPE, numbers.rows)
    connection.execute("create table t(id integer primary key, square integer, word text)")
    connection.executemany("insert into t values (?, ?, ?)", [(n, n * n, str(n)) for n in range(50)])
    yield connection
    connection.close()
    del kept


def rows(connection, query, *parameters):
    return [tuple(row) for row in connection.execute(query, parameters)]


def explained(connection, query):
    return " | ".join(row[3] for row in connection.execute(f"explain query plan {query}"))


# What reaches the function


def test_arguments_by_place_and_by_name(connection, numbers):
    assert rows(connection, "select word from numbers(2, 'a')") == [("a0",), ("a1",)]
    assert rows(connection, "select word from numbers where count = 2 and prefix = 'a'") == [("a0",), ("a1",)]
    assert rows(connection, "select count, prefix, given from numbers(1, 'a')") == [(1, "a", None)]
    assert {tuple(asked[0].items()) for asked in numbers.asked} == {
        (("count", count), ("prefix", "a"), ("given", None)) for count in (2, 1)
    }


def test_a_null_argument_is_an_argument(connection):
    assert rows(connection, "select word from numbers(2, null)") == [("0",), ("1",)]
    assert rows(connection, "select word from numbers(null)") == []
    many = " and ".join(f"word <> 'x{place}'" for place in range(30))
    assert rows(connection, f"select word from numbers(2, null) where {many}") == [("0",), ("1",)]


def test_a_list_for_an_argument_is_several_calls(connection, numbers):
    query = "select count, n from numbers where count in (1, 2) order by count, n"
    assert rows(connection, query) == [(1, 0), (2, 0), (2, 1)]
    assert len(numbers.asked) == 2


@pytest.mark.parametrize("value", [None, 5, -(2**63), 2**63 - 1, 1.5, "é\0x", "", b"\0\xff", b""])
def test_values_come_back_as_they_went_in(connection, value):
    assert rows(connection, "select extra, given from numbers(1, null, ?)", value) == [(value, value)]


def test_a_text_that_is_not_utf8_arrives_as_bytes(connection, numbers):
    rows(connection, "select 1 from numbers(1, cast(x'c328' as text))")
    assert numbers.asked[0][0]["prefix"] == b"\xc3\x28"


def test_lists_mappings_and_odd_values_are_json():
    connection = sqlite3.connect(":memory:")
    found = [{"n": 1, "square": [1, {"a": "é"}]}, {"n": 2, "square": {"k": None}}, {"n": 3, "square": 2**70}]
    found.append({"n": 4, "square": True})
    kept = table_function.register(sqlite3, connection, SHAPE, lambda *given: Rows(found))
    assert rows(connection, "select square, word from numbers(1)") == [
        ('[1, {"a": "é"}]', None), ('{"k": null}', None), (str(2**70), None), (1, None),
    ]  # fmt: skip
    connection.close()
    del kept


@pytest.mark.parametrize(
    ("where", "conditions"),
    [
        ("square = 4", [("square", "=", 4)]),
        ("4 = square", [("square", "=", 4)]),
        ("square >= 1 and square < 9", [("square", ">=", 1), ("square", "<", 9)]),
        ("square in (4, 9, null, 4)", [("square", "in", {4, 9})]),
        ("square in (select 4 union select 1)", [("square", "in", {1, 4})]),
        ("square = 4 or square = 9", [("square", "in", {4, 9})]),
        ("n in (1, 2)", [("n", "in", {1, 2})]),
        ("word is null", [("word", "is null", None)]),
        ("word is 'a'", [("word", "is", "a")]),
        ("word is ?", [("word", "is", None)]),
        ("word = '2' collate nocase", []),
        ("word collate nocase in ('1', '2')", []),
        ("+square = 4", []),
        ("square > 4", []),
        ("n = 2", []),
        ("rowid = 2", []),
        ("square = 4 or word = '1'", []),
    ],
)
def test_conditions_that_it_takes_over_reach_it_and_are_checked(connection, numbers, where, conditions):
    given = (None,) if "?" in where else ()
    found = rows(connection, f"select n from numbers(5) where {where}", *given)
    ((_, taken, _),) = numbers.asked
    shown = [(c, o, set(v) if isinstance(v, tuple) else v) for c, o, v in taken]
    assert sorted(shown, key=str) == sorted(conditions, key=str)
    connection.execute("create table plain as select n, n as rowid_, square, word from numbers(5)")
    plain = where.replace("rowid", "rowid_") if where.startswith("rowid") else where
    assert found == rows(connection, f"select n from plain where {plain}", *given)


@pytest.mark.parametrize(
    "where", ["square = null", "square in (null)", "square < null", "n in (null, null)", "square = ?"]
)
def test_what_null_can_never_match_is_not_asked(connection, numbers, where):
    assert (
        rows(connection, f"select * from numbers(5) where {where}", *([None] if "?" in where else [])) == []
    )
    assert numbers.asked == []


@pytest.mark.parametrize(
    ("rest", "limit"),
    [
        ("limit 3", 3),
        ("order by n limit 3", 3),
        ("order by n, square desc limit 3 offset 2", 5),
        ("where square >= 0 order by n limit 3", 3),
        ("limit -1", None),
        ("limit 0", None),
        ("order by n desc limit 3", None),
        ("order by square limit 3", None),
        ("where word <> 'x' order by n limit 3", None),
        ("where word like '%' order by n limit 3", None),
        ("where length(word) > 0 limit 3", None),
        ("where n = 2 limit 3", None),
        ("group by word order by n limit 3", None),
    ],
)
def test_a_limit_counts_where_nothing_is_left_outside(connection, numbers, rest, limit):
    found = rows(connection, f"select n from numbers(9) {rest}")
    assert [asked[2] for asked in numbers.asked] in ([limit], [])
    connection.execute("create table plain as select * from numbers(9)")
    assert found == rows(connection, f"select n from plain {rest}")


def test_the_plan_says_what_was_taken_over(connection):
    query = (
        "select n from numbers(9) where square in (1, 4) and word is '1' and square >= 0 order by n limit 3"
    )
    said = explained(connection, query)
    assert "INDEX 0:count =, square in, word is, square >=, limit" in said
    assert "ORDER BY" not in said


def test_rows_in_another_order_are_sorted_by_sqlite(connection):
    assert rows(connection, "select n from numbers(3) order by n desc") == [(2,), (1,), (0,)]
    assert rows(connection, "select n from numbers(3) order by word desc, n") == [(2,), (1,), (0,)]


# One call, however the statement is written

JOINS = [
    "select t.id from numbers(9) s join t on t.id = s.n",
    "select t.id from t join numbers(9) s on t.id = s.n",
    "select t.id from t, numbers(9) s where s.n = t.id and t.word = '3'",
    "select t.id from t join numbers(9) s on s.square = t.square",
    "select t.id from t join numbers(9) s on s.square = t.square and s.n = t.id and s.word = t.word",
    "select t.id from t join numbers(9) s on s.square = t.square where s.word = '3'",
    "select t.id from numbers(9) s cross join t on t.id = s.n",
    "select t.id from t join t u using (id) join numbers(9) s on s.n = u.id and s.square = t.square",
    "with few(w) as (values ('3'), ('4')) select s.n from few join numbers(9) s on s.word = few.w",
    "select id from t where id in (select n from numbers(9))",
    "select n from numbers(9) where square in (select square from t where id < 5)",
    "select (select max(n) from numbers(9)) from t",
    "select s.n from numbers(9) s where exists (select 1 from t where t.id = s.n)",
    "select n from numbers(9) s where s.word = '3' or s.square = 4 or s.n = 5",
]


def different(asked):
    """How many different calls there were: the same one again can be remembered, as for a table taken for one row."""
    assert len(asked) <= 2
    return len({repr(each) for each in asked})


@pytest.mark.parametrize("takes_lists", [True, False])
@pytest.mark.parametrize("query", JOINS)
def test_one_call_a_statement(connection, numbers, query, takes_lists, monkeypatch):
    monkeypatch.setattr(glue.library_of(sqlite3), "takes_lists", takes_lists)
    found = rows(connection, query)
    assert different(numbers.asked) == 1
    connection.execute("create table plain as select * from numbers(9)")
    assert sorted(found) == sorted(rows(connection, query.replace("numbers(9)", "plain")))


def test_one_call_a_statement_whatever_the_statistics_say(connection, numbers):
    connection.execute("analyze")
    for counted in ("1", "1 1", "1000000", "1000000 1"):
        connection.execute("delete from sqlite_stat1")
        connection.execute("insert into sqlite_stat1 values ('t', null, ?)", [counted])
        connection.execute("analyze sqlite_master")
        for query in JOINS:
            numbers.asked.clear()
            rows(connection, query)
            assert different(numbers.asked) == 1, (counted, query)


def test_a_left_join_looks_rows_up_by_the_key(connection, numbers):
    query = "select t.id, s.square from t left join numbers(3) s on s.n = t.id where t.id < 5"
    assert rows(connection, query) == [(0, 0), (1, 1), (2, 4), (3, None), (4, None)]
    assert "n =" in explained(connection, query)
    assert {asked[1] for asked in numbers.asked} == {()}, "each time the same, so that it can be remembered"


def test_a_lookup_by_what_is_no_whole_number_is_left_to_sqlite(connection):
    for given, found in ((2, [(2,)]), (2.0, [(2,)]), ("2", [(2,)]), ("x", []), (2.5, []), (b"2", [])):
        assert rows(connection, "select n from numbers(3) where n = ?", given) == found


def test_an_argument_from_another_table_is_a_call_a_row(connection, numbers):
    query = "select t.id, s.n from t join numbers(t.id) s where t.id < 4 and s.n > 0"
    assert sorted(rows(connection, query)) == [(2, 1), (3, 1), (3, 2)]
    assert len(numbers.asked) == 4


def test_without_lists_sqlite_keeps_them_for_itself(connection, numbers, monkeypatch):
    monkeypatch.setattr(glue.library_of(sqlite3), "takes_lists", False)
    assert rows(connection, "select n from numbers(5) where square in (1, 4)") == [(1,), (2,)]
    assert [asked[1] for asked in numbers.asked] == [()]


def test_planning_refuses_an_argument_that_is_not_there_yet():
    assert plan(SHAPE, [Offer("count", "=", usable=False)], []) is None
    assert plan(SHAPE, [Offer("count", "=")], []).taken == [0]
    twice = plan(SHAPE, [Offer("count", "="), Offer("count", "=")], [])
    assert twice.taken == [0]


# What reaches the statement


def test_errors_reach_the_statement_in_words(connection, caplog):
    with pytest.raises(sqlite3.OperationalError) as raised:
        rows(connection, "select * from numbers(-1)")
    assert str(raised.value) == "numbers: count: é is too small"
    assert not caplog.records
    with pytest.raises(sqlite3.OperationalError, match="numbers: KeyError: 'lost'"):
        rows(connection, "select * from numbers(-2)")
    assert "numbers failed" in caplog.text
    for count in (-3, -4):
        with pytest.raises(sqlite3.OperationalError) as raised:
            rows(connection, f"select * from numbers({count})")
        assert str(raised.value) == "interrupted"
    with pytest.raises(sqlite3.OperationalError, match=r"argument count is missing; write numbers\(:count\)"):
        rows(connection, "select * from numbers")
    with pytest.raises(sqlite3.OperationalError, match=r"too many arguments on numbers\(\) - max 3"):
        rows(connection, "select * from numbers(1, 2, 3, 4)")
    assert rows(connection, "select n from numbers(1)") == [(0,)]


def test_a_table_cannot_be_made_of_it_or_written_to(connection):
    for statement in (
        "create virtual table x using numbers",
        "delete from numbers",
        "insert into numbers(n) values (1)",
    ):
        with pytest.raises(sqlite3.OperationalError):
            connection.execute(statement)


def test_a_registration_that_is_gone_is_an_error(connection):
    other = sqlite3.connect(":memory:")
    table_function.register(sqlite3, other, SHAPE, Numbers().rows)
    with pytest.raises(sqlite3.OperationalError, match="taken away"):
        rows(other, "select * from numbers(1)")
    other.close()


def test_registering_again_takes_the_place_of_the_first(connection, numbers):
    again = Numbers()
    kept = table_function.register(sqlite3, connection, SHAPE, again.rows)
    rows(connection, "select * from numbers(1)")
    assert (len(numbers.asked), len(again.asked)) == (0, 1)
    del kept


def test_only_an_open_connection_can_be_given_one():
    closed = sqlite3.connect(":memory:")
    closed.close()
    for what in (closed, object(), None):
        with pytest.raises(RuntimeError, match="no open connection"):
            table_function.register(sqlite3, what, SHAPE, Numbers().rows)


def test_the_function_may_query_its_connection(connection):
    def squares(arguments, conditions, limit):
        found = connection.execute("select id, square from t where id < ?", [arguments["count"]])
        return Rows([{"n": row[0], "square": row[1]} for row in found])

    kept = table_function.register(sqlite3, connection, SHAPE, squares)
    assert rows(connection, "select n, square from numbers(3)") == [(0, 0), (1, 1), (2, 4)]
    assert rows(connection, "select sum(a.n * b.n) from numbers(9) a, numbers(9) b") == [(36 * 36,)]
    del kept


# What must not crash or grow


def test_a_statement_can_be_interrupted_between_rows(connection):
    calls = itertools.count()
    connection.set_progress_handler(lambda: next(calls) > 5, 1000)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        rows(connection, "select count(*) from numbers(1000) a, numbers(1000) b")
    connection.set_progress_handler(None, 0)
    assert rows(connection, "select count(*) from numbers(10)") == [(10,)]


def test_statements_left_half_read(connection):
    held = glue._glue(sqlite3, SHAPE).readings
    before = len(held)
    for _ in range(100):
        cursor = connection.execute("select n from numbers(100)")
        assert cursor.fetchone() == (0,)
        cursor.close()
    left = [connection.execute("select n from numbers(100)") for _ in range(3)]
    assert [cursor.fetchone() for cursor in left] == [(0,)] * 3
    assert len(held) == before + 3
    left.clear()
    assert len(held) == before


def test_sixteen_threads():
    def work(number):
        connection = sqlite3.connect(":memory:")
        kept = table_function.register(sqlite3, connection, SHAPE, Numbers().rows)
        for count in range(60):
            found = rows(connection, "select sum(n), min(word) from numbers(?, ?)", count, f"{number}-")
            assert found == [(sum(range(count)) if count else None, f"{number}-0" if count else None)]
            with pytest.raises(sqlite3.OperationalError, match="too small"):
                rows(connection, "select * from numbers(-1)")
        connection.close()
        return kept

    with ThreadPoolExecutor(16) as pool:
        assert len(list(pool.map(work, range(32)))) == 32


def test_one_connection_handed_from_thread_to_thread():
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    kept = table_function.register(sqlite3, connection, SHAPE, Numbers().rows)
    lock = threading.Lock()

    def work(count):
        with lock:
            return rows(connection, "select count(*) from numbers(?)", count)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(100))) == [[(count,)] for count in range(100)]
    connection.close()
    del kept


ALONE = """
    import sys, types
    alone = sys.modules["alone"] = types.ModuleType("alone")
    alone.__path__ = [sys.argv[1]]
    from alone.glue import _glue, register
    from alone.shapes import Rows, Shape, TableError
    import sqlite3
    SHAPE = Shape("numbers", {"n": "integer", "word": "text"}, ("count",), "n",
                  {"n": frozenset({"in"}), "word": frozenset({"is"})}, order="n")
    held = []
    def function(arguments, conditions, limit):
        if arguments["count"] < 0:
            raise TableError("too small")
        return Rows([{"n": n, "word": str(n)} for n in range(arguments["count"])])
    connection = sqlite3.connect(":memory:")
    kept = register(sqlite3, connection, SHAPE, function)
    assert len(connection.execute("select n from numbers(3)").fetchall()) == 3
"""
OFTEN = """
    import os
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    def call(times):
        for number in range(times):
            if number % 50 == 0:
                own = sqlite3.connect(":memory:")
                kept = register(sqlite3, own, SHAPE, function)
            own.execute("select n, word from numbers(3) where n in (0, 1, 2) and word is '1'").fetchall()
            own.execute("select n from numbers(3) order by n limit 2").fetchone()
            try:
                own.execute("select * from numbers(-1)").fetchall()
            except sqlite3.OperationalError:
                pass
            if number % 50 == 49:
                own.close()
                del kept
    call(1_000)
    before = resident()
    call(int(sys.argv[2]))
    assert not _glue(sqlite3, SHAPE).readings
    assert len(_glue(sqlite3, SHAPE).registrations) == 1
    print(resident() - before)
"""


def run_alone(code, *arguments):
    """What a Python of its own says that runs some code; it must end well."""
    code = textwrap.dedent(ALONE) + textwrap.dedent(code)
    command = [sys.executable, "-c", code, str(FOLDER), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("times", [3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_memory_stays_flat(times):
    assert int(run_alone(OFTEN, times)) < 1_024, "kibibytes"


EXITS = {
    "open": "",
    "half read": "cursor = connection.execute('select n from numbers(100)'); cursor.fetchone()",
    "in a cycle": "cycle = [connection, connection.execute('select n from numbers(9)')]; cycle.append(cycle)",
    "closed late": """
        import atexit
        cursor = connection.execute('select n from numbers(100)'); cursor.fetchone()
        atexit.register(connection.close)
    """,
    "while a thread asks": """
        import threading, time
        def work():
            own = sqlite3.connect(':memory:', check_same_thread=False)
            held.append((own, register(sqlite3, own, SHAPE, function)))
            while True:
                try:
                    own.execute('select sum(n) from numbers(1000)').fetchone()
                except sqlite3.OperationalError:
                    pass
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
    """,
    "from a child": """
        import os
        child = os.fork()
        if child == 0:
            connection.execute('select n from numbers(9)').fetchall()
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """,
}


@pytest.mark.parametrize("name", EXITS)
def test_python_ends_well(name):
    run_alone(EXITS[name])


# Whether it works here


@pytest.fixture
def unproven(monkeypatch):
    """As before anybody has asked."""
    monkeypatch.setattr(proof, "_reasons", {})


def test_it_is_proven_once(unproven, monkeypatch):
    runs = []
    run = subprocess.run
    monkeypatch.setattr(proof.subprocess, "run", lambda *given, **more: runs.append(1) or run(*given, **more))
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: why_off(sqlite3), range(8))) == {None}
    assert len(runs) == 1
    connection = sqlite3.connect(":memory:")
    assert proof.self_test(sqlite3) == rows(connection, "select sqlite_source_id()")[0][0]
    connection.close()


@pytest.mark.parametrize(
    ("child", "said"),
    [
        ("import os; os.abort()", "the self-test failed: it ended with code -6"),
        ("raise RuntimeError('no such luck')", "the self-test failed: RuntimeError: no such luck"),
        ("print('another')", "the self-test used SQLite another, but this process uses"),
        ("import time; time.sleep(9)", "took longer than 0.2 seconds"),
    ],
)
def test_what_goes_wrong_in_the_child_is_the_reason(unproven, monkeypatch, child, said):
    monkeypatch.setattr(proof, "_CHILD", child)
    if "sleep" in child:
        monkeypatch.setattr(proof, "SELF_TEST_SECONDS", 0.2)
    assert said in why_off(sqlite3)


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("executable", "", "no Python"),
        ("executable", "/usr/bin/uwsgi", "no Python"),
        ("executable", "/nowhere/python3", "FileNotFoundError"),
        ("frozen", True, "no Python"),
        ("implementation", SimpleNamespace(name="pypy"), "pypy"),
        ("_is_gil_enabled", lambda: False, "global lock"),
    ],
)
def test_pythons_that_it_is_not_tried_with(unproven, monkeypatch, attribute, value, said):
    monkeypatch.setattr(sys, attribute, value, raising=False)
    assert said in why_off(sqlite3)


def test_another_library_than_the_modules_own_is_noticed(unproven, monkeypatch):
    class Other(Library):
        def _function(self, name, signature):
            return (lambda: b"another version") if name == "sourceid" else super()._function(name, signature)

    with pytest.raises(RuntimeError, match="it finds SQLite another version, but the sqlite3 module uses"):
        Other(sqlite3)

    class Copy(Library):
        def _function(self, name, signature):
            return (lambda _: 1) if name == "vfs_find" else super()._function(name, signature)

    with pytest.raises(RuntimeError, match="another copy of SQLite"):
        Copy(sqlite3)
    with pytest.raises(AttributeError, match="SQLite has no sqlite3_nothing"):
        _ = glue.library_of(sqlite3).nothing


def test_conditions_are_plain_tuples():
    assert Condition("n", "=", 1) == ("n", "=", 1)


def test_pythons_without_ctypes():
    code = """
import sys
sys.modules["ctypes"] = None
from datasette.utils.sqlite import sqlite3
from datasette_mempalace import search_table, table_function
print(table_function.why_off(sqlite3))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "ctypes" in done.stdout, done.stderr
