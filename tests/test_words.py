"""Words as FTS5 sees them, and MATCH expressions that no query can break."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_mempalace.schema import TOKENIZE
from datasette_mempalace.stop_words import LANGUAGES, stop_words
from datasette_mempalace.words import (
    _remembered_stem,
    find_words,
    fold,
    match_all,
    match_any,
    mempalace_words,
    read_query,
    stem,
    stems_of,
)

AWKWARD = ["multi-agent", '"unbal', "C++", "v3.3.6", "don't", "wing:x", "NOT", "*", "(", "", "   ", "a AND", "x OR", "^a", "NEAR(a b)", "{a b}", "-", "col : x", "foo@bar.com", "path/to", "\x00", "a\x00b"]  # fmt: skip


@pytest.fixture(scope="module")
def index():
    connection = sqlite3.connect(":memory:")
    connection.execute(f"create virtual table texts using fts5(text, tokenize = '{TOKENIZE}')")
    connection.execute("create virtual table terms using fts5vocab(texts, row)")
    connection.execute(
        "insert into texts values ('the multi-agent system: C++, don''t, naïve café, v3.3.6, path/to')"
    )
    return connection


@pytest.mark.parametrize("query", AWKWARD)
def test_no_query_is_an_error_in_fts5(index, query):
    assert index.execute("select count(*) from texts where texts match ?", [match_all(query)]).fetchone()
    expression = match_any(read_query(query))
    if expression is not None:
        assert index.execute("select count(*) from texts where texts match ?", [expression]).fetchone()


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_makes_an_expression_that_fts5_takes(text):
    connection = sqlite3.connect(":memory:")
    connection.execute("create virtual table texts using fts5(text)")
    connection.execute("select count(*) from texts where texts match ?", [match_all(text)]).fetchone()


@pytest.mark.parametrize(
    "query", ["multi-agent", "C++", "don't", "NAIVE", "cafe", "v3.3.6", "path/to", "the multi-agent"]
)
def test_what_stands_there_is_found(index, query):
    assert index.execute("select count(*) from texts where texts match ?", [match_all(query)]).fetchone() == (
        1,
    )


def test_blank_words_match_nothing(index):
    assert index.execute("select count(*) from texts where texts match ?", [match_all("  ")]).fetchone() == (
        0,
    )


def test_stems_are_those_of_the_index(index):
    text = "Running runners ran; the happiest classes' attributes were being looked up, naïvely, in cafés. Ünïcödé Ω x2"
    index.execute("delete from texts")
    index.execute("insert into texts values (?)", [text])
    assert set(stems_of(text)) == {row[0] for row in index.execute("select term from terms")}


@pytest.mark.parametrize(
    "word",
    ["possibly", "assembly", "disassemblies", "comprehensibly", "nobly", "ably", "capably", "possible", "technology",
     "apologies", "analogy", "logy", "log", "logically", "skies", "dying", "generalizations", "hopefulness"],
)  # fmt: skip
def test_each_stem_is_that_of_fts5(index, word):
    index.execute("delete from texts")
    index.execute("insert into texts values (?)", [word])
    assert index.execute("select term from terms").fetchall() == [(stem(word),)]


def test_stop_words_are_dropped_only_while_others_remain():
    english = LANGUAGES["english"]
    assert read_query("what was the decision about the auth", english).words == ("decision", "auth")
    assert read_query("the who", english).words == ("the", "who")


def test_stop_words_can_be_a_language_a_list_or_none():
    assert "der" in stop_words("german")
    assert stop_words("none") == frozenset()
    assert stop_words(["Foo"]) == {"foo"}


def test_a_word_repeated_or_inflected_counts_once():
    assert read_query("Class classes class").words == ("class",)


def test_unspaced_scripts_are_cut_into_pairs():
    words = read_query("東京の会議 FTS5")
    assert words.substrings == ("東京", "京の", "の会", "会議")
    assert words.words == ("fts5",)


def test_signs_alone_become_substrings():
    assert read_query("->").substrings == ("->",)
    assert not read_query("   ")


def test_found_words_are_placed_in_order_without_overlap():
    text = "Classes of a class: 東京の"
    assert find_words(text, read_query("class 東京")) == [
        (0, 7, "class"),
        (13, 18, "class"),
        (20, 22, "東京"),
    ]


@given(st.text(max_size=80))
def test_folding_and_stemming_take_any_text(text):
    assert isinstance(stem(text), str)
    assert fold(fold(text)) == fold(text) or not text.isascii()


def test_mempalace_words_are_two_characters_or_more():
    assert mempalace_words("A b cd_e Ünï 東京の会議") == ["cd_e", "ünï", "東京の会議"]


def test_threads_stem_alike():
    """The library's stemmer keeps its word on itself: shared by threads it answers nonsense, and caches it."""
    words = [f"{beginning}{ending}" for beginning in ("form", "collect", "maintain", "relat", "argu") for ending in ("al", "or", "ers", "ions", "ments", "ingly", "ability")] * 20  # fmt: skip
    _remembered_stem.cache_clear()
    expected = {word: stem(word) for word in words}
    for _ in range(5):
        _remembered_stem.cache_clear()
        with ThreadPoolExecutor(8) as pool:
            assert all(
                dict(zip(words, found, strict=True)) == expected
                for found in pool.map(lambda _: list(map(stem, words)), range(16))
            )


def test_a_query_of_very_many_words_stays_a_small_statement():
    assert len(read_query(" ".join(f"word{number}" for number in range(2000))).words) == 64
    assert len(read_query("".join(chr(0x4E00 + number) for number in range(2000))).substrings) == 16
    assert len(read_query(" ".join("!" * number for number in range(1, 100))).substrings) == 16
