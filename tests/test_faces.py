"""Page, JSON, CSV, SQL, command line and Python: the same question brings the same drawers in the same order."""

import csv
import io
import json
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli

from datasette_mempalace import cli as commands
from datasette_mempalace.searcher import search_memories
from pages import Page

commands.register(datasette_cli)

QUESTIONS = [
    {"q": "how does somebody log in"},
    {"q": "token", "n_results": 20},
    {"q": "where are orders stored", "wing": ["acme-app"]},
    {"q": "rolling out", "wing": ["acme-app"], "room": ["deploy", "database"]},
    {"q": "nightly copy of invoices"},
    {"q": "東京"},
    {"q": 'markup "token" & <b>', "n_results": 5},
    {"q": "lighthouse keeper", "max_distance": 0.8},
    {"q": "steps of the notes", "since": "2026-03-01", "before": "2026-06-01"},
    {"q": "password", "vector_disabled": 1},
    {"q": "container cluster", "candidate_strategy": "vector", "n_results": 7},
    {"q": "customer index", "ranking": "mempalace", "candidate_strategy": "vector", "n_results": 5},
]


async def by_json(datasette, question):
    response = await datasette.client.get(f"/palace/-/mempalace.json?{urlencode(question, doseq=True)}")
    return [hit["drawer_id"] for hit in response.json()["results"]]


async def by_csv(datasette, question):
    response = await datasette.client.get(f"/palace/-/mempalace.csv?{urlencode(question, doseq=True)}")
    return [row["drawer_id"] for row in csv.DictReader(io.StringIO(response.text, newline=""))]


async def by_page(datasette, question):
    """The drawers behind the page's hits, through their row pages' own JSON."""
    response = await datasette.client.get(f"/palace/-/mempalace?{urlencode(question, doseq=True)}")
    ids = Page(response.text).hit_ids
    rows = await datasette.get_database("palace").execute("select id, drawer_id from drawers")
    names = {str(row["id"]): row["drawer_id"] for row in rows.rows}
    return [names[str(row_id)] for row_id in ids]


async def by_sql(datasette, question):
    options = {key: value for key, value in question.items() if key not in ("q", "wing", "room", "n_results")}
    sql = """
        select json_extract(value, '$.drawer_id') as drawer_id
        from json_each((select mempalace_search(:q, :wing, :room, :n_results, :options))) order by key
    """
    parameters = {
        "sql": sql,
        "q": question["q"],
        "wing": json.dumps(question["wing"]) if "wing" in question else "",
        "room": json.dumps(question["room"]) if "room" in question else "",
        "n_results": question.get("n_results", ""),
        "options": json.dumps(options),
        "_shape": "arrays",
    }
    response = await datasette.client.get(f"/palace.json?{urlencode(parameters)}", follow_redirects=True)
    return [row[0] for row in response.json()["rows"]]


def by_command_line(path, question):
    arguments = ["mempalace", "search", str(path), "--json", "--query", question["q"]]
    for name, value in question.items():
        if name == "vector_disabled":
            arguments.append("--words-only")
        elif name != "q":
            for each in value if isinstance(value, list) else [value]:
                arguments += [f"--{name.replace('_', '-')}", str(each)]
    result = CliRunner().invoke(datasette_cli, arguments)
    assert result.exit_code == 0, result.output
    return [hit["drawer_id"] for hit in json.loads(result.stdout)["results"]]


def by_python(path, question):
    given = {"ranking": "palace", "candidate_strategy": "union", "n_results": 10, **question}
    query = given.pop("q")
    if len(given.get("wing") or []) > 1 or len(given.get("room") or []) > 1:
        return None  # MemPalace's function takes one wing and one room
    given = {key: value[0] if isinstance(value, list) else value for key, value in given.items()}
    return [hit["drawer_id"] for hit in search_memories(query, path, **given)["results"]]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["q"])
async def test_every_face_answers_alike(served, palace_path, question):
    expected = await by_json(served, question)
    assert expected
    assert await by_page(served, question) == expected
    assert await by_csv(served, question) == expected
    assert await by_sql(served, question) == expected
    assert by_command_line(palace_path, question) == expected
    assert by_python(palace_path, question) in (expected, None)


def test_the_drop_in_function_is_the_search_with_mempalaces_defaults(palace_path):
    question = {
        "q": "token of the login",
        "ranking": "mempalace",
        "candidate_strategy": "vector",
        "n_results": 5,
    }
    defaults = [hit["drawer_id"] for hit in search_memories("token of the login", palace_path)["results"]]
    assert defaults == by_command_line(palace_path, question)
