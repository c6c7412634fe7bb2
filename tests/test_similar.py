"""Similar drawers: the same on every face, other sources first, and never silently nothing."""

import json
import sqlite3
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from building import make_palace
from datasette_mempalace import sql_tables
from datasette_mempalace.cli import mempalace
from datasette_mempalace.cli import register as register_commands
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.errors import BadInput, DrawerNotFound, NoVector
from datasette_mempalace.similar import parse_similar, run_similar, similar_drawers
from datasette_mempalace.sql_functions import register
from datasette_mempalace.vectors import read_vectors

if "similar" not in mempalace.commands:
    register_commands(SimpleNamespace(add_command=lambda command: None))

KEY = "The spare key of the shed lies under the blue flower pot."


def ask(palace, drawer, **given):
    return run_similar(palace, parse_similar({"drawer_id": drawer, **given}, palace.settings))


def ids(answer):
    return [hit["id"] for hit in answer["results"]]


@pytest.fixture(scope="module")
def garden(tmp_path_factory):
    """Drawers of three sources about keys, one copy, one without a source, one without a wing."""
    palace = make_palace(
        tmp_path_factory.mktemp("garden") / "garden.db",
        [
            Drawer(KEY, wing="home", room="shed", source_file="/a.md", chunk_index=0),
            Drawer("The spare key of the shed lies under a flower pot.", "home-2", "home", "shed", "/a.md", 1),
            Drawer("A second key of the shed hangs in the hall.", wing="home", room="hall", source_file="/a.md", chunk_index=2),
            Drawer(KEY, wing="copies", room="shed", source_file="/b.md", chunk_index=0),
            Drawer("Where we keep the key: below the flower pot by the shed.", wing="home", room="shed", source_file="/c.md"),
            Drawer("Nobody knows where the key of the shed is."),
            Drawer("The orchestra plays Mahler on Sunday evening.", wing="music", room="concerts", source_file="/d.md"),
        ],
    )  # fmt: skip
    yield palace
    palace.close()


def test_other_sources_come_first_and_the_drawer_itself_never(garden):
    answer = ask(garden, 1)
    order = [hit["same_source"] for hit in answer["results"]]
    assert order == sorted(order)
    assert sum(order) == 2
    assert 1 not in ids(answer)
    assert len(ids(answer)) == 6
    for same in (False, True):
        distances = [hit["distance"] for hit in answer["results"] if hit["same_source"] is same]
        assert distances == sorted(distances)


def test_nearest_first_is_the_order_of_all_distances(garden):
    answer = ask(garden, 1, other_sources_first=0)
    with garden.reader() as connection:
        known, matrix = read_vectors(connection, "drawer", range(1, 8), 384)
    own = matrix[known.index(1)]
    expected = sorted(
        (round(float(np.clip(1 - matrix[place].astype(float) @ own.astype(float), 0, 2)), 6), row_id)
        for place, row_id in enumerate(known)
        if row_id != 1
    )
    assert ids(answer) == [row_id for _, row_id in expected]
    assert [hit["distance"] for hit in answer["results"]] == pytest.approx(
        [far for far, _ in expected], abs=2e-6
    )


def test_copies_are_marked(garden):
    first = ask(garden, 1)["results"][0]
    assert (first["id"], first["same_text"], first["similarity"]) == (4, True, 1.0)
    assert [hit["id"] for hit in ask(garden, 1)["results"] if hit["same_text"]] == [4]


def test_scope_and_distance_narrow(garden):
    assert set(ids(ask(garden, 1, wing="home"))) == {2, 3, 5}
    assert set(ids(ask(garden, 1, wing="home", room="shed"))) == {2, 5}
    assert ids(ask(garden, 1, wing__isnull=1)) == [6]
    assert 7 not in ids(ask(garden, 1, max_distance=0.8))
    assert ids(ask(garden, 1, n_results=1)) == [4]


