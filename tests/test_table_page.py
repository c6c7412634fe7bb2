"""Datasette's own table pages, filtered by a search: what they show, how often it is searched, and who may."""

import csv
import io
import json
import sqlite3
import threading
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest

from conftest import LONG, ODD_WINGS
from datasette_mempalace.compat import IS_ONE
from datasette_mempalace.config import read_settings
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.palace import Palace
from datasette_mempalace.request import parse_request, request_parameters
from datasette_mempalace.views import table_page
from datasette_mempalace.views.carried import to_search, to_table
from pages import Page

TABLE = "/palace/drawers"
PALACE = "/palace/-/mempalace"
PLUGIN = "datasette-mempalace"


@pytest.fixture
def few(make_datasette, palace_path):
    """The sample palace, five hits on a table page."""
    return make_datasette(palace_path, config={"plugins": {PLUGIN: {"table_hits": 5, "warm_up": False}}})


async def rows(datasette, path=TABLE, **parameters):
    """The rows of a table page that answers."""
    query = urlencode({"_shape": "array", "_size": "max", **parameters}, doseq=True)
    response = await datasette.client.get(f"{path}.json?{query}")
    assert response.status_code == 200, response.text[:400]
    return response.json()


async def ids(datasette, path=TABLE, **parameters):
    return {row["id"] for row in await rows(datasette, path, **parameters)}


async def hits(datasette, **parameters):
    response = await datasette.client.get(f"{PALACE}.json?{urlencode(parameters, doseq=True)}")
    assert response.status_code == 200, response.text[:400]
    return [hit["id"] for hit in response.json()["results"]]


async def page(datasette, path, status=200):
    response = await datasette.client.get(path)
    assert response.status_code == status, f"{path}: {response.status_code} {response.text[:300]}"
    return response.text


@pytest.fixture
def searched(monkeypatch):
    """The threads that searches of table pages ran in, one name each."""
    found = []
    run_search = table_page.run_search

    def counted(*arguments):
        found.append(threading.current_thread().name)
        return run_search(*arguments)

    monkeypatch.setattr(table_page, "run_search", counted)
    return found


async def test_the_rows_are_the_best_hits_in_the_order_of_the_table(few):
    found = [row["id"] for row in await rows(few, _mempalace="signing a login token")]
    assert found == sorted(await hits(few, q="signing a login token", n_results=5))
    by_room = await rows(few, _mempalace="signing a login token", _sort_desc="room")
    assert [row["room"] for row in by_room] == sorted((row["room"] for row in by_room), reverse=True)


async def test_the_page_says_what_it_shows(few):
    html = await page(few, f"{TABLE}?_mempalace=login+token&wing=acme-app")
    text = " ".join(Page(f"<main>{html}</main>").text.split())
    assert '5 rows where drawer is among the best 5 for "login token" and wing = "acme-app"' in text


async def test_column_filters_narrow_before_the_ranking(few):
    everywhere = await rows(few, _mempalace="login token")
    assert "acme-app" in {row["wing"] for row in everywhere}
    narrowed = await rows(few, _mempalace="login token", wing="markup")
    assert [row["wing"] for row in narrowed] == ["markup"]
    dated = {"filed_at__gte": "2026-05", "room__in": "database,deploy"}
    assert await ids(few, _mempalace="login token", **dated) == set(
        await hits(few, q="login token", n_results=5, **dated)
    )


async def test_a_filter_that_datasette_reads_in_another_way_is_left_to_it(few):
    # For a table "100%" is a pattern, for a search a text: the rows must be those of the table's meaning.
    assert await ids(few, _mempalace="token", text__contains="tok%wing") <= await ids(
        few, text__contains="tok%wing"
    )


