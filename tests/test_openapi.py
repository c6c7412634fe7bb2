"""The published description of the JSON API: valid, complete, and what is answered is what it says."""

import re
from urllib.parse import urlencode

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from conftest import LONG
from datasette_mempalace.request import PARAMETERS as SEARCH
from datasette_mempalace.views import ROUTES
from datasette_mempalace.views.openapi import document, path_of
from datasette_mempalace.views.operation import operation_of
from datasette_mempalace.views.parameters import PARAMETERS
from described import check

PALACE = "/palace/-/mempalace"
DOCUMENT = "/-/mempalace/openapi.json"
DATA = re.compile(r"\\\.(json|csv|ndjson)\$$")


def test_the_document_is_valid():
    OpenAPIV31SpecValidator(document(ROUTES, "http://localhost/", ["palace"])).validate()


def test_every_route_with_data_is_described():
    missing = [pattern for pattern, view in ROUTES if DATA.search(pattern) and operation_of(view) is None]
    assert missing == [], "put @described(Operation(...)) on these views, see views/operation.py"


def test_every_parameter_of_a_search_is_described():
    described = operation_of(dict(ROUTES)[r"^/(?P<database>[^\/\.]+)/-/mempalace\.json$"]).parameters
    assert set(described) == {*SEARCH, "filters"}
    assert set(described) <= set(PARAMETERS)


async def test_it_is_served_and_linked(served):
    response = await served.client.get(DOCUMENT)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("application/json")
    said = response.json()
    assert said["components"]["parameters"]["database"]["schema"]["enum"] == ["palace"]
    assert said["servers"] == [{"url": "http://localhost"}]
    assert (
        f'<link rel="service-desc" type="application/json" href="{DOCUMENT}">'
        in (await served.client.get(PALACE)).text
    )
    for extension in (".json", ".csv"):
        link = (await served.client.get(f"{PALACE}{extension}?q=token")).headers["link"]
        assert f'<{DOCUMENT}>; rel="service-desc"' in link
        assert 'rel="next"' in link


async def test_it_names_only_palaces_that_the_visitor_may_see(
    make_datasette, palace_path, palace_named, as_actor
):
    config = {"databases": {"secret": {"allow": {"id": "root"}}}}
    datasette = make_datasette(palace_path, palace_named("secret.db"), config=config)
    stranger = await datasette.client.get(DOCUMENT)
    assert "secret" not in stranger.text
    root = (await datasette.client.get(DOCUMENT, cookies=as_actor(datasette, id="root"))).json()
    assert root["components"]["parameters"]["database"]["schema"]["enum"] == ["palace", "secret"]


async def test_paths_lead_to_the_routes_with_a_base_url(make_datasette, palace_path):
    datasette = make_datasette(palace_path, settings={"base_url": "/prefix/"})
    said = (await datasette.client.get("/-/mempalace/openapi.json")).json()
    server = said["servers"][0]["url"]
    assert server == "http://localhost/prefix"
    path = next(path for path in said["paths"] if path.endswith("mempalace.json"))
    address = (server + path).removeprefix("http://localhost/prefix").replace("{database}", "palace")
    assert (await datasette.client.get(f"{address}?q=token")).status_code == 200


# What is answered is what is described


QUERIES = [
    {"q": "lighthouse keeper lamp", "explain": 1},
    {"q": LONG},
    {"q": "tokne", "wing": "acme-ap", "vector_disabled": 1},
    {
        "q": "token",
        "wing": ["acme-app", "acme_app"],
        "wing__isnull": 1,
        "since": "2026-01-01",
        "added_by__isnull": 1,
    },
    {"q": "token", "ids": "1,2,3", "max_distance": 0.8, "facets": 0, "n_results": 1, "ranking": "mempalace"},
    {"q": "token", "n_results": 0},
    {"wing": "x"},
    {"q": "token", "nope__gt": 1},
]


@pytest.mark.parametrize("query", QUERIES, ids=str)
@pytest.mark.parametrize("extension", [".json", ".csv", ".ndjson"])
async def test_answers_of_a_search_are_as_described(served, extension, query):
    response = await served.client.get(f"{PALACE}{extension}?{urlencode(query, doseq=True)}")
    check("/{database}/-/mempalace" + extension, response)


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("drawer/{drawer_id}.json", "drawer/3.json?q=token&similar=wing"),
        ("drawer/{drawer_id}.json", "drawer/nobody.json"),
        ("drawer/{drawer_id}.json", "drawer/3.json?as=x"),
        ("similar.json", "similar.json?drawer_id=3&wing=acme-app&max_distance=1.5"),
        ("similar.json", "similar.json"),
        ("duplicates.json", "duplicates.json?threshold=0.98&added_by__isnull=1"),
        ("duplicates.json", "duplicates.json?threshold=x"),
    ],
)
async def test_answers_about_drawers_are_as_described(served, path, address):
    check(f"/{{database}}/-/mempalace/{path}", await served.client.get(f"{PALACE}/{address}"))


@pytest.mark.parametrize("database", ["nope", "palace"])
async def test_refusals_are_as_described(make_datasette, palace_path, database):
    datasette = make_datasette(palace_path, config={"databases": {"palace": {"allow": {"id": "root"}}}})
    for pattern, view in ROUTES:
        path = path_of(pattern)
        if operation_of(view) and "{database}" in path:
            address = (
                path.replace("{database}", database).replace("{drawer_id}", "1").replace("{what}", "rooms")
            )
            response = await datasette.client.get(f"{address}?q=token")
            assert response.status_code == (404 if database == "nope" else 403), path
            check(path, response)


async def test_the_document_describes_itself(served):
    check(DOCUMENT, await served.client.get(DOCUMENT))


@pytest.mark.parametrize(
    "query",
    [{}, {"wing": "acme-app", "since": "2026-01-01"}, {"q": "token"}, {"wing": "nope"}, {"n_results": 0}],
    ids=str,
)
@pytest.mark.parametrize(
    "page", ["overview.json", "timeline.json", "rooms.json", "sources.json", "authors.csv"]
)
async def test_answers_of_the_look_around_are_as_described(served, page, query):
    path = re.sub(r"^(?!overview|timeline)\w+", "{what}", page)
    response = await served.client.get(f"{PALACE}/{page}?{urlencode(query)}")
    check("/{database}/-/mempalace/" + path, response)


@pytest.mark.parametrize("source", ["/notes/guide.md", "nope"])
async def test_a_source_is_as_described(served, source):
    check(
        "/{database}/-/mempalace/source.json",
        await served.client.get(f"{PALACE}/source.json?source_file={source}"),
    )