def test_a_drawer_without_a_source_shares_it_with_none(garden):
    assert not any(hit["same_source"] for hit in ask(garden, 6)["results"])
    assert ask(garden, 6)["drawer"]["source_file"] is None


def test_a_large_source_does_not_hide_the_others(tmp_path):
    chunks = [
        Drawer(f"Chapter {n} on the lighthouse keeper and his lamp.", source_file="/book.md", chunk_index=n)
        for n in range(150)
    ]
    other = Drawer("How bread is baked in a wood oven.", source_file="/bread.md")
    with make_palace(tmp_path / "p.db", [*chunks, other]) as palace:
        answer = ask(palace, 1, n_results=3)
        assert [hit["same_source"] for hit in answer["results"]] == [False, True, True]
        with_copy = ask(palace, 1, n_results=200)
        assert len(with_copy["results"]) == 150


@pytest.mark.parametrize(
    "settings", [Settings(exact_limit=0), Settings(exact_limit=0, matrix_mb=0), Settings()]
)
def test_every_engine_gives_the_same_drawers(tmp_path, settings):
    drawers = [
        Drawer(f"Note {n}: {'the lamp of the tower' if n % 3 else 'a loaf of bread'} number {n % 40}.", source_file=f"/{n % 7}.md")
        for n in range(340)
    ]  # fmt: skip
    with make_palace(tmp_path / "p.db", drawers, mirror=True, settings=settings) as palace:
        found = ask(palace, 5, n_results=15, wing__isnull=1)
        plain = ask(palace, 5, n_results=15)
        assert ids(found) == ids(plain)
        assert [hit["distance"] for hit in found["results"]] == sorted(
            hit["distance"] for hit in found["results"]
        )


def test_a_drawer_that_waits_for_its_vector_is_embedded_for_the_answer(garden, tmp_path):
    with make_palace(tmp_path / "p.db", [(KEY, "home", None), ("Bread and butter.", "home", None)]) as palace:
        put_drawers(palace, [Drawer("The key lies under the pot.", drawer_id="new")])
        answer = ask(palace, "new")
        assert answer["vector"] == "embedded"
        assert answer["results"][0]["text"] == KEY
        assert ask(palace, 1)["vector"] == "stored"


def test_what_cannot_be_compared_says_why(tmp_path):
    with make_palace(tmp_path / "p.db") as palace:
        put_drawers(palace, [Drawer("A text.", drawer_id="x")])
        with pytest.raises(NoVector, match="No drawer of this palace has a vector yet"):
            ask(palace, "x")
    with make_palace(tmp_path / "q.db", [("A text.", None, None)]) as palace:
        put_drawers(palace, [Drawer(" \n ", drawer_id="blank")])
        with pytest.raises(NoVector, match="blank"):
            ask(palace, "blank")


def test_without_a_model_a_missing_vector_is_told(tmp_path, monkeypatch):
    with make_palace(tmp_path / "q.db", [("A text.", None, None)]) as palace:
        put_drawers(palace, [Drawer("Another text.", drawer_id="late")])
        monkeypatch.setattr(type(palace.embedder), "is_loaded", property(lambda self: False))
        monkeypatch.setattr(type(palace.embedder), "missing", lambda self: "the model is not installed here")
        with pytest.raises(NoVector, match="the model is not installed here"):
            ask(palace, "late")


