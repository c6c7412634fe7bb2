"""A whole result set as a stream: every hit once, in the order of the pages, and an honest end."""

import csv
import io
import json
from urllib.parse import urlencode

import pytest

from datasette_mempalace.errors import TookTooLong
from datasette_mempalace.views import export

PALACE = "/palace/-/mempalace"
PLUGIN = "datasette-mempalace"
KINDS = {"ndjson": {}, "csv": {"all": 1}}


@pytest.fixture
def limited(make_datasette, palace_path):
    """A function that serves the sample palace with another greatest number of hits."""

    def serve(limit):
        return make_datasette(
            palace_path, config={"plugins": {PLUGIN: {"max_n_results": limit, "warm_up": False}}}
        )

    return serve


@pytest.fixture
def small_pages(monkeypatch):
    """Exports read ten hits at a time; the offsets they read at."""
    monkeypatch.setattr(export, "PAGE", 10)
    offsets = []
    run_search = export.run_search

    def noted(palace, asked):
        offsets.append(asked.offset)
        return run_search(palace, asked)

    monkeypatch.setattr(export, "run_search", noted)
    return offsets


async def get(datasette, extension, status=200, **parameters):
    query = urlencode({**KINDS[extension], **parameters}, doseq=True)
    response = await datasette.client.get(f"{PALACE}.{extension}?{query}")
    assert response.status_code == status, response.text[:400]
    return response


async def exported(datasette, extension, **parameters):
    """The ids of an export, in order, and its last line where it has one."""
    response = await get(datasette, extension, **parameters)
    if extension == "csv":
        return [int(row["id"]) for row in csv.DictReader(io.StringIO(response.text, newline=""))], None
    *hits, end = map(json.loads, response.text.splitlines())
    return [hit["id"] for hit in hits], end


async def paged(datasette, **parameters):
    """The hits that following `next` brings."""
    found, following = [], f"{PALACE}.json?{urlencode(parameters, doseq=True)}"
    while following:
        answer = (await datasette.client.get(following.removeprefix("http://localhost"))).json()
        found += answer["results"]
        following = answer["next_url"]
    return found


@pytest.mark.parametrize("extension", KINDS)
async def test_every_hit_once_in_the_order_of_the_pages(served, small_pages, extension):
    found, end = await exported(served, extension, q="login token")
    assert small_pages == list(range(0, 10 * len(small_pages), 10))
    assert len(small_pages) > 4
    expected = await paged(served, q="login token", n_results=10)
    assert found == [hit["id"] for hit in expected]
    assert len(set(found)) == len(found) > 50
    if end:
        assert end == {
            "ok": True,
            "hits": len(found),
            "complete": True,
            "limit": 1000,
            "fallback_reason": None,
            "message": f"All {len(found)} hits.",
        }


async def test_lines_are_the_hits_of_the_json(served):
    lines = [
        json.loads(line)
        for line in (await get(served, "ndjson", q="token", wing="acme-app")).text.splitlines()
    ]
    answer = await paged(served, q="token", wing="acme-app", n_results=100, context=0)
    assert lines[:-1] == answer
    assert lines[0]["url"].startswith("http://localhost/palace/drawers/")


@pytest.mark.parametrize("extension", KINDS)
@pytest.mark.parametrize("limit", [1, 10, 25, 30])
async def test_it_stops_at_the_limit_and_says_so(limited, small_pages, extension, limit):
    datasette = limited(limit)
    response = await get(datasette, extension, q="login token", n_results=1)
    assert response.headers["x-mempalace-limit"] == str(limit)
    found, end = await exported(datasette, extension, q="login token", n_results=1)
    assert len(found) == len(set(found)) == limit
    if end:
        assert end["complete"] is False
        assert end["limit"] == end["hits"] == limit
        assert f"limit of {limit} hits" in end["message"]


@pytest.mark.parametrize("limit", [42, 43])
async def test_as_many_as_the_limit_allows_are_all(limited, limit):
    found, end = await exported(limited(limit), "ndjson", q="token", wing="acme-app")
    assert len(found) == 42
    assert end["complete"] is True


@pytest.mark.parametrize("extension", KINDS)
async def test_nothing_found_is_an_empty_export(served, extension):
    found, end = await exported(served, extension, q="token", wing="nope")
    assert found == []
    assert end is None or (end["hits"], end["complete"]) == (0, True)


async def test_csv_is_the_same_file_but_longer(served):
    whole = await get(served, "csv", q="token", n_results=100)
    page = await served.client.get(f"{PALACE}.csv?q=token&n_results=100")
    assert whole.text.startswith(page.text)
    for header in ("content-type", "content-disposition"):
        assert whole.headers[header] == page.headers[header]
    assert "x-mempalace-limit" not in page.headers
    assert (await get(served, "csv", q="token", all=0)).text.count("http://localhost/palace/drawers/") == 10


async def test_words_only_is_told_at_the_end(served):
    _, end = await exported(served, "ndjson", q="token", vector_disabled=1)
    assert "switched off" in end["fallback_reason"]


@pytest.mark.parametrize("extension", KINDS)
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "q is missing"),
        ({"q": "x", "n_results": "no"}, "n_results: 'no'"),
        ({"q": "x", "since": "y"}, "since: 'y'"),
    ],
)
async def test_what_is_wrong_is_said_before_the_stream(served, extension, parameters, said):
    response = await get(served, extension, 400, **parameters)
    assert said in (response.json()["error"] if extension == "ndjson" else response.text)


async def test_all_is_a_flag(served):
    assert "all: 'perhaps' is not allowed" in (await get(served, "csv", 400, q="x", all="perhaps")).text


async def test_what_goes_wrong_on_the_way_ends_the_stream(served, small_pages, monkeypatch):
    run_search = export.run_search

    def failing(palace, asked):
        if asked.offset == 20:
            raise TookTooLong("The search took longer than it may.")
        return run_search(palace, asked)

    monkeypatch.setattr(export, "run_search", failing)
    lines = (await get(served, "ndjson", q="login token")).text.splitlines()
    assert len(lines) == 21
    assert json.loads(lines[-1])["ok"] is False


@pytest.mark.parametrize("extension", KINDS)
async def test_head_reads_nothing_to_the_end(served, small_pages, extension):
    query = urlencode({"q": "login token", **KINDS[extension]})
    response = await served.client.head(f"{PALACE}.{extension}?{query}")
    assert response.status_code == 200
    assert response.text == ""
    assert response.headers["x-mempalace-limit"] == "1000"
    assert len(small_pages) == 1


@pytest.mark.parametrize("extension", KINDS)
async def test_permission_methods_and_cors_as_for_json(make_datasette, palace_path, extension):
    closed = make_datasette(palace_path, config={"databases": {"palace": {"allow": False}}})
    assert (await get(closed, extension, 403, q="token")).status_code == 403
    datasette = make_datasette(palace_path, cors=True)
    for status, parameters in ((200, {"q": "token"}), (400, {})):
        response = await get(datasette, extension, status, **parameters)
        assert response.headers["access-control-allow-origin"] == "*"
    assert (await datasette.client.post(f"{PALACE}.{extension}?q=token")).status_code == 405
