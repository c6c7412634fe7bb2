"""Who may see a palace: those who may see both its database and its table of drawers, on every face alike."""

import sqlite3

import pytest

from pages import Page

PALACE = "/palace/-/mempalace"
ROOT = {"id": "root"}
DENIED = {
    "database": {"databases": {"palace": {"allow": ROOT}}},
    "table": {"databases": {"palace": {"tables": {"drawers": {"allow": ROOT}}}}},
    "instance": {"allow": ROOT},
    "database, though not its table": {
        "databases": {"palace": {"allow": ROOT, "tables": {"drawers": {"allow": True}}}}
    },
}


@pytest.mark.parametrize("config", DENIED.values(), ids=DENIED)
async def test_denied_to_a_stranger_and_open_to_root(make_datasette, palace_path, as_actor, config):
    datasette = make_datasette(palace_path, config=config)
    await datasette.invoke_startup()
    root = as_actor(datasette, id="root")

    page = await datasette.client.get(f"{PALACE}?q=token")
    assert page.status_code == 403
    assert "token" not in page.text
    assert (await datasette.client.get(f"{PALACE}?q=token", cookies=root)).status_code == 200

    answer = await datasette.client.get(f"{PALACE}.json?q=token")
    assert answer.status_code == 403
    assert answer.json()["ok"] is False
    assert answer.json()["status"] == 403
    assert answer.json()["errors"] == [answer.json()["error"]]
    assert set(answer.json()) == {"ok", "error", "errors", "status", "title"}
    assert (await datasette.client.get(f"{PALACE}.json?q=token", cookies=root)).json()["ok"] is True

    rows = await datasette.client.get(f"{PALACE}.csv?q=token")
    assert rows.status_code == 403
    assert len(rows.text.splitlines()) == 1
    assert (await datasette.client.get(f"{PALACE}.csv?q=token", cookies=root)).status_code == 200


@pytest.mark.parametrize("config", DENIED.values(), ids=DENIED)
async def test_no_link_to_what_is_denied(make_datasette, palace_path, as_actor, config):
    datasette = make_datasette(palace_path, config=config)
    await datasette.invoke_startup()
    for path in ("/", "/palace", "/palace/drawers", "/palace/closets", "/-/mempalace"):
        assert f'"{PALACE}"' not in (await datasette.client.get(path)).text, path
    root = as_actor(datasette, id="root")
    assert f'"{PALACE}"' in (await datasette.client.get("/palace", cookies=root)).text


async def test_the_index_lists_only_what_may_be_seen(
    make_datasette, palace_path, empty_path, palace_named, as_actor
):
    config = {"databases": {"secret": {"allow": ROOT}}}
    datasette = make_datasette(palace_path, empty_path, palace_named("secret.db"), config=config)
    await datasette.invoke_startup()

    def listed(response):
        return [said for _, said in Page(response.text).links if said in ("palace", "empty", "secret")]

    assert listed(await datasette.client.get("/-/mempalace")) == ["palace", "empty"]
    everything = await datasette.client.get("/-/mempalace", cookies=as_actor(datasette, id="root"))
    assert listed(everything) == ["palace", "empty", "secret"]


async def test_the_index_leads_to_the_only_one_that_may_be_seen(make_datasette, palace_path, palace_named):
    datasette = make_datasette(
        palace_path, palace_named("secret.db"), config={"databases": {"secret": {"allow": ROOT}}}
    )
    response = await datasette.client.get("/-/mempalace")
    assert response.status_code == 302
    assert response.headers["location"] == PALACE


async def test_the_index_of_a_closed_instance_is_forbidden(make_datasette, palace_path):
    datasette = make_datasette(palace_path, config={"allow": ROOT})
    assert (await datasette.client.get("/-/mempalace")).status_code == 403


async def test_sql_link_only_for_those_who_may_run_sql(make_datasette, palace_path, as_actor):
    datasette = make_datasette(palace_path, config={"databases": {"palace": {"allow_sql": ROOT}}})
    await datasette.invoke_startup()
    page = await datasette.client.get(f"{PALACE}?q=token")
    assert page.status_code == 200
    assert "View and edit SQL" not in page.text
    page = await datasette.client.get(f"{PALACE}?q=token", cookies=as_actor(datasette, id="root"))
    assert "View and edit SQL" in page.text


async def test_denied_says_nothing_about_being_a_palace(make_datasette, palace_path, tmp_path):
    sqlite3.connect(tmp_path / "plain.db").execute("create table t(x)").connection.close()
    closed = {"allow": ROOT}
    datasette = make_datasette(
        palace_path, tmp_path / "plain.db", config={"databases": {"palace": closed, "plain": closed}}
    )
    answers = [await datasette.client.get(f"/{name}/-/mempalace.json?q=x") for name in ("palace", "plain")]
    assert [answer.status_code for answer in answers] == [403, 403]
    said = [answer.json()["error"].replace("plain", "palace") for answer in answers]
    assert said[0] == said[1]


async def test_case_37_a_denied_database_shows_none_of_its_tables(make_datasette, palace_path):
    datasette = make_datasette(palace_path, config={"databases": {"palace": {"allow": ROOT}}})
    await datasette.invoke_startup()
    tables = await datasette.get_database("palace").table_names()
    assert {"drawers", "drawers_fts", "drawers_fts_data", "closets", "drawer_vectors"} <= set(tables)
    for table in tables:
        assert (await datasette.client.get(f"/palace/{table}.json")).status_code == 403, table


async def test_case_38_another_database_cannot_search_a_palace(make_datasette, palace_path, tmp_path):
    sqlite3.connect(tmp_path / "public.db").execute("create table t(x)").connection.close()
    datasette = make_datasette(palace_path, tmp_path / "public.db", memory=True, crossdb=True)
    await datasette.invoke_startup()
    sql = "select mempalace_search('token')"
    for database in ("public", "_memory"):
        with pytest.raises(sqlite3.OperationalError, match="no such function"):
            await datasette.get_database(database).execute(sql)
    assert (await datasette.get_database("palace").execute(sql)).first()[0].startswith("[{")


async def test_case_22_the_tables_own_search_finds_only_what_it_should(served):
    for words, found in (("zzz", False), ("token", True)):
        response = await served.client.get(f"/palace/drawers.json?_search={words}&_shape=array")
        assert bool(response.json()) is found
