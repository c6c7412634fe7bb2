"""The pipeline as a whole, on real palaces: what is found, in which order, and what the answer says about it."""

import pytest

from building import add, find, make_palace, texts
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, Source, put_drawers, put_source
from datasette_mempalace.errors import PalaceNotFound, TookTooLong
from datasette_mempalace.searcher import run_search, search, search_memories
from datasette_mempalace.vectors import embed_pending

ANIMALS = {
    "fox": "The red fox runs through the forest at night and hunts mice.",
    "whale": "The blue whale is the largest animal that lives in the ocean.",
    "lizard": "A green lizard warms itself on a stone in the sun.",
    "tax": "The quarterly tax report has to reach the office by Friday.",
}


@pytest.fixture(scope="module")
def palace(tmp_path_factory):
    drawers = [
        Drawer(
            text,
            drawer_id=name,
            wing="finance" if name == "tax" else "animals",
            room=name,
            filed_at=f"2026-0{n}-01",
        )
        for n, (name, text) in enumerate(ANIMALS.items(), 1)
    ]
    with make_palace(tmp_path_factory.mktemp("searcher") / "p.db", drawers) as palace:
        yield palace


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A palace of mined sources with closets."""
    with make_palace(tmp_path_factory.mktemp("sources") / "p.db") as palace:
        for name, topic in (
            ("foxes", "foxes hunt mice in the forest"),
            ("ships", "ships carry goods over the sea"),
        ):
            text = f"# About {topic}\n\n" + "".join(
                f"Sentence {n} tells more of how {topic}, in plain words.\n\n" for n in range(40)
            )
            put_source(palace, Source(f"/notes/{name}.md", text, wing="notes", room=name, added_by="mine"))
        embed_pending(palace)
        yield palace


def ids(answer):
    return [hit["drawer_id"] for hit in answer["results"]]


def test_it_finds_by_meaning_what_has_none_of_the_words(palace):
    answer = find(palace, "a sea creature")
    assert ids(answer)[0] == "whale"
    assert answer["results"][0]["found_by"] == ["vector"]
    assert answer["vector_status"] == "ok"
    assert answer["fallback"] is None


def test_a_hit_adds_up(palace):
    for hit in find(palace, "fox in the forest")["results"]:
        assert hit["similarity"] == pytest.approx(max(0, 1 - hit["distance"]), abs=1e-5)
        assert hit["score"] == pytest.approx(0.6 * hit["similarity"] + 0.4 * hit["bm25_share"], abs=1e-5)


def test_scores_fall_and_ranks_rise(palace):
    results = find(palace, "animal in the forest")["results"]
    assert [hit["rank"] for hit in results] == list(range(1, len(results) + 1))
    scores = [hit["score"] for hit in results]
    assert scores == sorted(scores, reverse=True)


def test_words_count_beside_meaning(palace):
    answer = find(palace, "quarterly")
    assert ids(answer)[0] == "tax"
    assert answer["results"][0]["bm25_share"] == 1.0
    assert answer["results"][0]["words_found"] == [{"word": "quarterly", "count": 1}]


def test_every_setting_of_the_weights_is_used(palace, monkeypatch):
    monkeypatch.setattr(palace, "settings", Settings(similarity_weight=1.0, bm25_weight=0.0))
    answer = find(palace, "quarterly whale")
    assert [hit["score"] for hit in answer["results"]] == [hit["similarity"] for hit in answer["results"]]
    assert answer["weights"] == {"similarity": 1.0, "bm25": 0.0}


def test_wing_and_room_narrow_exactly(palace):
    assert ids(find(palace, "animal", wing="finance")) == ["tax"]
    assert set(ids(find(palace, "animal", room=["fox", "whale"]))) == {"fox", "whale"}
    assert find(palace, "animal", wing="animals", room="tax")["results"] == []


def test_case_14_nothing_in_scope_is_an_empty_list(palace, tmp_path):
    answer = find(palace, "animal", wing="nope")
    assert (answer["ok"], answer["results"], answer["in_scope"], answer["candidates"]) == (True, [], 0, 0)
    with make_palace(tmp_path / "fresh.db") as fresh:
        answer = find(fresh, "anything")
        assert answer["results"] == []
        assert answer["vector_status"] == "no_vectors"


def test_case_13_a_date_window_narrows_before_ranking(palace):
    answer = find(palace, "animal", since="2026-02-01", before="2026-03-01")
    assert ids(answer) == ["whale"]
    assert answer["in_scope"] == 1
    assert answer["filters"]["since"] == "2026-02-01"


def test_case_13_three_drawers_in_a_window_among_many_are_all_found(tmp_path):
    drawers = [
        Drawer("a note about servers", wing=str(n), filed_at="2026-03-15T10:00:00") for n in range(400)
    ]
    inside = ["2026-04-01", "2026-04-01T23:59:59", "2026-04-01 12:00:00+00:00"]
    drawers += [Drawer("cooking pasta", wing=f"in {n}", filed_at=moment) for n, moment in enumerate(inside)]
    drawers += [Drawer("a note about servers", wing=f"x {n}", filed_at=moment) for n, moment in enumerate(["2026-04-02", "soon", ""])]  # fmt: skip
    with make_palace(tmp_path / "p.db", drawers) as palace:
        answer = find(palace, "servers", since="2026-04-01", before="2026-04-02")
        assert texts(answer) == ["cooking pasta"] * 3


def test_case_10_a_wing_is_exact_and_a_near_one_is_offered(tmp_path):
    drawers = [("text of the app", "acme_app"), ("more text", "Acme-App"), ("other", "unrelated")]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        answer = find(palace, "text", wing="acme-app")
        assert answer["results"] == []
        assert set(answer["did_you_mean"]["wing"]["acme-app"]) == {"acme_app", "Acme-App"}
        assert find(palace, "text", wing="acme_app")["did_you_mean"] == {}


def test_of_many_or_long_names_that_are_not_there_only_some_are_compared(tmp_path):
    drawers = [Drawer("Some text.", wing="w" * 100_000), Drawer("More text.", wing="acme-app")]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        asked = ["w" * 50_000, *(f"acme-ap{n}" for n in range(90))]
        near = find(palace, "text", wing=asked)["did_you_mean"]["wing"]
        assert list(near) == asked
        assert near["w" * 50_000] == []
        assert [name for name in asked if near[name] == ["acme-app"]] == asked[1:4]


@pytest.mark.parametrize(
    "name", ["café-notes", "日本語", "O'Brien", "a/b", '"; drop', "%", "_", "wing", "null", "[x]", "  "]
)
def test_case_11_any_name_can_be_filtered_by(tmp_path, name):
    drawers = [
        ("the same text", name, name),
        ("the same text", "other", "other"),
        ("the same text", None, None),
    ]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        answer = find(palace, "text", wing=name, room=name)
        assert [(hit["wing"], hit["room"]) for hit in answer["results"]] == [(name, name)]


def test_a_drawer_without_a_wing_can_be_asked_for(tmp_path):
    with make_palace(tmp_path / "p.db", [("text a", "w"), ("text b", None)]) as palace:
        assert texts(find(palace, "text", wing__isnull=1)) == ["text b"]
        assert len(find(palace, "text", wing=["w", None])["results"]) == 2


def test_case_15_more_hits_than_drawers_returns_all(palace):
    answer = find(palace, "animal", n_results=1000)
    assert len(answer["results"]) == 4
    assert answer["next"] is None


def test_case_3_lexical_candidates_have_their_true_distance(tmp_path):
    drawers = [Drawer(f"ships and boats and harbours, number {n}", wing=str(n)) for n in range(60)]
    drawers.append(Drawer("zebra", drawer_id="zebra"))
    with make_palace(tmp_path / "p.db", drawers) as palace:
        hit = next(hit for hit in find(palace, "zebra ships boats harbours", n_results=1)["results"])
        answer = find(palace, "zebra ships boats harbours", n_results=60)
        zebra = next(hit for hit in answer["results"] if hit["drawer_id"] == "zebra")
        assert "lexical" in zebra["found_by"]
        assert zebra["similarity"] == pytest.approx(1 - zebra["distance"], abs=1e-5)
        assert all(hit["distance"] is not None for hit in answer["results"])
        assert hit["score"] > 0


def test_case_4_max_distance_holds_for_lexical_candidates_too(tmp_path):
    drawers = [Drawer(f"a recipe with kumquat, {n}", wing=str(n)) for n in range(40)]
    drawers.append(Drawer("kumquat jam", drawer_id="near"))
    drawers.append(
        Drawer(
            "kumquat " + "is the code name of the quarterly revenue forecast meeting. " * 8, drawer_id="far"
        )
    )
    with make_palace(tmp_path / "p.db", drawers) as palace:
        everything = find(palace, "kumquat jam", n_results=100)
        distances = {hit["drawer_id"]: hit["distance"] for hit in everything["results"]}
        limit = (distances["near"] + distances["far"]) / 2
        assert distances["near"] < limit < distances["far"]
        answer = find(palace, "kumquat jam", n_results=100, max_distance=limit)
        assert "near" in ids(answer)
        assert "far" not in ids(answer)
        assert all(hit["distance"] <= limit for hit in answer["results"])


def test_case_4_a_drawer_without_a_vector_is_dropped_where_there_is_a_limit(palace, tmp_path):
    with make_palace(tmp_path / "p.db", [("a fox", "w")]) as fresh:
        put_drawers(fresh, [Drawer("a fox without a vector")])
        assert len(find(fresh, "fox")["results"]) == 2
        assert next(hit for hit in find(fresh, "fox")["results"] if hit["id"] == 2)["distance"] is None
        assert texts(find(fresh, "fox", max_distance=1.9)) == ["a fox"]


def test_case_17_stop_words_do_not_hide_the_answer(tmp_path):
    drawers = [Drawer(f"what was the about the and the of it {n}", wing=str(n)) for n in range(40)]
    drawers.append(Drawer("decision: auth goes through tokens"))
    with make_palace(tmp_path / "p.db", drawers) as palace:
        answer = find(palace, "what was the decision about the auth", vector_disabled=1)
        assert texts(answer)[0].startswith("decision")
        assert find(palace, "the what", vector_disabled=1)["results"]


@pytest.mark.parametrize("query", ["multi-agent", '"unbal', "C++", "v3.3.6", "don't", "wing:x", "NOT", "*", "(", "->", "foo@bar.com", "path/to", "\x00"])  # fmt: skip
def test_case_18_signs_in_a_query_are_never_an_error_and_never_a_silent_zero(tmp_path, query):
    text = "multi-agent \"unbal C++ v3.3.6 don't wing:x NOT * ( -> foo@bar.com path/to \x00 all stand here"
    with make_palace(tmp_path / "p.db", [(text, "w")]) as palace:
        for words_only in (0, 1):
            assert len(find(palace, query, vector_disabled=words_only)["results"]) == 1


def test_case_16_two_characters_of_an_unspaced_script_are_found(tmp_path):
    drawers = [("東京の会議で検索エンジンの設計について話しました。", "w"), ("大阪の天気は晴れです。", "w")]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        answer = find(palace, "東京", vector_disabled=1)
        assert texts(answer) == [drawers[0][0]]
        assert answer["results"][0]["bm25_score"] > 0
        assert "\x01東京\x02" in answer["results"][0]["snippet"]
        assert texts(find(palace, "検索エンジン", vector_disabled=1)) == [drawers[0][0]]
        assert texts(find(palace, "検索エンジン"))[0] == drawers[0][0]


def test_case_6_copies_of_a_long_passage_fold_into_one_hit(tmp_path):
    passage = "This passage about zebras is longer than one hundred characters, so that its copies in other files fold."
    assert len(passage) >= 100
    drawers = [
        Drawer(passage, drawer_id="original", source_file="/a.md", authored_at="2100-05-01"),
        Drawer(passage, drawer_id="copy", source_file="/backup/a.md"),
        Drawer(passage, drawer_id="repeat", source_file="/a.md", chunk_index=7),
        Drawer("Yes, zebras.", drawer_id="short 1", source_file="/c.md"),
        Drawer("Yes, zebras.", drawer_id="short 2", source_file="/d.md"),
    ]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        answer = find(palace, "zebras")
        assert sorted(ids(answer)) == ["original", "repeat", "short 1", "short 2"]
        hit = next(hit for hit in answer["results"] if hit["drawer_id"] == "original")
        assert [copy["drawer_id"] for copy in hit["also_in"]] == ["copy"]
        assert answer["copies"] == 1
        page = find(palace, "zebras", n_results=3)
        assert len(page["results"]) == 3


def test_pages_neither_repeat_nor_skip(tmp_path):
    drawers = [Drawer(f"note number {n} about gardens and flowers", wing=str(n % 3)) for n in range(150)]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        for extra in ({}, {"candidate_strategy": "vector"}, {"ranking": "mempalace", "candidate_strategy": "vector"}, {"vector_disabled": 1}):  # fmt: skip
            seen, token = [], None
            while True:
                answer = find(palace, "flowers in the garden", n_results=7, next=token, **extra)
                assert [hit["rank"] for hit in answer["results"]] == list(
                    range(len(seen) + 1, len(seen) + len(answer["results"]) + 1)
                )
                seen += ids(answer)
                token = answer["next"]
                if token is None:
                    break
            assert len(seen) == len(set(seen)) == 150, extra


def test_ties_go_to_the_newer(tmp_path):
    drawers = [
        Drawer("exactly the same", drawer_id="a", filed_at="2026-01-01"),
        Drawer("exactly the same", drawer_id="b", filed_at="2026-01-01", authored_at="2026-06-01"),
        Drawer("exactly the same", drawer_id="c", filed_at="2026-03-01"),
        Drawer("exactly the same", drawer_id="d", filed_at="2026-03-01"),
    ]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        assert ids(find(palace, "exactly the same")) == ["b", "c", "d", "a"]


def test_words_only_on_request_says_so_and_gives_no_similarity(palace):
    answer = find(palace, "fox", vector_disabled=1)
    assert answer["fallback"] == "bm25_only_via_sqlite"
    assert answer["vector_status"] == "disabled"
    hit = answer["results"][0]
    assert (hit["similarity"], hit["distance"], hit["effective_distance"]) == (None, None, None)
    assert hit["matched_via"] == "bm25_sqlite"
    assert hit["score"] == hit["bm25_share"] == 1.0


def test_words_that_nobody_wrote_bring_near_ones(palace):
    answer = find(palace, "quartely lizzard", vector_disabled=1)
    near = {entry["word"]: [other["word"] for other in entry["near"]] for entry in answer["unknown_words"]}
    assert "quarterly" in near["quartely"]
    assert "lizard" in near["lizzard"]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("fiel", ["file", "field"]), ("wihch", ["which"]), ("tokkens", ["tokens"]), ("zzyzx", [])],
)
def test_one_slip_is_seen_beside_hits(tmp_path, asked, meant):
    drawers = [
        Drawer(text) for text in ("open a file", "the file which fled", "a field of view", "two tokens")
    ]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        answer = find(palace, f"open {asked}", vector_disabled=1)
        assert answer["results"]
        (unknown,) = answer["unknown_words"]
        assert unknown["word"] == asked
        assert [near["word"] for near in unknown["near"]] == meant
        assert find(palace, "open a file")["unknown_words"] == []


def test_facets_count_the_pool_without_their_own_filter(palace):
    facets = find(palace, "animal", facets=1, wing="animals")["facets"]
    assert facets["wing"] == [
        {"value": "animals", "count": 3, "selected": True},
        {"value": "finance", "count": 1, "selected": False},
    ]
    assert {entry["value"] for entry in facets["room"]} == {"fox", "whale", "lizard"}
    facets = find(palace, "animal", facets=1, wing="animals", room="tax")["facets"]
    assert {entry["value"]: entry["count"] for entry in facets["room"]} == {
        "fox": 1,
        "whale": 1,
        "lizard": 1,
        "tax": 0,
    }
    assert "facets" not in find(palace, "animal")


def test_closets_lift_their_sources_and_never_gate(sources):
    answer = find(sources, "foxes hunting in the forest", n_results=5)
    hit = answer["results"][0]
    assert hit["matched_via"] == "drawer+closet"
    assert hit["closet_boost"] == 0.40
    assert "foxes" in hit["closet_preview"]
    assert "→" not in hit["closet_preview"]
    assert hit["effective_distance"] == pytest.approx(max(0, hit["distance"] - 0.40), abs=1e-5)
    assert hit["similarity"] == pytest.approx(1 - hit["distance"], abs=1e-5), "case 1: similarity stays raw"


def test_case_30_a_closet_without_a_pointer_gives_no_boost(sources):
    with sources.writer() as connection:
        kept = connection.execute("select id, text from closets").fetchall()
        connection.execute("update closets set text = 'foxes hunt mice in the forest'")
    embed_pending(sources)
    try:
        answer = find(sources, "foxes hunting in the forest")
        assert {hit["matched_via"] for hit in answer["results"]} == {"drawer"}
    finally:
        with sources.writer() as connection:
            connection.executemany(
                "update closets set text = :text where id = :id", [{"id": i, "text": t} for i, t in kept]
            )
        embed_pending(sources)


def test_case_5_text_is_the_drawers_own_and_the_passage_is_context(sources):
    answer = find(sources, "foxes hunting in the forest", n_results=5)
    hit = answer["results"][0]
    with sources.reader() as connection:
        assert (
            connection.execute("select text from drawers where id = ?", [hit["id"]]).fetchone()[0]
            == hit["text"]
        )
    assert hit["context"]
    assert len(hit["context_drawer_ids"]) in (2, 3)
    shaped = search_memories(
        "foxes hunting in the forest", sources.path, candidate_strategy="union", ranking="palace"
    )
    assert shaped["results"][0]["text"] == hit["context"]


def test_case_7_stitched_chunks_show_their_overlap_once(sources):
    context = find(sources, "foxes hunting in the forest", n_results=5)["results"][0]["context"]
    sentences = [line for line in context.split("\n\n") if line.startswith("Sentence")]
    assert len(sentences) == len(set(sentences)) > 5


def test_case_8_drawers_without_a_source_are_no_neighbours(tmp_path):
    drawers = [
        Drawer(f"foxes, part {n}", source_file=source, chunk_index=n)
        for n in range(4)
        for source in ("", None)
    ]
    with make_palace(tmp_path / "p.db", drawers) as palace:
        assert {hit["context"] for hit in find(palace, "foxes")["results"]} == {None}


def test_case_9_two_sources_of_one_base_name_are_two(tmp_path):
    with make_palace(tmp_path / "p.db") as palace:
        for folder in ("src", "tests"):
            text = "".join(f"The user model of {folder}, part {n}, has a name.\n\n" for n in range(60))
            put_source(palace, Source(f"{folder}/models/user.py", text, wing="w"))
        embed_pending(palace)
        answer = find(palace, "user model", source_file="src/models/user.py", n_results=50)
        assert {hit["source_path"] for hit in answer["results"]} == {"src/models/user.py"}
        assert {hit["source_file"] for hit in answer["results"]} == {"user.py"}
        assert all("tests" not in (hit["context"] or "") for hit in answer["results"])


def test_strategy_vector_takes_no_lexical_candidates(palace):
    answer = find(palace, "quarterly", candidate_strategy="vector")
    assert all(hit["found_by"] == ["vector"] for hit in answer["results"])
    assert answer["lexical_candidates"] == 0


def test_ranking_mempalace_takes_its_statistics_from_the_candidates(palace):
    ours = find(palace, "the fox", n_results=1)["results"][0]
    theirs = find(palace, "the fox", n_results=1, ranking="mempalace")["results"][0]
    assert theirs["drawer_id"] == ours["drawer_id"] == "fox"
    assert theirs["bm25_score"] != ours["bm25_score"]


def test_a_search_that_takes_too_long_is_told_not_waited_for(palace, monkeypatch):
    def slow(connection, scope):
        endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"
        return connection.execute(endless).fetchone()

    monkeypatch.setattr(palace, "settings", Settings(time_limit_ms=50))
    monkeypatch.setattr("datasette_mempalace.searcher.count_in_scope", slow)
    with pytest.raises(TookTooLong, match=r"took longer than 0\.05 seconds"):
        find(palace, "a query that was never asked before", vector_disabled=1)
    monkeypatch.undo()
    assert find(palace, "fox")["results"]


def test_case_42_the_snippet_of_a_long_drawer_shows_the_found_words(tmp_path):
    text = (
        "Filler words go on and on here. " * 40
        + "Then the FTS5 index is named. "
        + "And on again it goes. " * 40
    )
    with make_palace(tmp_path / "p.db", [(text, "w")]) as palace:
        snippet = find(palace, "fts5")["results"][0]["snippet"]
        assert "\x01FTS5\x02" in snippet
        assert snippet.startswith("… ")
        assert snippet.endswith(" …")
        assert len(snippet) < 400


def test_search_memories_answers_in_mempalaces_shape(palace):
    answer = search_memories("fox in the forest", palace.path, wing="animals", n_results=2)
    assert answer["query"] == "fox in the forest"
    assert answer["filters"]["wing"] == "animals"
    assert answer["filters"]["room"] is None
    assert answer["total_before_filter"] == 3
    hit = answer["results"][0]
    assert set(hit) >= {
        "drawer_id", "text", "wing", "room", "source_file", "source_path", "created_at", "filed_at", "authored_at",
        "similarity", "distance", "effective_distance", "closet_boost", "matched_via", "bm25_score",
    }  # fmt: skip
    assert (hit["wing"], hit["room"], hit["source_file"], hit["source_path"]) == ("animals", "fox", "?", "")
    assert hit["authored_at"] == hit["filed_at"]
    assert hit["similarity"] == round(hit["similarity"], 3)


def test_search_memories_by_words_alone_says_so(palace):
    answer = search_memories("fox", palace.path, vector_disabled=True)
    assert answer["fallback"] == "bm25_only_via_sqlite"
    assert answer["fallback_reason"]


def test_an_unknown_strategy_raises_whatever_else_is_set(palace, tmp_path):
    for path, disabled in ((palace.path, True), (tmp_path / "no.db", False)):
        with pytest.raises(ValueError, match="candidate_strategy"):
            search_memories("fox", path, vector_disabled=disabled, candidate_strategy="lexical")


def test_search_memories_without_a_palace_is_an_error_in_words(tmp_path):
    answer = search_memories("fox", tmp_path / "no.db")
    assert answer["results"] == []
    assert "does not exist" in answer["error"]


def test_search_prints_its_hits(palace, capsys):
    search("fox in the forest", palace.path, n_results=1)
    printed = capsys.readouterr().out
    assert "animals / fox" in printed
    assert ANIMALS["fox"] in printed
    with pytest.raises(PalaceNotFound):
        search("fox", palace.path + ".not")


def test_metadata_that_is_no_json_does_no_harm(tmp_path):
    with make_palace(tmp_path / "p.db", [("a fox", "w")]) as palace:
        with palace.writer() as connection:
            connection.execute("update drawers set metadata = 'not json'")
        assert find(palace, "fox")["results"][0]["heading"] is None


def test_the_embedding_of_a_query_is_remembered(palace, monkeypatch):
    find(palace, "asked twice")
    monkeypatch.setattr(palace.embedder, "embed", lambda *arguments: pytest.fail("embedded again"))
    assert find(palace, "asked twice")["vector_status"] == "ok"


def test_new_drawers_are_found_at_once(tmp_path):
    with make_palace(tmp_path / "p.db", [("a fox", "w")]) as palace:
        assert len(find(palace, "canary")["results"]) == 1
        add(palace, ("a canary", "w"))
        assert texts(find(palace, "canary"))[0] == "a canary"


def test_run_search_reads_through_a_connection_it_is_given(palace):
    from datasette_mempalace.request import parse_request

    with palace.reader() as connection:
        answer = run_search(palace, parse_request({"q": "fox"}, palace.settings), connection)
    assert ids(answer)[0] == "fox"


def test_an_explanation_adds_up(palace):
    answer = find(palace, "fox in the forest", explain=1)
    for hit in answer["results"]:
        explained = hit["explain"]
        assert sum(part["adds"] for part in explained["parts"]) == pytest.approx(hit["score"], abs=1e-5)
        assert [part["part"] for part in explained["parts"]] == ["similarity", "bm25"]
        assert (explained["vector"] is not None) == ("vector" in hit["found_by"])
        assert explained["ranked_distance"] == hit["distance"]
    assert answer["results"][0]["explain"]["vector"]["rank"] == 1
    assert answer["explain"]["words"] == ["fox", "forest"]
    assert answer["explain"]["both"] == sum(len(hit["found_by"]) == 2 for hit in answer["results"])
    words = find(palace, "fox", explain=1, vector_disabled=1)["results"][0]
    assert words["explain"]["parts"] == [{"part": "bm25", "value": 1.0, "weight": 1.0, "adds": 1.0}]
    assert "explain" not in find(palace, "fox")["results"][0]


def test_the_boost_counts_in_the_score_where_it_is_set_so(sources, monkeypatch):
    monkeypatch.setattr(sources, "settings", Settings(closet_boost_in_score=True))
    hit = find(sources, "foxes hunting in the forest", explain=1)["results"][0]
    assert hit["explain"]["ranked_distance"] == hit["effective_distance"]
    assert sum(part["adds"] for part in hit["explain"]["parts"]) == pytest.approx(hit["score"], abs=1e-5)
    assert hit["explain"]["closet"]["boost"] == hit["closet_boost"]
