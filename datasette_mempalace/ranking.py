"""Ranking, as pure functions of numbers and texts: similarity, closet boost, Okapi BM25, fusion, order.

Imports nothing of Datasette, Chroma or SQLite, so that every number can be checked by hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rank_bm25 import BM25Okapi

K1 = 1.5
B = 0.75


@dataclass(frozen=True)
class Statistics:
    """What BM25 knows of a whole palace.

    Attributes:
        documents: how many drawers there are.
        average_length: their mean length in words.
        frequencies: in how many of them each word of the query stands.
    """

    documents: int
    average_length: float
    frequencies: Mapping[str, int]


class Okapi(BM25Okapi):  # type: ignore[misc]
    """rank-bm25's Okapi with an idf that is never negative: log((N - df + 0.5) / (df + 0.5) + 1), as Lucene has it.

    Args:
        texts: the candidates, each a list of words.
        statistics: N, df and the average length; None takes them from the candidates, as MemPalace does.
    """

    def __init__(self, texts: Sequence[Sequence[str]], statistics: Statistics | None):
        self.statistics = statistics
        super().__init__(texts, k1=K1, b=B)
        if statistics is not None:
            self.avgdl = statistics.average_length
        self.avgdl = self.avgdl or 1.0

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        documents = self.statistics.documents if self.statistics else self.corpus_size
        frequencies = self.statistics.frequencies if self.statistics else nd
        self.idf = {word: idf(documents, frequency) for word, frequency in frequencies.items()}


def idf(documents: int, frequency: int) -> float:
    """How telling a word is: log((N - df + 0.5) / (df + 0.5) + 1), at least 0."""
    frequency = min(frequency, documents)
    return math.log((documents - frequency + 0.5) / (frequency + 0.5) + 1)


def bm25_scores(
    query: Sequence[str], texts: Sequence[Sequence[str]], statistics: Statistics | None = None
) -> list[float]:
    """Okapi BM25 with k1 = 1.5 and b = 0.75 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009).

    Args:
        query: the words looked for; one that is repeated counts once.
        texts: the candidates' words.
        statistics: of the whole palace, or None for those of the candidates.
    Returns:
        a score for each text, at least 0, in their order; larger is better.
    """
    words = list(dict.fromkeys(query))
    if not words or not any(texts):
        return [0.0] * len(texts)
    return [float(score) for score in Okapi(texts, statistics).get_scores(words)]


def clamp_distance(distance: float) -> float:
    """A cosine distance within [0, 2], without the noise of floating-point numbers."""
    return min(2.0, max(0.0, round(distance, 7)))


def similarity(distance: float | None) -> float | None:
    """max(0, 1 - distance) for a cosine distance; None when the distance is not known."""
    return None if distance is None else max(0.0, 1.0 - distance)


def closet_boosts(
    closets: Sequence[tuple[str | None, float]], boosts: Sequence[float], farthest: float
) -> dict[str, tuple[float, int]]:
    """What each source's drawers gain from its best closet.

    Args:
        closets: (source_file, distance), nearest first.
        boosts: the gain of the first, second, ... closet.
        farthest: the distance beyond which a closet says nothing.
    Returns:
        for each source its gain and the place of the closet it comes from.
    """
    gains: dict[str, tuple[float, int]] = {}
    for place, (source_file, distance) in enumerate(closets[: len(boosts)]):
        if source_file and source_file not in gains and distance <= farthest:
            gains[source_file] = (boosts[place], place)
    return gains


def effective_distance(distance: float, boost: float) -> float:
    """A distance less its closet boost, within [0, 2]."""
    return clamp_distance(distance - boost)


def shares(scores: Sequence[float]) -> list[float]:
    """Scores divided by the greatest of them: 0 to 1."""
    best = max(scores, default=0.0)
    return [score / best if best > 0 else 0.0 for score in scores]


def fuse(similarity: float | None, bm25_share: float, similarity_weight: float, bm25_weight: float) -> float:
    """The score of a hit: w1 * similarity + w2 * BM25 share; an unknown similarity counts as 0."""
    return similarity_weight * (similarity or 0.0) + bm25_weight * bm25_share


def order(scores: Sequence[float], moments: Sequence[str | None], names: Sequence[str]) -> list[int]:
    """The places of hits, best first.

    Args:
        scores: the greater the better, compared to nine decimals.
        moments: ISO dates; of equal scores the newer comes first, none last.
        names: drawer ids, which decide what is still equal.
    Returns:
        indices into the three.
    """
    places = sorted(range(len(scores)), key=lambda place: names[place])
    places.sort(key=lambda place: moments[place] or "", reverse=True)
    places.sort(key=lambda place: round(scores[place], 9), reverse=True)
    return places