def test_a_name_comes_before_a_row_and_a_number_is_a_row(tmp_path):
    with make_palace(
        tmp_path / "p.db", [Drawer("First.", drawer_id="2"), Drawer("Second.", drawer_id="b")]
    ) as palace:
        assert ask(palace, "2")["drawer"]["id"] == 1
        assert ask(palace, 2)["drawer"]["id"] == 2
        assert ask(palace, "1")["drawer"]["drawer_id"] == "2"
        with pytest.raises(DrawerNotFound, match="There is no drawer 'c'"):
            ask(palace, "c")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "drawer_id is missing"),
        ({"drawer_id": ["1", "2"]}, "drawer_id"),
        ({"drawer_id": True}, "drawer_id"),
        ({"drawer_id": 1, "n_results": 0}, "n_results"),
        ({"drawer_id": 1, "other_sources_first": "perhaps"}, "other_sources_first"),
        ({"drawer_id": 1, "max_distance": 3}, "max_distance"),
        ({"drawer_id": 1, "q": "words"}, "'q' is not allowed"),
        ({"drawer_id": 1, "sources": "x"}, "sources"),
    ],
)
def test_what_is_not_allowed_is_named(given, message):
    with pytest.raises(BadInput, match=message):
        parse_similar(given, Settings(), strict=True)


async def test_every_face_gives_the_same_drawers(served, palace_path):
    answer = (
        await served.client.get("/palace/-/mempalace/similar.json?drawer_id=3&n_results=6&wing=acme-app")
    ).json()
    expected = ids(answer)
    assert len(expected) == 6
    assert ids(similar_drawers(3, palace_path, n_results=6, wing="acme-app")) == expected
    done = CliRunner().invoke(
        mempalace, ["similar", str(palace_path), "3", "--n-results", "6", "--wing", "acme-app", "--json"]
    )
    assert ids(json.loads(done.stdout)) == expected
    for sql in (
        "select id from mempalace_similar('3', 6, json_object('wing', 'acme-app')) order by rank",
        "select json_extract(value, '$.id') as id from json_each((select mempalace_similar(3, '6', json_object('wing', 'acme-app')))) order by key",
    ):
        response = await served.client.get(
            "/palace.json", params={"sql": sql, "_shape": "array"}, follow_redirects=True
        )
        assert [row["id"] for row in response.json()] == expected, sql
    page = await served.client.get("/palace/-/mempalace/similar?drawer_id=3&n_results=6&wing=acme-app")
    assert page.status_code == 200
    places = [page.text.index(f'/drawer/{hit["drawer_id"]}" ') for hit in answer["results"]]
    assert places == sorted(places)
    assert answer["results"][0]["url"].startswith("http://localhost/palace/-/mempalace/drawer/")


async def test_the_command_line_shows_them(palace_path):
    done = CliRunner().invoke(mempalace, ["similar", str(palace_path), "3", "--n-results", "2"])
    assert done.exit_code == 0
    assert done.stdout.count("\n\n") == 1
    missing = CliRunner().invoke(mempalace, ["similar", str(palace_path), "no such"])
    assert missing.exit_code == 2
    assert "There is no drawer 'no such'" in missing.output


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("", 400, "drawer_id is missing"),
        ("drawer_id=nothing", 404, "There is no drawer &#39;nothing&#39;"),
        ("drawer_id=1&n_results=many", 400, "n_results"),
    ],
)
async def test_errors_of_page_and_json(served, query, status, says):
    page = await served.client.get(f"/palace/-/mempalace/similar?{query}")
    data = await served.client.get(f"/palace/-/mempalace/similar.json?{query}")
    assert (page.status_code, data.status_code) == (status, status)
    assert says in page.text.replace("&#39;", "&#39;")
    assert data.json()["ok"] is False
    assert data.json()["status"] == status


def test_problems_in_sql_are_told(palace_path):
    from datasette_mempalace.palace import Palace

    connection = sqlite3.connect(palace_path)
    with Palace.open(palace_path) as palace:
        register(connection, palace)
        assert connection.execute("select mempalace_similar(null)").fetchone() == ("[]",)
        told = json.loads(connection.execute("select mempalace_similar('nothing')").fetchone()[0])
        assert (told["ok"], told["status"]) == (False, 404)
        if sql_tables.why_off(palace.settings) is None:
            with pytest.raises(sqlite3.Error, match="There is no drawer 'nothing'"):
                connection.execute("select * from mempalace_similar('nothing')").fetchall()
            assert connection.execute("select * from mempalace_similar(null)").fetchall() == []
        connection.close()
