"""The data app: metadata.yml and templates/ as `make demo` serves them."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from datasette.app import Datasette

from datasette_mempalace.compat import IS_ONE
from pages import Page

ROOT = Path(__file__).resolve().parent.parent
METADATA = yaml.safe_load((ROOT / "metadata.yml").read_text("utf-8"))
QUERIES = METADATA["databases"]["palace"]["queries"]
METADATA["plugins"]["datasette-mempalace"]["warm_up"] = False  # no model is loaded behind a test's back


@pytest.fixture
def app(palace_path):
    """The sample palace served with the data app's metadata and templates."""
    options = {"config": METADATA} if IS_ONE else {"settings": METADATA["settings"]}
    return Datasette([str(palace_path)], metadata=METADATA, template_dir=str(ROOT / "templates"), **options)


def row_id(path, condition):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"select id from drawers where {condition}").fetchone()[0]


async def get(app, path):
    response = await app.client.get(path)
    assert response.status_code == 200, response.text
    return response.text


async def test_front_page_leads_with_the_palace(app):
    html = await get(app, "/")
    assert html.count('action="/palace/-/mempalace"') == 1
    page = Page(html)
    assert page.text.index("Python's documentation") < page.text.index("hidden tables")
    assert "q" in page.fields
    links = {text: href for href, text in page.links}
    assert links["Python's documentation"] == "/palace/-/mempalace"
    assert links["acme-app"] == "/palace/-/mempalace?wing=acme-app"
    assert links["<b>wing</b>"] == "/palace/-/mempalace?wing=%3Cb%3Ewing%3C%2Fb%3E"
    assert links["no wing"] == "/palace/-/mempalace?wing__isnull=1"


async def test_front_page_keeps_to_itself_what_a_visitor_may_not_see(palace_path):
    closed = {"databases": {"palace": {"allow": False}}}
    options = {"config": closed} if IS_ONE else {"metadata": closed}
    app = Datasette([str(palace_path)], template_dir=str(ROOT / "templates"), **options)
    assert "acme-app" not in await get(app, "/")


async def test_case_40_drawers_table_has_its_facets_preset_and_leads_to_the_ranked_search(app):
    html = await get(app, "/palace/drawers?_search=token")
    assert re.search(r'<form[^>]*action="/palace/-/mempalace"', html)
    assert re.search(r'name="_mempalace" value="token"', html)
    assert html.count("Filter this table") == 1
    # Both facets are there without being asked for, and nothing is suggested.
    assert 'data-column="wing"' in html
    assert "acme-app" in html
    assert "suggested-facets" not in html


async def test_drawers_table_leaves_out_columns_that_are_empty_unless_asked_for(app):
    html = await get(app, "/palace/drawers")
    assert "Empty in these rows, so not shown: " in html
    assert "mp-without-authored_at" in html
    assert "mp-without-text" not in html
    assert "mp-without-authored_at" not in await get(app, "/palace/drawers?_col=authored_at&_col=hall")


def test_every_column_that_may_be_hidden_is_in_the_style_sheet():
    template = (ROOT / "templates/table-palace-drawers.html").read_text("utf-8")
    sheet = (ROOT / "datasette_mempalace/static/data-app.css").read_text("utf-8")
    names = json.loads(re.search(r"may_hide = (\[.*?\])", template)[1])
    # As narrow as the rules that give text and metadata their own display, and one class narrower: it must win.
    rule = r"^\.mp-drawers\.mp-without-(\w+) \.rows-and-columns \.col-(\w+)[, ]"
    assert re.findall(rule, sheet, re.MULTILINE) == [(name, name) for name in names]


async def test_table_without_rows_is_served(app):
    assert "not shown" not in await get(app, "/palace/drawers?wing=nothing")


async def test_drawer_is_a_page_of_text_with_its_neighbours(app, palace_path):
    where = "source_file = '/notes/acme/auth.md' and chunk_index = "
    first, second, third, last = (row_id(palace_path, where + str(n)) for n in (0, 1, 2, 13))
    html = await get(app, f"/palace/drawers/{second}")
    page = Page(html)
    assert "step 2 of the auth notes explains part 2." in page.text
    assert "auth.md, chunk 2 of 14" in page.text
    assert (f"/palace/drawers/{first}", "← Chunk 1") in page.links
    assert (f"/palace/drawers/{third}", "Chunk 3 →") in page.links
    assert ("/palace/-/mempalace?wing=acme-app&room=auth", "auth") in page.links
    assert 'rel="prev"' not in await get(app, f"/palace/drawers/{first}")
    assert 'rel="next"' not in await get(app, f"/palace/drawers/{last}")
    sheets = re.findall(r'<link rel="stylesheet" href="([^"]*static-plugins[^"]*)"', html)
    assert sheets
    for sheet in sheets:
        await get(app, sheet)


async def test_drawer_with_markup_and_without_a_place(app, palace_path):
    html = await get(app, f"/palace/drawers/{row_id(palace_path, 'wing = ' + repr('markup'))}")
    assert "<script>alert" not in html
    assert "<u>heading" not in html
    assert "&lt;u&gt;heading&lt;/u&gt; &amp; token" in html
    lonely = Page(await get(app, f"/palace/drawers/{row_id(palace_path, 'wing is null and room is null')}"))
    assert "no wing / no room" in lonely.text
    assert "Chunk" not in lonely.text


async def test_text_is_shown_to_the_letter(make_datasette, palace_named):
    text = "\n\n  leading lines & spaces\ttab \n"
    path = palace_named("palace.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        row = connection.execute(
            "insert into drawers(drawer_id, text, metadata) values ('x', ?, ?)", [text, "not JSON"]
        ).lastrowid
    html = await get(make_datasette(path, template_dir=str(ROOT / "templates")), f"/palace/drawers/{row}")
    # A parser drops the first line break in <pre>, so there is one more.
    assert '<pre class="mp-verbatim" dir="auto">\n' + text.replace("&", "&amp;") + "</pre>" in html
    assert "not JSON" in html


async def test_other_rows_and_unknown_rows_are_core_s(app):
    assert (await app.client.get("/palace/drawers/999999")).status_code == 404
    assert "closets: 1" in await get(app, "/palace/closets/1")


async def test_inner_tables_are_hidden(app):
    tables = (await app.client.get("/palace.json")).json()["tables"]
    assert {table["name"] for table in tables if not table["hidden"]} == {"drawers", "closets"}


@pytest.mark.parametrize("name", QUERIES)
async def test_canned_queries_answer_with_and_without_parameters(app, name):
    empty = (await app.client.get(f"/palace/{name}.json?_shape=array")).json()
    assert isinstance(empty, list)
    assert bool(empty) == (name != "search")  # nothing asked, nothing found
    given = "q=token&wing=acme-app&room=auth&n_results=3&source_file=/notes/acme/auth.md"
    rows = (await app.client.get(f"/palace/{name}.json?_shape=array&{given}")).json()
    assert rows
    assert {row["wing"] for row in rows} == {"acme-app"}


async def test_canned_search_gives_the_order_of_the_api(app):
    asked = "q=token&wing=acme-app&n_results=5"
    rows = (await app.client.get(f"/palace/search.json?_shape=array&{asked}")).json()
    answer = (await app.client.get(f"/palace/-/mempalace.json?{asked}")).json()
    assert [row["id"] for row in rows] == [hit["id"] for hit in answer["results"]]
    assert len(rows) == 5


async def test_drawers_of_a_source_come_in_order(app):
    rows = (await app.client.get("/palace/drawers_of_a_source.json?_shape=array")).json()
    assert [row["chunk"] for row in rows] == list(range(1, len(rows) + 1))
