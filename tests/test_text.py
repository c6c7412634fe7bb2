"""Texts that SQLite can hold, ids, names of sources."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_mempalace.text import clean_text, make_id, source_name, text_hash


def test_a_lone_surrogate_becomes_a_replacement_character_and_is_counted():
    assert clean_text("bad \ud800 surrogate \udfff") == ("bad \ufffd surrogate \ufffd", 2)


def test_a_surrogate_pair_becomes_its_character():
    assert clean_text("\ud83d\ude00") == ("😀", 0)
    assert clean_text(json.loads('"\\ud83d\\ude00"')) == ("😀", 0)


@given(st.text(st.characters(codec="utf-8")))
def test_a_text_without_surrogates_is_never_changed(text):
    assert clean_text(text) == (text, 0)


@given(st.text())
def test_every_cleaned_text_can_be_encoded(text):
    clean_text(text)[0].encode("utf-8")


def test_borders_of_the_parts_of_an_id_count():
    assert make_id("drawer", "a", "bc") != make_id("drawer", "ab", "c")
    assert make_id("drawer", "1:a;", "b") != make_id("drawer", "1:a", ";b")


def test_equal_texts_have_equal_hashes_and_others_do_not():
    assert text_hash("é") == text_hash("\u00e9") != text_hash("e\u0301")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/b.md", "b.md"),
        ("C:\\notes\\b.md", "b.md"),
        ("/a/b/", "b"),
        ("b", "b"),
        ("", None),
        (None, None),
        ("/", "/"),
    ],
)
def test_a_source_is_shown_by_the_last_part_of_its_path(path, name):
    assert source_name(path) == name
