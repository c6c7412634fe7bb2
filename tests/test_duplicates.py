"""Duplicates: clusters of exact and near copies, over bounded work that is told, and nothing is changed."""

import csv
import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from building import make_palace
from datasette_mempalace import duplicates
from datasette_mempalace.change_log import last_change
from datasette_mempalace.cli import mempalace
from datasette_mempalace.cli import register as register_commands
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.duplicates import find_duplicates, run_duplicates
from datasette_mempalace.duplicates.look import Sets, alike
from datasette_mempalace.duplicates.request import parse_duplicates
from datasette_mempalace.errors import BadInput
from datasette_mempalace.text import shown_similarity
from datasette_mempalace.vectors import embed_pending
from pages import Page

if "similar" not in mempalace.commands:
    register_commands(SimpleNamespace(add_command=lambda command: None))

LAMP = "Every evening the keeper of the lighthouse trims the lamp and writes down the weather in a blue book."
NEAR = (
    "Every evening the keeper of the lighthouse trims the lamp and writes down the weather in the blue book."
)
BREAD = "A loaf of sourdough bread wants a night of rest in a cool kitchen before it goes into the hot oven."


def look(palace, pairs=duplicates.PAIRS, **given):
    return run_duplicates(palace, parse_duplicates(given, palace.settings), pairs)


def members(answer):
    return [[member["id"] for member in cluster["members"]] for cluster in answer["clusters"]]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    palace = make_palace(
        tmp_path_factory.mktemp("shelf") / "shelf.db",
        [
            Drawer(LAMP, wing="sea", source_file="/a.md"),
            Drawer(BREAD, wing="kitchen", source_file="/b.md"),
            Drawer(LAMP, wing="sea", source_file="/c.md"),
            Drawer(NEAR, wing="tower", source_file="/d.md"),
            Drawer("Thanks!", source_file="/e.md"),
            Drawer("Thanks!", source_file="/f.md"),
            Drawer(BREAD, wing="kitchen", room="oven", source_file="/g.md"),
            Drawer("The orchestra plays Mahler on Sunday evening in the town hall.", wing="music"),
        ],
    )
    yield palace
    palace.close()


def test_exact_and_near_copies_are_clusters(shelf):
    answer = look(shelf)
    assert members(answer) == [[1, 3, 4], [2, 7]]
    first, second = answer["clusters"]
    assert (first["kind"], second["kind"]) == ("near", "exact")
    assert [member["same_text"] for member in first["members"]] == [True, True, False]
    assert first["members"][0]["similarity"] == 1.0
    assert 0.95 <= first["members"][2]["similarity"] < 1
    assert (answer["found"], answer["drawers_found"], answer["looked_at"], answer["complete"]) == (
        2,
        5,
        8,
        True,
    )


def test_threshold_one_finds_equal_texts_alone(shelf):
    assert members(look(shelf, threshold=1)) == [[1, 3], [2, 7]]


def test_short_texts_are_left_out_unless_asked_for(shelf):
    assert members(look(shelf, threshold=1, min_characters=0)) == [[1, 3], [2, 7], [5, 6]]


def test_scope_narrows(shelf):
    assert members(look(shelf, wing="kitchen")) == [[2, 7]]
    assert members(look(shelf, wing=["sea", "tower"])) == [[1, 3, 4]]
    assert members(look(shelf, wing="kitchen", room="oven")) == []
    assert members(look(shelf, threshold=1, wing="sea")) == [[1, 3]]


def test_most_clusters_are_counted_and_the_largest_shown(shelf):
    answer = look(shelf, n_results=1)
    assert (answer["found"], members(answer)) == (2, [[1, 3, 4]])


def test_drawers_without_a_vector_are_counted(tmp_path):
    with make_palace(tmp_path / "p.db", [(LAMP, None, None)]) as palace:
        put_drawers(palace, [Drawer(LAMP, drawer_id="late")])
        answer = look(palace)
        assert (answer["without_vector"], answer["looked_at"], answer["in_scope"]) == (1, 1, 2)
        assert answer["clusters"] == []
    with make_palace(tmp_path / "empty.db") as palace:
        assert look(palace)["clusters"] == []


def test_bounded_looks_go_on_where_the_last_one_ended(shelf, monkeypatch):
    monkeypatch.setattr(duplicates.look, "WINDOW", 3)
    monkeypatch.setattr(duplicates.look, "PART", 2)
    monkeypatch.setattr(duplicates.look, "LEAST", 3)
    seen, following, looks = [], None, 0
    while True:
        answer = look(shelf, pairs=1, **({"next": following} if following else {}))
        looks += 1
        assert answer["looked_at"] <= 3
        assert not answer["complete"]
        seen += members(answer)
        following = answer["next"]
        if following is None:
            break
    assert looks == 3
    assert [1, 3, 4] in seen
    assert [2, 7] in seen
    assert members(look(shelf, pairs=None)) == [[1, 3, 4], [2, 7]]


