"""Every page's "View and edit SQL" gives the numbers that the page gives, and only whoever may run SQL is shown it."""

from contextlib import closing
from datetime import date
from urllib.parse import urlencode, urlsplit

import pytest
from datasette.utils.sqlite import sqlite3

from datasette_mempalace.explore.values import LISTS
from datasette_mempalace.scope import Scope
from datasette_mempalace.timeline import UNITS, bucket_start
from datasette_mempalace.views.statements import of_timeline
from pages import Page

PALACE = "/palace/-/mempalace"
PARTS = [
    {},
    {"wing": "acme-app"},
    {"wing": ["acme-app", "notes"], "room": "auth"},
    {"wing__isnull": "1"},
    {"since": "2026-02-01", "before": "2026-06-01", "id__gt": "9"},
    {"added_by__exact": "anna", "source_file__contains": "_%'"},
]


async def rows_of_sql(datasette, path, link):
    """What the SQL page gives that a page links to."""
    response = await datasette.client.get(path)
    assert response.status_code == 200, response.text[:400]
    parts = urlsplit(Page(response.text).link(link))
    found = await datasette.client.get(f"{parts.path}.json?{parts.query}&_shape=array")
    assert found.status_code == 200, found.text[:400]
    return found.json()


async def json_of(datasette, path):
    response = await datasette.client.get(path)
    assert response.status_code == 200, response.text[:400]
    return response.json()


@pytest.mark.parametrize("part", PARTS, ids=str)
async def test_the_overview_counts_as_its_statement_does(served, part):
    query = urlencode(part, doseq=True)
    found = await json_of(served, f"{PALACE}/overview.json?{query}")
    rows = await rows_of_sql(served, f"{PALACE}?{query}", "✎ View and edit SQL") if found["drawers"] else []
    counted = {(row["wing"], row["room"]): row["count"] for row in rows}
    assert counted == {
        (wing["wing"], room["room"]): room["count"] for wing in found["wings"] for room in wing["rooms"]
    }


@pytest.mark.parametrize("what", LISTS)
@pytest.mark.parametrize("part", PARTS, ids=str)
async def test_a_list_is_what_its_statement_gives(served, part, what):
    query = urlencode(part, doseq=True)
    found = await json_of(served, f"{PALACE}/{what}.json?{query}")
    rows = await rows_of_sql(served, f"{PALACE}/{what}?{query}", "✎ View and edit SQL")
    assert rows == [{name: value for name, value in row.items() if name != "url"} for row in found["rows"]]


@pytest.mark.parametrize("part", [{}, {"wing": "acme-app"}, {"date_column": "authored_at"}], ids=str)
async def test_a_timeline_is_what_its_statement_gives(served, part):
    query = urlencode(part)
    found = await json_of(served, f"{PALACE}/timeline.json?{query}")
    rows = await rows_of_sql(served, f"{PALACE}?{query}", "SQL")
    assert {row["since"]: row["count"] for row in rows} == {
        bucket["since"]: bucket["count"] for bucket in found["buckets"] if bucket["count"]
    }


@pytest.mark.parametrize("unit", UNITS)
def test_buckets_of_every_unit_begin_where_the_timeline_says(unit):
    days = ["0001-01-03", "1999-12-31", "2000-01-01", "2024-02-29", "2026-11-29", "2026-11-30", "2199-12-31"]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table drawers (filed_at text)")
        connection.executemany(
            "insert into drawers values (?)",
            [[f"{day}T10:00:00"] for day in [*days, "9999-12-31", "-0044-03-15", "soon"]] + [[None]],
        )
        statement = of_timeline(Scope(), unit)
        rows = dict(connection.execute(statement.sql, statement.parameters))
    assert sum(rows.values()) == len(days)
    for day in days:
        assert rows[bucket_start(unit, date.fromisoformat(day)).isoformat()]


async def test_a_source_is_what_its_statement_gives(served):
    query = urlencode({"source_file": "/notes/guide.md"})
    found = await json_of(served, f"{PALACE}/source.json?{query}")
    rows = await rows_of_sql(served, f"{PALACE}/source?{query}", "✎ View and edit SQL")
    assert [(row["id"], row["text"]) for row in rows] == [
        (part["id"], part["text"]) for part in found["parts"]
    ]


async def test_equal_texts_are_what_their_statement_gives(served):
    found = await json_of(served, f"{PALACE}/duplicates.json?threshold=1&min_characters=1&n_results=100")
    rows = await rows_of_sql(served, f"{PALACE}/duplicates?threshold=1", "✎ Equal texts in SQL")
    assert sorted(row["count"] for row in rows) == sorted(cluster["size"] for cluster in found["clusters"])


@pytest.mark.parametrize("path", ["", "/rooms", "/source?source_file=/notes/guide.md", "/duplicates"])
async def test_sql_is_shown_to_whoever_may_run_it_alone(make_datasette, palace_path, path):
    closed = make_datasette(palace_path, config={"databases": {"palace": {"allow_sql": False}}})
    response = await closed.client.get(f"{PALACE}{path}")
    assert response.status_code == 200
    assert not [said for _, said in Page(response.text).links if "SQL" in said]
