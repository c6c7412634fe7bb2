"""The status of a palace over HTTP: counts for who may see it, the rest for who keeps it; it only reads."""

import re
import sqlite3

import pytest

from building import make_palace
from datasette_mempalace.compat import IS_ONE
from datasette_mempalace.views import status

PAGE = "/palace/-/mempalace/status"
PRIVATE = re.compile(r"/(tmp|home|root|private|var|usr)/")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "palace.db"
    with make_palace(path, [("the red fox", "w"), ("the blue whale", "w")], mirror=True) as palace:
        palace.checkpoint()
    return path


@pytest.fixture
def serve(make_datasette, path, monkeypatch):
    monkeypatch.setattr(status, "REMEMBERED", -1.0)
    # Its keeper would mend what the tests have done.
    monkeypatch.setattr("datasette_mempalace.keeper.Keeper.start", lambda self: None)

    def made(**options):
        datasette = make_datasette(path, **options)
        if IS_ONE:
            datasette.root_enabled = True
        return datasette

    return made


def change(path, statement):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


async def findings(datasette, **options):
    response = await datasette.client.get(f"{PAGE}.json?doctor=1", **options)
    assert response.status_code == 200
    return response.json(), {finding["check"]: finding for finding in response.json()["findings"]}


async def test_counts_at_once(serve):
    response = await serve().client.get(f"{PAGE}.json")
    found = response.json()
    assert (found["ok"], found["database"], found["url"]) == (True, "palace", "/palace/-/mempalace")
    assert (found["drawers"], found["vectors"], found["pending_vectors"]) == (2, 2, 0)
    assert found["mirror"]["state"] == "in step"
    assert found["findings"] is None
    assert found["well"] is None


async def test_the_page_says_the_same_and_is_linked(serve):
    datasette = serve()
    html = (await datasette.client.get(PAGE)).text
    assert "2 drawers in 1 wing and 0 rooms" in html
    assert "can be written" in html
    assert f'href="{PAGE}?doctor=1#examination"' in html
    assert f'href="{PAGE}"' in (await datasette.client.get("/palace/-/mempalace")).text
    examined = (await datasette.client.get(f"{PAGE}?doctor=1")).text
    assert "All is well" in examined
    assert "not well" not in examined


async def test_an_examination_finds_what_is_wrong(serve, path):
    datasette = serve()
    report, _ = await findings(datasette)
    assert report["well"] is True
    change(path, "insert into drawers(text) values ('waits for a vector')")
    change(path, "update drawer_vectors set vector = x'00' where id = 1")
    change(path, "drop trigger drawers_log_delete")
    change(path, "delete from drawers_fts_docsize where id = 2")
    report, found = await findings(datasette)
    assert report["well"] is False
    ill = {check for check, finding in found.items() if not finding["ok"]}
    assert ill == {
        "full-text index of drawers", "triggers", "vectors missing", "vectors unusable", "mirror",
    }  # fmt: skip
    html = (await datasette.client.get(f"{PAGE}?doctor=1")).text
    assert "datasette mempalace doctor palace.db --fix" in html


async def test_it_writes_nothing(serve, path):
    change(path, "insert into drawers(text) values ('waits for a vector')")
    looking = sqlite3.connect(path)
    before = looking.execute("pragma data_version").fetchone(), list(looking.iterdump())
    datasette = serve()
    for address in (PAGE, f"{PAGE}?doctor=1", f"{PAGE}.json?doctor=1"):
        assert (await datasette.client.get(address)).status_code == 200
    assert (looking.execute("pragma data_version").fetchone(), list(looking.iterdump())) == before
    looking.close()


async def test_paths_and_causes_are_for_those_who_keep_the_instance(serve, path, tmp_path, as_actor):
    embedder = {"name": "all-MiniLM-L6-v2", "config": {"path": str(tmp_path / "no-model-here")}}
    rule = {"databases": {"palace": {"tables": {"drawers": {"allow": {"id": ["root", "anna"]}}}}}}
    datasette = serve(config={"plugins": {"datasette-mempalace": {"embedder": embedder}}, **rule})
    await datasette.invoke_startup()
    report, found = await findings(datasette, cookies=as_actor(datasette, id="anna"))
    assert report["path"] is None
    assert report["embedder"]["available"] is False
    assert "permissions" not in found
    assert not found["embedding model"]["ok"]
    for address in (f"{PAGE}?doctor=1", f"{PAGE}.json?doctor=1"):
        text = (await datasette.client.get(address, cookies=as_actor(datasette, id="anna"))).text
        assert not PRIVATE.search(text)
        assert "no-model-here" not in text
    report, found = await findings(datasette, cookies=as_actor(datasette, id="root"))
    assert report["path"] == str(path)
    assert "is not installed here" in found["embedding model"]["cause"]
    assert "In palace only the table drawers is closed" in found["permissions"]["says"]
    html = (await datasette.client.get(f"{PAGE}?doctor=1", cookies=as_actor(datasette, id="root"))).text
    assert str(path) in html


async def test_no_key_is_ever_told(serve, as_actor):
    embedder = {"name": "openai", "config": {"api_key": "sk-very-secret", "model_name": "x"}}
    datasette = serve(config={"plugins": {"datasette-mempalace": {"embedder": embedder}}})
    await datasette.invoke_startup()
    for cookies in ({}, as_actor(datasette, id="root")):
        for address in (PAGE, f"{PAGE}?doctor=1", f"{PAGE}.json?doctor=1"):
            response = await datasette.client.get(address, cookies=cookies)
            assert response.status_code == 200
            assert "sk-very-secret" not in response.text


@pytest.mark.parametrize("query", ["doctor=perhaps", "fix=1", "doctor=1&q=x"])
async def test_other_parameters_are_refused(serve, query):
    datasette = serve()
    for address in (PAGE, f"{PAGE}.json"):
        response = await datasette.client.get(f"{address}?{query}")
        assert response.status_code == 400
        assert 'role="search"' not in response.text
    assert response.json()["ok"] is False


async def test_only_reading_is_allowed(serve):
    datasette = serve()
    assert (await datasette.client.head(f"{PAGE}.json")).status_code == 200
    # Datasette 0.65 refuses a POST without its token first.
    assert (await datasette.client.post(f"{PAGE}.json")).status_code in (403, 405)


async def test_examinations_are_not_repeated_at_once(serve, path, monkeypatch):
    monkeypatch.setattr(status, "REMEMBERED", 60.0)
    datasette = serve()
    first, _ = await findings(datasette)
    change(path, "drop trigger drawers_log_delete")
    assert (await findings(datasette))[0]["findings"] == first["findings"]
    monkeypatch.setattr(status, "REMEMBERED", -1.0)
    assert (await findings(datasette))[0]["well"] is False