def test_nothing_is_changed(shelf):
    with shelf.reader() as connection:
        before = last_change(connection)
    look(shelf)
    with shelf.reader() as connection:
        assert last_change(connection) == before


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(1, 6), st.sampled_from([0.6, 0.9, 0.95]),
    st.integers(1, 25), st.integers(1, 25),
)  # fmt: skip
def test_blocks_find_the_pairs_that_all_pairs_have(seed, rows, centres, threshold, window, part):
    chance = np.random.default_rng(seed)
    middle = chance.normal(size=(centres, 16))
    vectors = middle[chance.integers(0, centres, rows)] + 0.15 * chance.normal(size=(rows, 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    ids = np.arange(1, rows + 1)
    found, expected = Sets(), Sets()
    for start in range(0, rows, window):
        for other in range(0, rows, part):
            for pair in alike(
                ids[start : start + window], vectors[start : start + window],
                ids[other : other + part], vectors[other : other + part], threshold,
            ):  # fmt: skip
                found.join(*pair)
    exactly = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    for one in range(rows):
        for two in range(one + 1, rows):
            if round(float(exactly[one, two]), 6) >= threshold:
                expected.join(one + 1, two + 1)
    assert found.all() == expected.all()


def test_a_crowd_of_copies_is_one_cluster():
    vectors = np.ones((500, 4), dtype=np.float32) / 2
    sets = Sets()
    for pair in alike(np.arange(500), vectors, np.arange(500), vectors, 0.9):
        sets.join(*pair)
    assert sets.all() == [list(range(500))]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))))
def test_sets_are_what_is_connected(pairs):
    sets = Sets()
    for pair in pairs:
        sets.join(*pair)
    groups = {number: {number} for number in range(21)}
    for one, two in pairs:
        merged = groups[one] | groups[two]
        for each in merged:
            groups[each] = merged
    expected = sorted({tuple(sorted(group)) for group in groups.values() if len(group) > 1})
    assert sets.all() == [list(group) for group in expected]


@pytest.mark.parametrize(
    "given",
    [{"threshold": "0.4"}, {"threshold": "nan"}, {"threshold": ["0.9", "0.8"]}, {"min_characters": "-1"}, {"n_results": 0}, {"next": "x"}, {"since": "then"}],
)  # fmt: skip
def test_what_is_not_allowed_is_named(given):
    with pytest.raises(BadInput, match=next(iter(given))):
        parse_duplicates(given, Settings())


async def test_every_face_finds_the_same(make_datasette, palace_path):
    datasette = make_datasette(palace_path)
    query = "threshold=0.98&n_results=100"
    answer = (await datasette.client.get(f"/palace/-/mempalace/duplicates.json?{query}")).json()
    assert answer["found"]
    assert answer["complete"]
    expected = members(answer)
    assert members(find_duplicates(palace_path, threshold=0.98, n_results=100)) == expected
    done = CliRunner().invoke(
        mempalace, ["duplicates", str(palace_path), "--threshold", "0.98", "--n-results", "100", "--json"]
    )
    assert members(json.loads(done.stdout)) == expected
    page = await datasette.client.get(f"/palace/-/mempalace/duplicates?{query}")
    assert page.status_code == 200
    for cluster in answer["clusters"]:
        for member in cluster["members"]:
            assert f'/palace/-/mempalace/drawer/{member["drawer_id"]}"' in page.text
    assert "<script>alert" not in page.text
    exact = (await datasette.client.get("/palace/-/mempalace/duplicates.json?threshold=1")).json()
    assert [[member["source_path"] for member in cluster["members"]] for cluster in exact["clusters"]] == [
        ["/notes/finance/nightly.md", "/backup/finance/nightly.md"]
    ]


async def test_page_of_a_wrong_parameter(served):
    for extension in ("", ".json", ".csv"):
        response = await served.client.get(f"/palace/-/mempalace/duplicates{extension}?threshold=2")
        assert response.status_code == 400
        assert "it must be a number from 0.5 to 1" in response.text


async def test_other_words_are_never_called_quite_the_same(tmp_path, make_datasette):
    text = " ".join(f"The keeper trims lamp number {number}." for number in range(60))
    path = tmp_path / "near.db"
    with make_palace(path, [Drawer(text), Drawer(text + " "), Drawer(text + "\n\n")]) as palace:
        embed_pending(palace)
    page = Page((await make_datasette(path).client.get("/near/-/mempalace/duplicates")).text)
    told = CliRunner().invoke(mempalace, ["duplicates", str(path)]).stdout
    for shown in (page.text, told):
        assert "similarity 0.999" in shown
        assert "similarity 1.000" not in shown


@pytest.mark.parametrize(
    ("similarity", "same_text", "shown"),
    [
        (0.9996, False, "0.999"),
        (1.0, False, "0.999"),
        (1.0, True, "1.000"),
        (0.9589, False, "0.958"),
        (0.957, False, "0.957"),
        (None, False, None),
    ],
)
def test_a_similarity_is_rounded_down(similarity, same_text, shown):
    assert shown_similarity(similarity, same_text) == shown


async def test_clusters_as_csv_are_those_of_the_json(served):
    address = "/palace/-/mempalace/duplicates"
    found = (await served.client.get(f"{address}.json?threshold=0.9")).json()
    response = await served.client.get(f"{address}.csv?threshold=0.9")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="palace-duplicates.csv"' in response.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [
        (row["cluster"], row["id"], row["url"], row["same_text"], float(row["similarity"])) for row in rows
    ] == [
        (str(number), str(member["id"]), member["url"], str(int(member["same_text"])), member["similarity"])
        for number, cluster in enumerate(found["clusters"], 1)
        for member in cluster["members"]
    ]
    page = Page((await served.client.get(f"{address}?threshold=0.9")).text)
    assert f"{address}.csv?threshold=0.9" in {href for href, _ in page.links}


def test_the_command_line_tells(palace_path):
    done = CliRunner().invoke(mempalace, ["duplicates", str(palace_path), "--threshold", "1"])
    assert done.exit_code == 0
    assert "2 drawers, equal" in done.stdout
    assert "/backup/finance/nightly.md" in done.stdout
