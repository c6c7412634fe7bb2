"""The search as JSON and CSV: its shape, its errors, its links, and that a spreadsheet may open it."""

import csv
import io
import json
from urllib.parse import urlencode, urlsplit

import pytest
from datasette.utils import asgi

from building import make_palace
from conftest import LONG, ODD_WINGS

PALACE = "/palace/-/mempalace"
HIT_KEYS = {
    "rank", "id", "drawer_id", "url", "wing", "room", "source_file", "source_path", "chunk_index", "text", "snippet",
    "score", "similarity", "distance", "effective_distance", "bm25_score", "closet_boost", "closet_preview",
    "matched_via", "filed_at", "authored_at", "content_date", "heading", "chunk_total", "found_by", "context", "also_in",
}  # fmt: skip
ANSWER_KEYS = {
    "ok", "query", "filters", "in_scope", "candidates", "total_before_filter", "results", "facets", "did_you_mean",
    "next", "next_url", "unknown_parameters", "vector_status", "fallback", "fallback_reason", "timings_ms",
}  # fmt: skip


async def search(datasette, status=200, **parameters):
    response = await datasette.client.get(f"{PALACE}.json?{urlencode(parameters, doseq=True)}")
    assert response.status_code == status, response.text[:400]
    return response.json()


async def rows_of(datasette, **parameters):
    response = await datasette.client.get(f"{PALACE}.csv?{urlencode(parameters, doseq=True)}")
    assert response.status_code == 200, response.text[:400]
    return list(csv.DictReader(io.StringIO(response.text, newline="")))


async def test_answer_has_the_promised_keys(served):
    answer = await search(served, q="login token")
    assert set(answer) >= ANSWER_KEYS
    assert answer["ok"] is True
    assert answer["query"] == "login token"
    assert len(answer["results"]) == 10
    for rank, hit in enumerate(answer["results"], 1):
        assert set(hit) >= HIT_KEYS
        assert hit["rank"] == rank
        assert 0 <= hit["similarity"] <= 1


async def test_links_are_absolute_and_work(served):
    answer = await search(served, q="login token", wing="acme-app")
    links = [hit["url"] for hit in answer["results"]]
    links += [value["toggle_url"] for values in answer["facets"].values() for value in values]
    links.append(answer["next_url"])
    for link in links:
        assert link.startswith("http://localhost/palace/")
        parts = urlsplit(link)
        response = await served.client.get(f"{parts.path}?{parts.query}")
        assert response.status_code == 200, link


async def test_next_url_continues_the_ranking(served):
    first = await search(served, q="token", n_results=5)
    both = await search(served, q="token", n_results=10)
    response = await served.client.get(first["next_url"].removeprefix("http://localhost"))
    assert response.status_code == 200
    ids = [hit["id"] for answer in (first, response.json()) for hit in answer["results"]]
    assert ids == [hit["id"] for hit in both["results"]]
    assert [hit["rank"] for hit in response.json()["results"]] == [6, 7, 8, 9, 10]


async def test_next_link_header(served):
    response = await served.client.get(f"{PALACE}.json?q=token&n_results=5")
    assert response.headers["link"].startswith(f'<{response.json()["next_url"]}>; rel="next"')


async def test_facets_can_be_left_out(served):
    assert not (await search(served, q="token", facets="0")).get("facets")


@pytest.mark.parametrize("wing", ODD_WINGS)
async def test_toggle_urls_of_odd_names_lead_to_them(served, wing):
    answer = await search(served, q="token", n_results=50)
    (value,) = [value for value in answer["facets"]["wing"] if value["value"] == wing]
    response = await served.client.get(value["toggle_url"].removeprefix("http://localhost"))
    assert {hit["wing"] for hit in response.json()["results"]} == {wing}
    again = next(other for other in response.json()["facets"]["wing"] if other["value"] == wing)
    assert again["selected"]
    assert "wing" not in urlsplit(again["toggle_url"]).query


async def test_the_facet_of_no_wing(served):
    answer = await search(served, q="token", n_results=50)
    (value,) = [value for value in answer["facets"]["wing"] if value["value"] is None]
    response = await served.client.get(value["toggle_url"].removeprefix("http://localhost"))
    assert [hit["wing"] for hit in response.json()["results"]] == [None] * value["count"]