async def test_with_the_tables_own_search_and_facets(few):
    found = await ids(few, _mempalace="login token", _search="password")
    assert found == await ids(few, _mempalace="login token") & await ids(few, _search="password")
    query = urlencode(
        {"_mempalace": "login token", "_facet": "room", **({"_extra": "facet_results"} if IS_ONE else {})}
    )
    answer = (await few.client.get(f"{TABLE}.json?{query}")).json()["facet_results"]
    room = (answer["results"] if IS_ONE else answer)["room"]
    assert sum(value["count"] for value in room["results"]) == 5
    assert all("_mempalace=login" in value["toggle_url"] for value in room["results"])


async def test_csv_and_stream_hold_the_same_rows_and_search_once(make_datasette, palace_path, searched):
    datasette = make_datasette(palace_path, settings={"max_returned_rows": 7})
    for options in ({}, {"_stream": 1}):
        query = urlencode({"_mempalace": "token", "_size": "max", "wing": "acme-app", **options})
        response = await datasette.client.get(f"{TABLE}.csv?{query}")
        assert response.status_code == 200
        found = [int(row["id"]) for row in csv.DictReader(io.StringIO(response.text))]
        assert len(found) == (42 if options else 7)
        assert len(set(found)) == len(found)
    assert len(searched) == 1


async def test_one_search_a_page_in_a_thread_of_the_plugin(few, searched):
    await page(few, f"{TABLE}?_mempalace=lamp&_facet=wing&_facet=room")
    assert len(searched) == 1
    assert searched[0].startswith("mempalace")


async def test_a_change_is_seen_at_once(make_datasette, palace_named, searched):
    path = palace_named("palace.db")
    datasette = make_datasette(path)
    before = await ids(datasette, _mempalace="zeppelin")
    with Palace.open(path) as palace:
        put_drawers(palace, [Drawer("A zeppelin over the lake, a zeppelin indeed.")])
    after = await rows(datasette, _mempalace="zeppelin")
    assert [row["text"] for row in after if row["id"] not in before] == [
        "A zeppelin over the lake, a zeppelin indeed."
    ]
    assert len(searched) == 2


def test_what_is_remembered_is_bounded_and_words_only_soon_forgotten(palace_path, monkeypatch):
    with Palace.open(palace_path) as palace:
        remembered = table_page.Remembered()
        for number in range(table_page.REMEMBERED + 5):
            asked = parse_request({"q": f"token {number}", "vector_disabled": 1}, palace.settings)
            first = remembered.get(palace, asked)
        assert len(remembered._found) == table_page.REMEMBERED
        assert remembered.get(palace, asked) is first
        monkeypatch.setattr(table_page.time, "monotonic", lambda: first.until + 1)
        assert remembered.get(palace, asked) is not first


@pytest.mark.parametrize("blank", ["", "  "])
async def test_blank_is_no_filter(few, blank):
    assert await ids(few, _mempalace=blank) == await ids(few)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"_mempalace": ["a", "b"]}, "it must be given once"),
        ({"_mempalace": "x" * 10_001}, "at most 10,000 characters"),
        ({"_mempalace": "x", "_mempalace_options": "["}, "it must be a JSON object"),
        ({"_mempalace": "x", "_mempalace_options": '{"q": "y"}'}, "the words stand in _mempalace"),
        (
            {"_mempalace": "x", "_mempalace_options": '{"max_distance": 9}'},
            "max_distance: '9' is not allowed",
        ),
        ({"_mempalace": "x", "_mempalace_options": '{"nope": 9}'}, "'nope' is not allowed"),
    ],
)
async def test_bad_values_are_400_and_named(few, parameters, said):
    response = await few.client.get(f"{TABLE}.json?{urlencode(parameters, doseq=True)}")
    assert response.status_code == 400
    assert said in response.json()["error"]
    html = await page(few, f"{TABLE}?{urlencode(parameters, doseq=True)}", 400)
    assert "Bad request" in html


async def test_a_table_without_drawers_says_so(few, make_datasette, tmp_path):
    assert "setting tables" in await page(few, "/palace/closets?_mempalace=x", 400)
    sqlite3.connect(tmp_path / "plain.db").execute("create table t(x)").connection.close()
    plain = make_datasette(tmp_path / "plain.db")
    assert "0 rows" in await page(plain, "/plain/t?_mempalace=x&x=1")  # not ours: nothing is done


