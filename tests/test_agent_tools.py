"""The agents' tools as functions: what they answer, that it is bounded, and that what is wrong is named."""

import json

import pytest

from building import add, find, make_palace
from datasette_mempalace.agents import TOOLS, bounds, call_tool
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.errors import BadInput
from datasette_mempalace.palace import Palace

SAME = "The spare key lies under the blue flower pot by the door."


@pytest.fixture(scope="module")
def palace(palace_path):
    with Palace.open(palace_path) as palace:
        yield palace


@pytest.fixture
def large(tmp_path):
    """A palace of things that are too large for one answer; nothing is embedded."""
    with Palace.create(tmp_path / "large.db") as palace:
        story = "".join(f"Line {number} of the long story about the harbour.\n" for number in range(2000))
        put_drawers(
            palace,
            [
                Drawer(story, drawer_id="story", wing="tales", metadata={"long": "x" * 9_000, "short": 1}),
                *(
                    Drawer(
                        f"Harbour note {number}. " + "Ships. " * 300,
                        wing=f"wing {number:03d}",
                        room="r" * 900,
                    )
                    for number in range(120)
                ),
            ],
        )
        yield palace


def refused(palace, name, arguments):
    with pytest.raises(BadInput) as error:
        call_tool(palace, name, arguments)
    return error.value.message


def test_search_gives_the_hits_of_every_other_face(palace):
    answer = call_tool(palace, "mempalace_search", {"query": "login token", "limit": 7})
    expected = find(palace, "login token", n_results=7)["results"]
    assert [hit["drawer_id"] for hit in answer["results"]] == [hit["drawer_id"] for hit in expected]
    assert [hit["text"] for hit in answer["results"]] == [hit["text"] for hit in expected]
    assert [hit["rank"] for hit in answer["results"]] == list(range(1, 8))


def test_search_takes_filters_under_mempalaces_names(palace):
    arguments = {
        "query": "token",
        "wing": "acme-app",
        "room": "auth",
        "since": "2026-02-01",
        "before": "2026-05-01",
    }
    answer = call_tool(palace, "mempalace_search", {**arguments, "limit": 50})
    assert answer["results"]
    for hit in answer["results"]:
        assert (hit["wing"], hit["room"]) == ("acme-app", "auth")
        assert "2026-02-01" <= hit["filed_at"] < "2026-05-01"
    assert answer["filters"] == {name: [arguments[name]] for name in ("wing", "room")} | {
        name: arguments[name] for name in ("since", "before")
    }
    source = answer["results"][0]["source_path"]
    of_source = call_tool(palace, "mempalace_search", {"query": "token", "source_file": source})
    assert {hit["source_path"] for hit in of_source["results"]} == {source}
    near = call_tool(palace, "mempalace_search", {"query": "login token", "max_distance": 0.6, "limit": 50})
    assert near["results"]
    assert all(hit["distance"] <= 0.6 for hit in near["results"])


def test_search_goes_on_where_it_ended(palace):
    seen, arguments = [], {"query": "token", "limit": 4}
    for _ in range(3):
        answer = call_tool(palace, "mempalace_search", arguments)
        seen += [hit["drawer_id"] for hit in answer["results"]]
        arguments["next"] = answer["next"]
    assert len(seen) == len(set(seen)) == 12


def test_a_null_is_not_given_and_a_number_may_be_a_text(palace):
    answer = call_tool(palace, "mempalace_search", {"query": "token", "limit": "2", "wing": None})
    assert len(answer["results"]) == 2


