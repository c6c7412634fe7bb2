"""SQL that searches leaves one of Datasette's SQL threads free: pages are answered while searches hold the others."""

import asyncio
import threading
import urllib.parse

import pytest
from datasette import hookimpl
from datasette.plugins import pm
from datasette.utils.sqlite import sqlite3

from datasette_mempalace.compat import IS_ONE

SEARCH = "select gate(), mempalace_search('token')"


def query(sql):
    return f"/palace{'/-/query' if IS_ONE else ''}.json?" + urllib.parse.urlencode({"sql": sql})


QUERY = query(SEARCH)
WHERE = "/palace/drawers.json?" + urllib.parse.urlencode(
    {"_where": "gate() and id in (select id from mempalace_search('token'))"}
)


@pytest.fixture
def gate():
    """An event that every statement with `gate()` waits for."""
    opened = threading.Event()

    class Gate:
        __name__ = "gate"  # Datasette 0.65 asks for it

        @hookimpl
        def prepare_connection(self, conn):
            conn.create_function("gate", 0, lambda: opened.wait(60))

    plugin = Gate()
    pm.register(plugin)
    yield opened
    opened.set()
    pm.unregister(plugin)


@pytest.fixture
def datasette(make_datasette, palace_named):
    """A Datasette with three SQL threads; queries and views that search, by themselves and through a view."""
    path = palace_named("palace.db")
    connection = sqlite3.connect(path)
    connection.execute(f"create view found as {SEARCH} as hits")
    connection.execute("create view [found again] as select * from Found")
    connection.execute("""create view "it's ""odd" as select * from Found""")
    connection.execute("""create view last as select * from "it's ""odd" """)
    connection.close()
    # The first search loads the model, which on a busy machine takes longer than a search may.
    patience = {"plugins": {"datasette-mempalace": {"warm_up": False, "time_limit_ms": 60_000}}}
    by_name = {"by_name": {"sql": SEARCH}, "by_view": {"sql": "select * from [found again]"}}
    queries = {"databases": {"palace": {"queries": by_name}}}
    limits = {"num_sql_threads": 3, "sql_time_limit_ms": 60_000}
    return make_datasette(path, config={**queries, **patience}, settings=limits)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "address",
    [
        QUERY,
        QUERY.replace("_search", "%5Fsearch"),
        WHERE,
        "/palace/by_name.json",
        "/palace/by_view.json",
        "/palace/found.json",
        "/palace/found~20again.json",
        query("select * from found"),
        query('select * from "found again"'),
        query("""select * from "it's ""odd" """),
        query("""select * from [it's "odd]"""),
        query("select * from last"),
        "/palace/it~27s~20~22odd.json",
    ],
)
async def test_pages_are_answered_while_searches_wait(datasette, gate, address):
    await datasette.invoke_startup()
    searches = [asyncio.create_task(datasette.client.get(address)) for _ in range(6)]
    await asyncio.sleep(0.1)
    page = await asyncio.wait_for(datasette.client.get("/palace/drawers.json?_size=1"), 30)
    assert page.status_code == 200
    assert not any(search.done() for search in searches)
    gate.set()
    answers = await asyncio.gather(*searches)
    assert [answer.status_code for answer in answers] == [200] * 6
    assert all(answer.json()["rows"] for answer in answers)


@pytest.mark.asyncio
async def test_a_search_that_fails_gives_its_turn_back(datasette, gate):
    gate.set()
    broken = QUERY.replace("gate", "no_such_function")
    for address in [broken] * 5 + [QUERY]:
        answer = await asyncio.wait_for(datasette.client.get(address), 30)
    assert answer.status_code == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("threads", [0, 1])
async def test_with_one_thread_or_none_nothing_is_held_back(make_datasette, palace_path, gate, threads):
    gate.set()
    datasette = make_datasette(palace_path, settings={"num_sql_threads": threads})
    answers = await asyncio.gather(*(datasette.client.get(QUERY) for _ in range(3)))
    assert [answer.status_code for answer in answers] == [200] * 3


@pytest.mark.asyncio
async def test_nobody_searches_for_a_client_who_has_left(datasette, gate):
    await datasette.invoke_startup()
    app = datasette.app()
    staying = [asyncio.create_task(datasette.client.get(QUERY)) for _ in range(2)]
    await asyncio.sleep(0.1)
    left, answered = asyncio.Event(), []

    async def receive():
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        answered.append(message)

    path, _, query_string = QUERY.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query_string.encode(),
        "headers": [(b"host", b"localhost")],
    }
    leaving = [asyncio.create_task(app(dict(scope), receive, send)) for _ in range(3)]
    await asyncio.sleep(0.1)
    left.set()
    gate.set()
    await asyncio.gather(*staying, *leaving)
    assert not answered
    assert (await asyncio.wait_for(datasette.client.get(QUERY), 30)).status_code == 200


@pytest.mark.asyncio
async def test_our_own_pages_do_not_wait(datasette, gate):
    await datasette.invoke_startup()
    searches = [asyncio.create_task(datasette.client.get(QUERY)) for _ in range(6)]
    await asyncio.sleep(0.1)
    page = await asyncio.wait_for(datasette.client.get("/palace/-/mempalace.json?q=mempalace_search"), 30)
    assert page.status_code == 200
    assert not any(search.done() for search in searches)
    gate.set()
    await asyncio.gather(*searches)
