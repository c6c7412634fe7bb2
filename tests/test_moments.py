"""A date column takes any text from anybody, and what is no date counts as none on every face."""

import datetime

import pytest
import sqlite_utils
from click.testing import CliRunner
from datasette.utils.sqlite import sqlite3
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlite_utils.cli import cli as sqlite_utils_cli

from building import column, find, make_palace, one, texts
from datasette_mempalace import schema
from datasette_mempalace.doctor import examine, mend
from datasette_mempalace.drawers import Drawer
from datasette_mempalace.explore.days import timeline_of
from datasette_mempalace.palace import Palace
from datasette_mempalace.scope import DATE_COLUMNS, Scope

PRESENT = ("now", "NOW", "Now", "subsec", "subsecond")
BASE = "/palace/-/mempalace"


@pytest.fixture
def path(tmp_path):
    with make_palace(
        tmp_path / "palace.db", [Drawer("a fox of March", wing="w", filed_at="2026-03-04T10:00:00")]
    ) as palace:
        palace.checkpoint()
    return tmp_path / "palace.db"


def write(path, statement, *parameters):
    """As any other program would: plain sqlite3, no pragmas of ours."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, parameters)
    connection.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with make_palace(tmp_path_factory.mktemp("moments") / "p.db") as palace:
        yield palace


@settings(max_examples=20)
@example("now")
@example("SUBSEC")
@example("2026-03-04")
@example("-4713-11-24 12:00:00")
@given(
    st.one_of(
        st.text(max_size=20),
        st.from_regex(r"[-0-9.: TZ+]{1,20}", fullmatch=True),
        st.integers(-(2**63), 2**63 - 1),
    )
)
def test_no_date_breaks_a_write_and_every_count_agrees_on_what_is_one(shared, date):
    write(shared.path, "delete from drawers")
    if isinstance(date, str) and not date.isprintable():
        date = date.encode("utf-8", "replace").decode("utf-8")
    for name in DATE_COLUMNS:
        write(shared.path, "delete from drawers")
        write(shared.path, f"insert into drawers(text, {name}) values ('a fox', ?)", date)
        write(shared.path, f"update drawers set wing = 'w', {name} = ?", date)
        assert one(shared, f"select {name} from drawers")[0] == str(date)
        scope = Scope(since="0001-01-01 00:00:00", before="2200-01-01 00:00:00", date_column=name)
        found = find(
            shared, "fox", since="0001-01-01", before="2200-01-01", date_column=name, vector_disabled=1
        )
        timeline = timeline_of(shared, Scope(date_column=name))
        assert timeline_of(shared, scope)["dated"] == found["in_scope"] == timeline["dated"]
        assert timeline["dated"] + timeline["unreadable"] == 1
        days = find(shared, "fox", date_column=name, vector_disabled=1, facets=1)["timeline"]
        assert (days["dated"], days["unreadable"]) == (timeline["dated"], timeline["unreadable"])


@pytest.mark.parametrize("date", PRESENT)
async def test_a_date_that_means_the_present_is_shown_and_is_none(make_datasette, path, date):
    for name in DATE_COLUMNS:
        write(
            path,
            f"insert into drawers(text, wing, filed_at, {name}) values ('a fox', 'v', null, ?)"
            if name != "filed_at"
            else "insert into drawers(text, wing, filed_at) values ('a fox', 'v', ?)",
            date,
        )
    datasette = make_datasette(path)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    for name in DATE_COLUMNS:
        for address in (
            f"/timeline.json?wing=v&date_column={name}",
            f"/timeline.json?q=fox&wing=v&date_column={name}",
        ):
            found = (await datasette.client.get(BASE + address)).json()
            assert (found["dated"], found["unreadable"]) == (0, 1), address
        for narrowed in (f"since=1990-01-01&date_column={name}&wing=v", f"{name}__date={today}"):
            found = (await datasette.client.get(f"{BASE}.json?q=fox&{narrowed}")).json()
            assert found["in_scope"] == 0, narrowed
    page = await datasette.client.get(f"{BASE}?wing=v")
    assert page.status_code == 200
    found = (await datasette.client.get(f"{BASE}.json?q=fox&wing=v")).json()
    assert {hit[name] for hit in found["results"] for name in DATE_COLUMNS} >= {date}


async def test_the_numbers_of_a_timeline_as_sql_leave_the_present_out_too(make_datasette, path):
    write(path, "insert into drawers(text, filed_at) values ('a fox', 'now')")
    datasette = make_datasette(path)
    from datasette_mempalace.views.statements import of_timeline

    statement = of_timeline(Scope(), "day")
    response = await datasette.client.get(
        "/palace.json", params={"sql": statement.sql, "_shape": "arrays"}, follow_redirects=True
    )
    assert response.json()["rows"] == [["2026-03-04", 1]]


@pytest.mark.parametrize("name", DATE_COLUMNS)
def test_a_window_of_dates_is_found_through_an_index(path, name):
    with Palace.open(path) as palace, palace.reader() as connection:
        where, parameters = Scope(since="2026-01-01", before="2026-02-01", date_column=name).where()
        plan = connection.execute(
            f"explain query plan select id, wing from drawers where {where}", parameters
        )
        assert f"SEARCH drawers USING COVERING INDEX {schema.moment_index(name)}" in plan.fetchone()[3]


def test_a_palace_whose_indexes_refused_such_dates_takes_them(tmp_path):
    database = sqlite_utils.Database(tmp_path / "old.db")
    schema.migrations.apply(database, stop_before="m007_moments")
    database.execute(f"create index {schema.moment_index('filed_at')} on drawers(datetime(filed_at))")
    database.close()
    with pytest.raises(sqlite3.OperationalError, match="non-deterministic"):
        write(tmp_path / "old.db", "insert into drawers(text, filed_at) values ('a fox', 'now')")
    with Palace.open(tmp_path / "old.db") as palace:
        write(palace.path, "insert into drawers(text, filed_at) values ('a fox', 'now')")
        assert [found.check for found in examine(palace) if not found.ok and "index" in found.check] == []


def sqlite_utils_run(*arguments):
    return CliRunner().invoke(sqlite_utils_cli, list(map(str, arguments)))


def test_sqlite_utils_writes_any_date_and_transforms_a_palace_that_the_doctor_then_mends(path):
    assert (
        sqlite_utils_run(
            "query", path, "insert into drawers(text, filed_at) values ('a hare', 'now')"
        ).exit_code
        == 0
    )
    before = dict(rows(path, "select name, sql from sqlite_master where type in ('index', 'trigger')"))
    done = sqlite_utils_run("transform", path, "drawers", "--default", "wing", "unsorted")
    assert done.exit_code == 0, done.exception
    write(path, "insert into drawers(text) values ('a lynx without triggers')")
    with Palace.open(path) as palace:
        assert {"triggers", "full-text index of drawers"} <= {
            found.check for found in examine(palace) if not found.ok
        }
        mend(palace)
        assert [found.check for found in examine(palace) if not found.ok] == []
        assert texts(find(palace, "lynx", n_results=1)) == ["a lynx without triggers"]
        assert one(palace, "select wing from drawers where text like '%lynx%'") == ("unsorted",)
        assert column(palace, "select filed_at from drawers where text = 'a hare'") == ["now"]
    after = dict(rows(path, "select name, sql from sqlite_master where type in ('index', 'trigger')"))
    assert after.keys() == before.keys()


def test_a_column_of_ones_own_goes_once_the_indexes_are_away_that_sqlite_utils_cannot_carry(path):
    assert sqlite_utils_run("add-column", path, "drawers", "mood", "text").exit_code == 0
    refused = sqlite_utils_run("transform", path, "drawers", "--drop", "mood")
    assert "moment' is a partial or expression index" in str(refused.exception)
    for name in DATE_COLUMNS:
        write(path, f"drop index {schema.moment_index(name)}")
    assert sqlite_utils_run("transform", path, "drawers", "--drop", "mood").exit_code == 0
    with Palace.open(path) as palace:
        assert "3 indexes were made again." in mend(palace)
        assert [found.check for found in examine(palace) if not found.ok] == []
        assert find(palace, "fox", since="2026-03-01")["in_scope"] == 1


def rows(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()