def test_search_says_what_may_have_been_meant(palace):
    answer = call_tool(palace, "mempalace_search", {"query": "token", "wing": "acme app"})
    assert answer["results"] == []
    assert answer["did_you_mean"]["wing"]["acme app"]
    assert "'acme-app'" in " ".join(answer["notes"])
    rooms = call_tool(palace, "mempalace_list_rooms", {"wing": "acme app"})
    assert rooms["rooms"] == []
    assert "'acme-app'" in " ".join(rooms["notes"])


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("mempalace_search", {}, "query: it is missing"),
        ("mempalace_search", {"query": " \n"}, "query:"),
        ("mempalace_search", {"query": "x" * 1001}, "query:"),
        ("mempalace_search", {"query": ["a"]}, "query:"),
        ("mempalace_search", {"query": "a", "limit": 0}, "limit: 0 is not allowed; it must be a whole number from 1"),
        ("mempalace_search", {"query": "a", "limit": 101}, "limit:"),
        ("mempalace_search", {"query": "a", "limit": 1.5}, "limit:"),
        ("mempalace_search", {"query": "a", "limit": True}, "limit:"),
        ("mempalace_search", {"query": "a", "limit": "nan"}, "limit:"),
        ("mempalace_search", {"query": "a", "max_distance": 3}, "max_distance:"),
        ("mempalace_search", {"query": "a", "since": "yesterday"}, "since: 'yesterday' is not allowed"),
        ("mempalace_search", {"query": "a", "since": "2026-02-01", "before": "2026-01-01"}, "since:"),
        ("mempalace_search", {"query": "a", "candidate_strategy": "all"}, "candidate_strategy:"),
        ("mempalace_search", {"query": "a", "vector_disabled": "yes"}, "vector_disabled:"),
        ("mempalace_search", {"query": "a", "next": "soon"}, "next:"),
        ("mempalace_search", {"query": "a", "limits": 3}, "limits: mempalace_search has no such parameter; did you mean"),
        ("mempalace_get_drawer", {"drawer_id": "nope"}, "drawer_id: there is no drawer 'nope'"),
        ("mempalace_list_wings", {"next": "-1"}, "next:"),
        ("mempalace_check_duplicate", {"content": ""}, "content:"),
        ("mempalace_check_duplicate", {"content": "a", "threshold": 2}, "threshold:"),
        ("mempalace_status", {"verbose": True}, "verbose: mempalace_status has no such parameter"),
    ],
)  # fmt: skip
def test_a_bad_argument_is_named(palace, name, arguments, said):
    assert refused(palace, name, arguments).startswith(said)


def test_a_limit_above_the_settings_is_named_as_the_agent_knows_it(tmp_path):
    with make_palace(tmp_path / "p.db", [(SAME,)], settings=Settings(max_n_results=20)) as palace:
        message = refused(palace, "mempalace_search", {"query": "key", "limit": 21})
    assert message == "limit: '21' is not allowed; it must be a whole number from 1 to 20."


def test_get_drawer_tells_all_and_leads_to_its_neighbours(palace):
    first = find(palace, "login token", wing="acme-app", n_results=50, vector_disabled=True)["results"]
    hit = next(hit for hit in first if hit["chunk_index"] == 1)
    answer = call_tool(
        palace, "mempalace_get_drawer", {"drawer_id": hit["drawer_id"]}, lambda row_id: f"/{row_id}"
    )
    assert answer["text"] == hit["text"]
    assert (answer["characters"], answer["next_offset"]) == (len(hit["text"]), None)
    assert (answer["source_path"], answer["url"]) == (hit["source_path"], f"/{hit['id']}")
    for key, index in (("previous_drawer_id", 0), ("next_drawer_id", 2)):
        neighbour = call_tool(palace, "mempalace_get_drawer", {"drawer_id": answer[key]})
        assert (neighbour["source_path"], neighbour["chunk_index"]) == (hit["source_path"], index)


def test_get_drawer_joins_what_was_filed_in_chunks(tmp_path):
    pieces = ["One two three four. Five six seven.", "Five six seven. Eight nine ten."]
    drawers = [
        Drawer(text, drawer_id=f"whole_{n}", parent_drawer_id="whole", chunk_index=n, source_file="/a.md")
        for n, text in enumerate(pieces)
    ]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        answer = call_tool(palace, "mempalace_get_drawer", {"drawer_id": "whole"})
    assert answer["text"] == "One two three four. Five six seven. Eight nine ten."
    assert answer["chunk_ids"] == ["whole_0", "whole_1"]


def test_a_long_drawer_comes_in_parts_that_make_the_whole(large):
    whole, offset = "", 0
    while offset is not None:
        answer = call_tool(large, "mempalace_get_drawer", {"drawer_id": "story", "offset": offset})
        assert len(json.dumps(answer)) < bounds.ANSWER_CHARACTERS
        whole, offset = whole + answer["text"], answer["next_offset"]
        assert offset is None or f"offset set to {offset}" in " ".join(answer["notes"])
    with large.reader() as connection:
        assert connection.execute("select text from drawers where drawer_id = 'story'").fetchone() == (whole,)
    assert answer["metadata"] == {"short": 1}
    assert "long" in answer["notes"][-1]
    assert "offset" in refused(large, "mempalace_get_drawer", {"drawer_id": "story", "offset": len(whole)})


def test_a_search_is_cut_to_size_and_says_how_to_go_on(large):
    seen, arguments = [], {"query": "harbour", "limit": 100}
    while True:
        answer = call_tool(large, "mempalace_search", arguments)
        assert len(json.dumps(answer)) < 1.2 * bounds.ANSWER_CHARACTERS
        seen += [hit["drawer_id"] for hit in answer["results"]]
        cut = [hit for hit in answer["results"] if hit.get("text_cut")]
        assert all(len(hit["text"]) < hit["characters"] and hit["best_passage"] for hit in cut)
        assert not cut or f"The text of {len(cut)} of these" in " ".join(answer["notes"])
        if answer["next"] is None:
            break
        assert f"next set to '{answer['next']}'" in " ".join(answer["notes"])
        arguments["next"] = answer["next"]
    assert len(seen) == len(set(seen)) == 121


