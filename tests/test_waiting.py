"""No search waits for another without end: a SQL function that did could wait for a thread that waits for its connection."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from datasette.utils.sqlite import sqlite3

from building import find, make_palace, texts
from datasette_mempalace import brief_lock, matrix, pool, sql_functions

DRAWERS = [("the red fox", "w", "r"), ("the blue whale", "w", "s"), ("the green lizard", "v", None)]


@pytest.fixture
def palace(tmp_path, monkeypatch):
    monkeypatch.setattr(brief_lock, "SECONDS", 0.2)
    with make_palace(tmp_path / "p.db", DRAWERS) as palace:
        yield palace


@pytest.fixture
def halted(monkeypatch):
    """A function that halts the next call of a module's function; gives events for "it has come" and "it may go on"."""
    go_on = threading.Event()

    def halt(module, name):
        come, real = threading.Event(), getattr(module, name)

        def call(*given):
            if not come.is_set():
                come.set()
                go_on.wait(60)
            return real(*given)

        monkeypatch.setattr(module, name, call)
        return come, go_on

    yield halt
    go_on.set()


def by_sql(palace, query):
    connection = sqlite3.connect(f"file:{palace.path}?mode=ro", uri=True, check_same_thread=False)
    sql_functions.register(connection, palace)
    try:
        return connection.execute("select text from mempalace_search(?)", [query]).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("module", "name", "engines"),
    [(pool, "palace_statistics", ["exact"]), (matrix, "load", ["matrix", "exact"])],
    ids=["counting words", "loading vectors"],
)
def test_a_search_that_is_halted_halts_no_other(palace, halted, monkeypatch, module, name, engines):
    monkeypatch.setattr("datasette_mempalace.nearest._engines", lambda *given: engines)
    come, go_on = halted(module, name)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(find, palace, "fox")
        assert come.wait(30)
        assert threads.submit(by_sql, palace, "whale").result(30)[0][0] == "the blue whale"
        assert not first.done()
        go_on.set()
        assert texts(first.result(30))[0] == "the red fox"


def test_what_is_busy_for_long_is_told(palace, halted):
    come, go_on = halted(palace.__class__, "_make_embedder")
    palace._embedder = None
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(find, palace, "fox")
        assert come.wait(30)
        with pytest.raises(Exception, match="busy with what this one needs; ask again"):
            threads.submit(find, palace, "whale").result(30)
        go_on.set()
        assert texts(first.result(30))[0] == "the red fox"
