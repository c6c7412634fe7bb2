"""Lexical candidates: the same drawers whether a small scope is read or looked up in the full-text index."""

from pydoc_data.topics import topics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from building import add, find, make_palace
from datasette_mempalace.change_log import last_change
from datasette_mempalace.chunking import chunk
from datasette_mempalace.counts import WordCounts
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.lexical import lexical_candidates, palace_statistics
from datasette_mempalace.scope import Scope
from datasette_mempalace.words import read_query

WORDS = sorted({word for text in topics.values() for word in text.split() if word.isalpha()})
EXTRA = [
    "Naïve cafés and Ünïcödé",
    "hoping, hopes and skies",
    "snake_case_names v3.3.6 C++ x",
    "",
    "東京の会議 tokens",
]


@pytest.fixture(scope="module")
def palace(tmp_path_factory):
    texts = [piece.text for name in sorted(topics)[:25] for piece in chunk(topics[name])][:250] + EXTRA
    with make_palace(tmp_path_factory.mktemp("lexical") / "p.db") as palace:
        drawers = [Drawer(text, wing=f"w{number % 3}", room=str(number)) for number, text in enumerate(texts)]
        put_drawers(palace, drawers)
        yield palace


def both(palace, query, scope):
    words = read_query(query)
    with palace.reader() as connection:
        looked_up = lexical_candidates(connection, words, scope, 1000)
        read = lexical_candidates(connection, words, scope, 1000, palace_statistics(connection, words))
    return read, looked_up


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), st.sampled_from(["w0", "w1", "w2"]))
def test_what_is_read_matches_what_is_looked_up(palace, words, wing):
    read, looked_up = both(palace, " ".join(words), Scope(wings=(wing,)))
    assert set(read) == set(looked_up)


@pytest.mark.parametrize(
    "query", ["naive CAFE unicode", "hope sky", "case names", "c x v3 6", "tokens 東京", "nothing zzz"]
)
def test_odd_words_too(palace, query):
    for wing in ("w0", "w1", "w2"):
        read, looked_up = both(palace, query, Scope(wings=(wing,)))
        assert set(read) == set(looked_up)


def test_the_best_come_first_either_way(palace):
    """FTS5's k1 is 1.2 and counts words, so places may be exchanged, but not the best for the worst."""
    read, looked_up = both(palace, "generator expression yields values", Scope(wings=("w1",)))
    assert len(set(read[:10]) & set(looked_up[:10])) >= 7


def test_statistics_are_those_of_the_whole_palace(palace):
    with palace.reader() as connection:
        statistics = palace_statistics(connection, read_query("except naive 東京"))
        rows = connection.execute("select text from drawers").fetchall()
    assert statistics.documents == len(rows)
    assert statistics.frequencies["東京"] == 1
    assert statistics.frequencies["naiv"] == 1
    assert statistics.frequencies["except"] == sum("except" in text.lower() for (text,) in rows)


def test_words_are_counted_anew_when_the_palace_changes(tmp_path):
    with make_palace(tmp_path / "p.db", [("a fox", "w"), ("東京", "w")]) as palace:
        for expected in (1, 2, 3):
            answer = find(palace, "fox 東京", explain=1)
            with palace.reader() as connection:
                counts = dict(palace.word_counts.at(last_change(connection)))
            assert counts == {"fox": expected, "東京": expected}
            assert answer["in_scope"] == 2 * expected
            add(palace, (f"fox {expected}", "w"), (f"東京 {expected}", "w"))


def test_counts_of_another_state_are_not_mixed_and_do_not_grow_for_ever():
    counts = WordCounts()
    counts.at(5)["fox"] = 1
    assert counts.at(5) == {"fox": 1}
    assert counts.at(4) == {}
    assert counts.at(6) == {}
    counts.at(6).update({str(number): 1 for number in range(60_000)})
    assert counts.at(6) == {}
