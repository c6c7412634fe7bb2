"""Lexical candidates of a small scope: its drawers are read instead of looked up in the full-text index.

FTS5 goes through every drawer of the palace that holds one of the words, and only then asks for the scope; where the
scope holds a few hundred drawers, reading them takes a tenth of that. What matches is the same; pure but for one query.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from .ranking import K1, B, Statistics, idf
from .scope import Scope
from .words import MOST_CHARACTERS, QueryWords, fold, stem

FEW = 300
SHARE = 0.05
LETTERS_A_WORD = 6
_WORD = re.compile(r"[^\W_]*")


def is_small(in_scope: int, documents: int) -> bool:
    """Whether reading a scope beats looking it up: it holds few drawers, and few of the palace's."""
    return in_scope <= FEW and in_scope < SHARE * documents


def candidates_read(
    connection: Any, words: QueryWords, scope: Scope, limit: int, statistics: Statistics
) -> list[int]:
    """The drawers of a small scope that hold the query's words best.

    Args:
        connection: an open connection to the palace.
        words: the query's words; any of them will do.
        scope: where to look; every drawer of it is read.
        limit: how many at most.
        statistics: of the palace, for BM25.
    Returns:
        ids, best first by BM25, in which a text's length is taken from its characters.
    """
    where, parameters = scope.where()
    found = _finder(words)
    average = (statistics.average_length or 1.0) * LETTERS_A_WORD
    scores = {}
    for row_id, text in connection.execute(
        f"select id, cast(text as text) from drawers where {where}", parameters
    ):
        counts = found(text[:MOST_CHARACTERS])
        if counts:
            scores[row_id] = sum(
                idf(statistics.documents, statistics.frequencies[word])
                * count
                * (K1 + 1)
                / (count + K1 * (1 - B + B * len(text) / average))
                for word, count in counts.items()
            )
    return sorted(scores, key=lambda row_id: (-scores[row_id], row_id))[:limit]


def _finder(words: QueryWords) -> Callable[[str], Counter[str]]:
    """A function from a text to how often each stem stands in it.

    Porter's stems change at most the last letter of what they are cut from, so that the letters before it lead to
    every word worth stemming.
    """
    stems_by_beginning: dict[str, set[str]] = {}
    for word in words.stems:
        stems_by_beginning.setdefault(word[:-1] if len(word) > 2 else word, set()).add(word)

    def found(text: str) -> Counter[str]:
        plain = text.lower() if text.isascii() else fold(text)
        counts: Counter[str] = Counter()
        for beginning, stems in stems_by_beginning.items():
            place = plain.find(beginning)
            while place >= 0:
                if place == 0 or not plain[place - 1].isalnum():
                    stemmed = stem(_WORD.match(plain, place)[0])  # type: ignore[index]
                    if stemmed in stems:
                        counts[stemmed] += 1
                place = plain.find(beginning, place + len(beginning))
        return counts

    return found
