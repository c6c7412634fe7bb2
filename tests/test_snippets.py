"""Snippets: the lines that say why a drawer was found, between words, without what says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_mempalace.snippets import MARK_END, MARK_START, snippet
from datasette_mempalace.words import find_words, read_query


def of(text, query, width=120):
    return snippet(text, find_words(text, read_query(query)), width)


def test_found_words_are_marked():
    assert of("A fox and foxes.", "fox") == f"A {MARK_START}fox{MARK_END} and {MARK_START}foxes{MARK_END}."


def test_rules_borders_and_signs_of_headings_are_left_out():
    assert (
        of("# Title\n\nHead\n====\n\n+---+\n| a | fox |\n## Next\nC# and a-b", "none")
        == "Title Head | a | fox | Next C# and a-b"
    )


def test_it_shows_the_place_with_most_of_the_words():
    text = (
        "fox here. "
        + "filler words go on. " * 30
        + "The red fox and the blue whale meet. "
        + "more words follow. " * 30
    )
    shown = of(text, "red fox blue whale")
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert shown.count(MARK_START) == 4


def test_a_drawer_that_holds_marks_itself_cannot_forge_one():
    assert of("a \x01forged\x02 mark", "none") == "a forged mark"


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "====", "\x00"])
def test_nothing_to_show_is_an_empty_text(text):
    assert of(text, "fox").strip() == ""


@given(st.text(st.sampled_from("ab .\n#=-|é東\x01\x02"), max_size=600), st.integers(10, 200))
def test_marks_come_in_pairs_and_nothing_is_made_up(text, width):
    shown = of(text, "a b 東", width)
    assert shown.count(MARK_START) == shown.count(MARK_END)
    bare = shown.replace(MARK_START, "").replace(MARK_END, "").replace("…", "")
    assert set(bare) <= set(text) | {" "}