async def test_an_empty_filter_is_none(served):
    plain = await search(served, q="token")
    empty = await search(served, q="token", wing="", room="", since="", source_file="")
    assert [hit["id"] for hit in plain["results"]] == [hit["id"] for hit in empty["results"]]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "q is missing or blank"),
        ({"q": "   "}, "q is missing or blank"),
        ({"q": "x", "n_results": "0"}, "whole number from 1 to 1,000"),
        ({"q": "x", "n_results": "-1"}, "whole number from 1 to 1,000"),
        ({"q": "x", "n_results": "abc"}, "whole number from 1 to 1,000"),
        ({"q": "x", "n_results": "1000000"}, "whole number from 1 to 1,000"),
        ({"q": "x", "since": "yesterday"}, "since: 'yesterday'"),
        ({"q": "x", "since": "2026-04-02", "before": "2026-04-01"}, "since:"),
        ({"q": "x", "max_distance": "3"}, "max_distance: '3'"),
        ({"q": "x", "candidate_strategy": "both"}, "union, vector"),
        ({"q": "x", "ranking": "best"}, "palace, mempalace"),
        ({"q": "x", "vector_disabled": "perhaps"}, "vector_disabled: 'perhaps'"),
    ],
)
async def test_bad_input_is_400_and_named(served, parameters, said):
    answer = await search(served, status=400, **parameters)
    assert answer["ok"] is False
    assert said in answer["error"]
    assert answer["errors"] == [answer["error"]]
    assert answer["status"] == 400
    assert answer["title"]
    response = await served.client.get(f"{PALACE}.csv?{urlencode(parameters)}")
    assert response.status_code == 400
    assert said in response.text
    assert response.headers["content-type"].startswith("text/plain")


@pytest.mark.asyncio
async def test_a_url_of_many_parameters_is_not_parsed_for_each(served, monkeypatch):
    parsed = []
    parse_qs = asgi.parse_qs
    monkeypatch.setattr(asgi, "parse_qs", lambda *given, **how: parsed.append(1) or parse_qs(*given, **how))
    counts = []
    for number in (1, 300):
        parsed.clear()
        answer = await search(served, q="token", **{f"unknown{n}": "1" for n in range(number)})
        assert answer["results"]
        counts.append(len(parsed))
    assert counts[0] == counts[1] > 0


async def test_no_match_is_an_empty_list(served):
    answer = await search(served, q="token", wing="nope")
    assert answer["ok"] is True
    assert answer["results"] == []
    assert answer["next"] is None
    assert answer["next_url"] is None
    assert await rows_of(served, q="token", wing="nope") == []


async def test_an_empty_palace(make_datasette, empty_path):
    response = await make_datasette(empty_path).client.get("/empty/-/mempalace.json?q=x")
    assert response.status_code == 200
    assert response.json()["results"] == []


@pytest.mark.parametrize(
    "words", ["multi-agent", '"unbal', "C++", "v3.3.6", "don't", "wing:x", "NOT", "*", "(", "東京", "\x00"]
)
async def test_words_are_no_query_language(served, words):
    assert (await search(served, q=words + " token"))["results"]


async def test_not_there(make_datasette, palace_path, tmp_path):
    datasette = make_datasette(palace_path, memory=True)
    for path, said in (
        ("/nope/-/mempalace.json?q=x", "not found"),
        ("/_memory/-/mempalace.json?q=x", "in memory"),
    ):
        response = await datasette.client.get(path)
        assert response.status_code == 404
        assert response.json()["ok"] is False
        assert said in response.json()["error"]


@pytest.mark.parametrize("extension", ["json", "csv"])
async def test_cors(make_datasette, palace_path, extension):
    for cors in (True, False):
        datasette = make_datasette(palace_path, cors=cors)
        for query, status in (("?q=token", 200), ("", 400)):
            response = await datasette.client.get(f"{PALACE}.{extension}{query}")
            assert response.status_code == status
            assert response.headers.get("access-control-allow-origin") == ("*" if cors else None)
        preflight = await datasette.client.options(f"{PALACE}.{extension}?q=token")
        assert preflight.status_code == (200 if cors else 405)


