"""The rules that doctor warns of are those that really leave a drawer's text open."""

from urllib.parse import urlencode

import pytest

from datasette_mempalace.pitfalls import permission_pitfalls

ROOT = {"id": "root"}
CLOSED_TABLE = {"tables": {"drawers": {"allow": ROOT}}}

# name: configuration, whether there is a pitfall
CASES = {
    "no rules": ({}, False),
    "only drawers": ({"databases": {"palace": CLOSED_TABLE}}, True),
    "only drawers, and no SQL": ({"databases": {"palace": {**CLOSED_TABLE, "allow_sql": False}}}, True),
    "the database": ({"databases": {"palace": {"allow": ROOT}}}, False),
    "the database and drawers alike": ({"databases": {"palace": {"allow": ROOT, **CLOSED_TABLE}}}, False),
    "the database for more than drawers": (
        {"databases": {"palace": {"allow": {"id": ["root", "anna"]}, **CLOSED_TABLE}}},
        True,
    ),
    "the instance and drawers alike": ({"allow": ROOT, "databases": {"palace": CLOSED_TABLE}}, False),
    "the instance": ({"allow": ROOT}, False),
    "the database, and drawers opened": (
        {"databases": {"palace": {"allow": ROOT, "tables": {"drawers": {"allow": True}}}}},
        True,
    ),
    "drawers of another": ({"databases": {"other": CLOSED_TABLE}}, False),
    "the database and closets alike": (
        {"databases": {"palace": {"allow": ROOT, "tables": {"closets": {"allow": ROOT}}}}},
        False,
    ),
}


@pytest.mark.parametrize(("config", "expected"), CASES.values(), ids=CASES)
async def test_a_pitfall_is_named_where_texts_are_open(
    make_datasette, palace_path, as_actor, config, expected
):
    told = permission_pitfalls(config, "palace")
    assert bool(told) is expected

    datasette = make_datasette(palace_path, config=config)
    await datasette.invoke_startup()
    # Who is let into the database or its table, but is not root.
    anna = as_actor(datasette, id="anna")
    closed = bool(config) and "other" not in config.get("databases", {})
    page = await datasette.client.get("/palace/-/mempalace?q=token", cookies=anna)
    assert page.status_code == (403 if closed else 200)
    open_ways = [
        path
        for path in ("/palace/drawers.json", "/palace/closets.json", f"/palace.json?{SQL}")
        if (await datasette.client.get(path, cookies=anna, follow_redirects=True)).status_code == 200
    ]
    if closed:
        assert bool(open_ways) is expected


SQL = urlencode({"sql": "select text from drawers limit 1"})


def test_what_is_said_helps():
    (told,) = permission_pitfalls({"databases": {"notes": CLOSED_TABLE}}, "notes")
    assert "mempalace_search()" in told
    assert "under the database instead (databases: notes: allow: ...)" in told
    closed_sql = {"databases": {"notes": {**CLOSED_TABLE, "allow_sql": False}}}
    (told,) = permission_pitfalls(closed_sql, "notes")
    assert "mempalace_search()" not in told
    assert "in closets" in told


def test_closets_closed_alone_are_a_pitfall_too():
    closed = {"tables": {"closets": {"allow": ROOT}}}
    (told,) = permission_pitfalls({"databases": {"notes": closed}}, "notes")
    assert told.startswith("In notes only the table closets is closed.")
    assert "by SQL," in told
    assert "closets_fts" in told
    assert "drawers" not in told
    both = {"tables": {**CLOSED_TABLE["tables"], **closed["tables"]}}
    (told,) = permission_pitfalls({"databases": {"notes": both}}, "notes")
    assert "the tables drawers and closets are closed" in told
    assert "in closets" not in told
    assert permission_pitfalls({"databases": {"notes": {**both, "allow": ROOT}}}, "notes") == []


@pytest.mark.parametrize("action", ["view-database", "view-instance"])
async def test_permissions_that_close_a_database_leave_its_tables_open(
    make_datasette, palace_path, as_actor, action
):
    config = {"permissions": {action: ROOT}}
    for given in (config, {"databases": {"palace": config}} if action == "view-database" else config):
        (told,) = permission_pitfalls(given, "palace")
        assert "Put an allow block under the database instead" in told
        datasette = make_datasette(palace_path, config=given)
        await datasette.invoke_startup()
        anna = as_actor(datasette, id="anna")
        response = await datasette.client.get("/palace/drawers.json", cookies=anna, follow_redirects=True)
        assert response.status_code == 200, "this is what is warned of"
    whole = {**config, "allow": ROOT}
    assert permission_pitfalls(whole, "palace") == []
    assert permission_pitfalls({"permissions": {action: ROOT, "view-table": ROOT}}, "palace") == []


def test_rules_of_datasette_1_are_read():
    config = {"databases": {"notes": {"tables": {"drawers": {"permissions": {"view-table": ROOT}}}}}}
    assert permission_pitfalls(config, "notes")


@pytest.mark.parametrize(
    "config", [None, [], {"databases": []}, {"databases": {"palace": None}}, {"permissions": 3}]
)
def test_a_strange_configuration_has_none(config):
    assert permission_pitfalls(config, "palace") == []