async def test_words_only_says_why(make_datasette, palace_named):
    path = palace_named("palace.db")
    with sqlite3.connect(path) as connection:
        connection.execute("delete from drawer_vectors")
    connection.close()
    html = await page(make_datasette(immutables=[str(path)]), f"{TABLE}?_mempalace=token")
    assert "(by words only, because no drawer of this palace has a vector yet" in html


# Other tables and views


@pytest.fixture
def related(palace_named):
    """A palace with tables and views about its drawers."""
    path = palace_named("palace.db")
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            create table notes(note text, about text);
            insert into notes select 'about ' || id, drawer_id from drawers;
            create table marks(mark text, "the drawer" integer);
            insert into marks select 'mark ' || id, id from drawers;
            create view short as select id as number, substr(text, 1, 20) as begins from drawers;
            create table empty(drawer_id text);
            """
        )
    connection.close()
    return path


SETTINGS = {
    "table_hits": 5,
    "warm_up": False,
    "tables": {
        "notes": "about",
        "marks": "the drawer",
        "short": "number",
        "empty": "drawer_id",
        "closets": "nope",
    },
}


@pytest.mark.parametrize(("table", "column"), [("notes", "note"), ("marks", "mark"), ("short", "number")])
async def test_any_table_or_view_that_is_named(make_datasette, related, table, column):
    datasette = make_datasette(related, config={"plugins": {PLUGIN: SETTINGS}})
    expected = set(await hits(datasette, q="signing a login token", n_results=5))
    found = await rows(datasette, f"/palace/{table}", _mempalace="signing a login token")
    assert {int(str(row[column]).split()[-1]) for row in found} == expected
    html = await page(datasette, f"/palace/{table}?_mempalace=login")
    assert "its drawer is among the best 5 for &#34;login&#34;" in html
    assert await rows(datasette, "/palace/empty", _mempalace="login") == []


async def test_copies_count_for_what_refers_to_them(make_datasette, related):
    datasette = make_datasette(related, config={"plugins": {PLUGIN: {**SETTINGS, "table_hits": 1}}})
    assert len(await rows(datasette, _mempalace=LONG)) == 1
    assert len(await rows(datasette, "/palace/notes", _mempalace=LONG)) == 2


async def test_a_column_that_is_not_there_is_named(make_datasette, related):
    datasette = make_datasette(related, config={"plugins": {PLUGIN: SETTINGS}})
    assert "closets has no column nope" in await page(datasette, "/palace/closets?_mempalace=x", 400)


@pytest.mark.parametrize("value", ["drawers", ["notes"], {"notes": 1}, {"": "x"}, {"notes": ""}])
def test_the_setting_tables_is_checked(value):
    with pytest.raises(Exception, match="tables: .* is not allowed; it must be a mapping"):
        read_settings({"tables": value})


# Permissions

ROOT = {"id": "root"}


async def test_a_stranger_to_the_drawers_learns_nothing_through_another_table(
    make_datasette, related, as_actor
):
    config = {
        "plugins": {PLUGIN: SETTINGS},
        "databases": {"palace": {"tables": {"drawers": {"allow": ROOT}}}},
    }
    datasette = make_datasette(related, config=config)
    await datasette.invoke_startup()
    for path in ("/palace/notes", TABLE):
        for extension in ("", ".json", ".csv"):
            assert (await datasette.client.get(f"{path}{extension}?_mempalace=token")).status_code == 403
    assert "Filter this table" not in await page(datasette, "/palace/notes")
    root = as_actor(datasette, id="root")
    response = await datasette.client.get("/palace/notes?_mempalace=token", cookies=root)
    assert response.status_code == 200


# From page to page


async def test_the_box_stands_where_datasette_has_a_place_for_it(few):
    html = await page(few, f"{TABLE}?wing=acme-app&_mempalace=token")
    assert ("Filter this table" in html) is IS_ONE  # on 0.65 with the templates of the data app
    link = urlencode({"q": "token", "wing": "acme-app"}).replace("&", "&amp;")
    assert f'href="{PALACE}?{link}"' in html  # also among the table's actions
    assert "Filter this table" not in await page(few, "/palace/closets")


async def test_the_box_leads_to_the_ranked_page_with_the_same_filters(few):
    query = {
        "_mempalace": "token",
        "wing__in": "acme-app,acme_app",
        "filed_at__gte": "2026-03-01",
        "_sort": "id",
    }
    response = await few.client.get(f"{PALACE}?{urlencode(query)}")
    assert response.status_code == 302
    assert parse_qs(urlsplit(response.headers["location"]).query) == {
        "q": ["token"],
        "wing": ["acme-app", "acme_app"],
        "filed_at__gte": ["2026-03-01"],
    }
    assert (await few.client.get(response.headers["location"])).status_code == 200


async def test_the_ranked_page_opens_as_a_table(few):
    query = urlencode({"q": "login token", "wing": ["acme-app", "acme_app"], "n_results": 5}, doseq=True)
    href = Page(await page(few, f"{PALACE}?{query}")).link("Open as table")
    assert parse_qs(urlsplit(href).query) == {
        "_mempalace": ["login token"],
        "wing__in": ["acme-app,acme_app"],
    }
    table = await ids(few, **dict(parse_qsl(urlsplit(href).query)))
    assert table == set(Page(await page(few, f"{PALACE}?{query}")).hit_ids)


STATES = [
    {"wing": ["acme-app"], "room": ["auth", "deploy"]},
    {"wing": ODD_WINGS},
    {"wing": ["a,b", "[c]", " d "]},
    {"wing__isnull": ["1"]},
    {"wing": ["acme_app"], "wing__isnull": ["1"]},
    {"source_file": ["/notes/acme/auth.md"], "since": ["2026-02-01"], "before": ["2026-06-01T10:00:00"]},
    {"since": ["2026-02-01"], "date_column": ["authored_at"]},
    {"ids": ["1,2,3"], "text__contains": ["token"]},
    {"text__contains": ["100%"], "metadata.heading__exact": ["Auth in practice"]},
    {"hall__in": ["1,2"], "room__not": ["auth", "deploy"]},
    {
        "max_distance": ["0.8"],
        "vector_disabled": ["1"],
        "ranking": ["mempalace"],
        "candidate_strategy": ["vector"],
    },
    {"wing__exact": ["acme-app"]},
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: "+".join(state))
async def test_there_and_back_gives_the_same_hits(make_datasette, palace_path, state):
    datasette = make_datasette(palace_path)
    wanted = set(await hits(datasette, q="token", n_results=100, **state))
    settings = read_settings({"n_results": 100})
    asked = parse_request({"q": "token", **state}, settings)
    table = to_table(asked, request_parameters(asked, settings))
    assert {row["id"] for row in await rows(datasette, **_grouped(table))} == wanted
    back = to_search(table)
    assert set(await hits(datasette, n_results=100, **_grouped(back))) == wanted


def _grouped(pairs):
    grouped = {}
    for name, value in pairs:
        grouped.setdefault(name, []).append(value)
    return grouped


def test_conditions_that_must_all_hold_stay_so():
    assert to_search([("_mempalace", "x"), ("wing", "a"), ("wing", "b")]) == [
        ("q", "x"), ("wing", "a"), ("wing__exact", "b"),
    ]  # fmt: skip
    options = json.dumps({"wing": ["c"], "vector_disabled": True, "room": None})
    assert to_search([("_mempalace", "x"), ("_mempalace_options", options), ("wing", "a")]) == [
        ("q", "x"), ("wing", "c"), ("vector_disabled", "1"), ("wing__exact", "a"),
    ]  # fmt: skip
    assert to_search(parse_qsl("_mempalace=x&_search=y&_sort=id&nope=1&hall=")) == [("q", "x")]