@pytest.mark.parametrize(
    ("name", "key"), [("mempalace_list_wings", "wings"), ("mempalace_list_rooms", "rooms")]
)
def test_a_list_is_cut_to_size_and_goes_on(large, name, key):
    seen, arguments = [], {"limit": 500}
    while True:
        answer = call_tool(large, name, arguments)
        assert len(json.dumps(answer)) < 1.2 * bounds.ANSWER_CHARACTERS
        seen += [entry["wing"] for entry in answer[key]]
        if answer["next"] is None:
            break
        arguments["next"] = answer["next"]
    assert len(seen) == len(set(seen)) == answer[f"total_{key}"] == 121


def test_lists_count_what_is_there(palace):
    wings = call_tool(palace, "mempalace_list_wings", {})
    by_name = {wing["wing"]: wing for wing in wings["wings"]}
    assert by_name["acme-app"] == {"wing": "acme-app", "drawers": 42, "rooms": 3}
    assert by_name[None]["drawers"] == 1
    assert sum(wing["drawers"] for wing in wings["wings"]) == wings["total_drawers"]
    rooms = call_tool(palace, "mempalace_list_rooms", {"wing": "acme-app"})["rooms"]
    assert {room["room"]: room["drawers"] for room in rooms} == {"auth": 14, "database": 14, "deploy": 14}


def test_duplicates_are_found_by_words_and_by_meaning(tmp_path):
    with make_palace(
        tmp_path / "p.db", [(SAME, "home"), ("Invoices go to the archive at night.", "work")]
    ) as palace:
        same = call_tool(palace, "mempalace_check_duplicate", {"content": SAME})
        assert same["is_duplicate"]
        assert [(match["same_text"], match["similarity"], match["wing"]) for match in same["matches"]] == [
            (True, 1.0, "home")
        ]
        near = {"content": "The spare key is under the blue flowerpot next to the door.", "threshold": 0.8}
        alike = call_tool(palace, "mempalace_check_duplicate", near)
        assert [match["same_text"] for match in alike["matches"]] == [False]
        assert 0.8 <= alike["matches"][0]["similarity"] < 1
        other = call_tool(palace, "mempalace_check_duplicate", {"content": "A recipe for plum cake."})
        assert (other["is_duplicate"], other["matches"], other["vector_disabled"]) == (False, [], False)
        long = call_tool(palace, "mempalace_check_duplicate", {"content": "Plum cake. " * 9_000})
        assert "passage by passage" in long["notes"][0]


def test_without_vectors_only_equal_texts_are_duplicates_and_it_says_so(tmp_path):
    with Palace.create(tmp_path / "p.db") as palace:
        put_drawers(palace, [Drawer(SAME)])
        for content, expected in ((SAME, True), (SAME + " Really.", False)):
            answer = call_tool(palace, "mempalace_check_duplicate", {"content": content})
            assert (answer["is_duplicate"], answer["vector_disabled"]) == (expected, True)
            assert "Only equal texts" in answer["notes"][0]
        add(palace, ("Something else.",))
        assert call_tool(palace, "mempalace_check_duplicate", {"content": SAME})["vector_disabled"] is False


def test_status_tells_counts_and_no_path(palace):
    answer = call_tool(palace, "mempalace_status", {})
    with palace.reader() as connection:
        assert connection.execute("select count(*) from drawers").fetchone() == (answer["total_drawers"],)
    assert answer["largest_wings"][0]["wing"] == "acme-app"
    assert answer["embedder"]["available"] is True
    assert "palace.db" not in json.dumps(answer)


def test_an_empty_palace_answers_everything(empty_path):
    with Palace.open(empty_path) as palace:
        assert call_tool(palace, "mempalace_search", {"query": "token"})["results"] == []
        assert call_tool(palace, "mempalace_list_wings", {})["wings"] == []
        assert call_tool(palace, "mempalace_list_rooms", {})["rooms"] == []
        assert call_tool(palace, "mempalace_check_duplicate", {"content": "a"})["is_duplicate"] is False
        assert "empty" in call_tool(palace, "mempalace_status", {})["notes"][0]


def test_every_parameter_is_described_and_bounded():
    for tool in TOOLS.values():
        assert tool.input_schema["additionalProperties"] is False
        for name, schema in tool.properties.items():
            assert schema["description"], name
            bound = {"string": "maxLength", "integer": "maximum", "number": "maximum", "boolean": "type"}
            assert bound[schema["type"]] in schema, name