async def test_csv_has_the_rows_of_the_json(served):
    answer = await search(served, q="token", wing=["acme-app", "acme_app"], n_results=20)
    rows = await rows_of(served, q="token", wing=["acme-app", "acme_app"], n_results=20)
    assert [int(row["id"]) for row in rows] == [hit["id"] for hit in answer["results"]]
    assert [row["text"] for row in rows] == [hit["text"] for hit in answer["results"]]
    assert [row["url"] for row in rows] == [hit["url"] for hit in answer["results"]]


async def test_csv_copies(served):
    (row,) = await rows_of(served, q=LONG, n_results=1)
    (hit,) = (await search(served, q=LONG, n_results=1))["results"]
    assert row["also_in"] == hit["also_in"][0]["drawer_id"]


async def test_csv_is_a_file_of_the_databases_name(make_datasette, palace_named):
    datasette = make_datasette(palace_named('é "x.db'))
    home = (await datasette.client.get("/-/mempalace")).headers["location"]
    response = await datasette.client.get(f"{home}.csv?q=token")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == (
        "attachment; filename=\"___x-mempalace.csv\"; filename*=UTF-8''%C3%A9%20%22x-mempalace.csv"
    )


async def test_csv_begins_no_formula(served):
    rows = await rows_of(served, q="HYPERLINK formula token", wing="=1+1")
    (row,) = rows
    assert row["wing"] == "'=1+1"
    assert row["room"] == "'@sum"
    assert row["source_file"] == "'-x.csv"
    assert row["text"].startswith("'=HYPERLINK(")
    assert row["snippet"].startswith("'=")
    for row in await rows_of(served, q="token", n_results=100):
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")) or float(cell) < 0


async def test_csv_snippets_have_no_marks(served):
    for row in await rows_of(served, q="token"):
        assert "\x01" not in row["snippet"]
        assert "token" in row["snippet"].lower()


async def test_immutable_palace(make_datasette, palace_named):
    datasette = make_datasette(immutables=[str(palace_named("fixed.db"))])
    response = await datasette.client.get("/fixed/-/mempalace.json?q=token")
    assert response.status_code == 200
    assert response.json()["vector_status"] in ("ok", "exact")
    assert len(response.json()["results"]) == 10


async def test_many_at_once(served):
    import asyncio

    await served.invoke_startup()
    answers = await asyncio.gather(*(search(served, q=f"token {number}") for number in range(20)))
    assert all(answer["results"] for answer in answers)


async def test_settings_of_one_database(make_datasette, palace_path, palace_named):
    config = {
        "databases": {"other": {"plugins": {"datasette-mempalace": {"n_results": 3, "warm_up": False}}}}
    }
    datasette = make_datasette(palace_path, palace_named("other.db"), config=config)
    assert len((await search(datasette, q="token"))["results"]) == 10
    response = await datasette.client.get("/other/-/mempalace.json?q=token")
    assert len(response.json()["results"]) == 3


async def test_json_is_json_for_any_text(served):
    response = await served.client.get(f"{PALACE}.json?{urlencode({'q': 'token markup', 'wing': 'markup'})}")
    (hit,) = json.loads(response.text)["results"]
    assert hit["text"].startswith("<script>")


async def test_csv_keeps_nul_in_a_text(make_datasette, tmp_path):
    path = tmp_path / "palace.db"
    with make_palace(path, [("a fox\x00 with a NUL", "w")]):
        pass
    response = await make_datasette(path).client.get(f"{PALACE}.csv?q=fox")
    assert response.text.rstrip().endswith(",a fox\x00 with a NUL"), (
        "as bytes: csv reads no NUL before Python 3.11"
    )


async def test_json_names_parameters_that_are_not_known_and_is_the_same_without_them(served):
    answer = await search(served, q="token", wnig="acme-app", xqzj="1")
    assert answer["unknown_parameters"] == [{"name": "wnig", "near": ["wing"]}, {"name": "xqzj", "near": []}]
    plain = await search(served, q="token", _shape="array", added_by__exact="", wing="", nothing="")
    assert plain["unknown_parameters"] == []
    assert [hit["id"] for hit in plain["results"]] == [hit["id"] for hit in answer["results"]]
