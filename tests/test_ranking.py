"""The numbers of the ranking, checked against hand calculation and against rank-bm25 itself."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_mempalace.ranking import (
    Statistics,
    bm25_scores,
    clamp_distance,
    closet_boosts,
    effective_distance,
    fuse,
    idf,
    order,
    shares,
    similarity,
)

BOOSTS = (0.40, 0.25, 0.15, 0.08, 0.04)
WORD = st.sampled_from("abcdef")


def okapi_by_hand(query, texts):
    """The formula as the literature writes it, in the plainest way."""
    average = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        score = 0.0
        for word in dict.fromkeys(query):
            frequency = sum(word in other for other in texts)
            count = text.count(word)
            weight = math.log((len(texts) - frequency + 0.5) / (frequency + 0.5) + 1)
            score += (
                weight * count * 2.5 / (count + 1.5 * (0.25 + 0.75 * len(text) / average)) if count else 0.0
            )
        scores.append(score)
    return scores


@given(st.lists(WORD, max_size=6), st.lists(st.lists(WORD, min_size=1, max_size=12), min_size=1, max_size=12))
def test_bm25_over_candidates_is_okapi_with_the_idf_that_is_never_negative(query, texts):
    scores = bm25_scores(query, texts)
    assert scores == pytest.approx(okapi_by_hand(query, texts), abs=1e-12)
    assert min(scores) >= 0


def test_bm25_of_nothing_is_nothing():
    assert bm25_scores(["a"], []) == []
    assert bm25_scores([], [["a"]]) == [0.0]
    assert bm25_scores(["a"], [[], []]) == [0.0, 0.0]


def test_bm25_takes_the_statistics_of_the_palace():
    texts = [["rare", "common"], ["common", "common"]]
    scores = bm25_scores(["rare", "common"], texts, Statistics(1000, 2.0, {"rare": 1, "common": 900}))
    expected = idf(1000, 1) * 2.5 / 2.5 + idf(1000, 900) * 2.5 / 2.5
    assert scores[0] == pytest.approx(expected)
    assert scores[0] > 20 * scores[1]


def test_idf_is_positive_even_for_a_word_in_every_drawer():
    assert 0 < idf(10, 10) < idf(10, 1)
    assert idf(10, 12) == idf(10, 10)


def test_case_1_distances_and_boosts_stay_within_bounds():
    assert effective_distance(0.05, 0.40) == 0.0
    assert similarity(0.05) == pytest.approx(0.95)
    assert similarity(clamp_distance(-4.8e-07)) == 1.0
    assert similarity(1.7) == 0.0
    assert similarity(None) is None
    assert effective_distance(2.5, 0.1) == 2.0


def test_the_best_closet_of_each_source_counts_by_its_place_among_all():
    closets = [("a", 0.3), ("a", 0.4), ("b", 0.5), (None, 0.6), ("c", 1.51), ("d", 0.9)]
    assert closet_boosts(closets, BOOSTS, 1.5) == {"a": (0.40, 0), "b": (0.15, 2)}


def test_shares_are_of_the_greatest():
    assert shares([1.0, 4.0, 0.0]) == [0.25, 1.0, 0.0]
    assert shares([0.0, 0.0]) == [0.0, 0.0]
    assert shares([]) == []


def test_fusion_weighs_similarity_and_words():
    assert fuse(0.5, 1.0, 0.6, 0.4) == pytest.approx(0.7)
    assert fuse(None, 1.0, 0.6, 0.4) == pytest.approx(0.4)


def test_ties_go_to_the_newer_then_to_the_drawer_id():
    scores = [0.5, 0.5, 0.5, 0.9, 0.5]
    moments = ["2026-01-01", "2026-02-01", None, None, "2026-02-01"]
    assert order(scores, moments, ["e", "d", "c", "b", "a"]) == [3, 4, 1, 0, 2]


def test_a_difference_beyond_nine_decimals_is_a_tie():
    assert order([0.5, 0.5 + 1e-12], ["2026-02-01", "2026-01-01"], ["a", "b"]) == [0, 1]
