"""What a person may have meant: wings and rooms that are nearly as asked for, words of the palace near unknown ones.

Stored names are never changed, and a search is never widened on its own: these are only offered.
"""

from __future__ import annotations

import difflib
from typing import Any

from .lexical import drawers_with
from .scope import DIMENSIONS, Scope
from .words import QueryWords, find_words, fold, quoted, read_query

MOST_NAMES = 20_000
MOST_TERMS = 20_000
NEAR = 3
MOST_WORDS = 8
LEAST_ALIKE = 0.75
# Stems are shorter than words, and so less alike than what they were cut from.
ALIKE_STEMS = 0.6
READ = 20


def near_names(connection: Any, scope: Scope) -> dict[str, dict[str, list[str]]]:
    """For each wing and room of a scope that no drawer has, those that are nearly the same.

    Returns:
        {"wing": {"acme-app": ["acme_app"]}, ...}; only what was not found, and only where something is near.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for dimension in ("wing", "room"):
        for asked in getattr(scope, DIMENSIONS[dimension]):
            if asked is None:
                continue
            query = f"select 1 from drawers where {dimension} = ? limit 1"
            if connection.execute(query, [asked]).fetchone():
                continue
            near = _near(asked, _names(connection, dimension))
            if near:
                found.setdefault(dimension, {})[asked] = near
    return found


def near_words(connection: Any, words: QueryWords) -> list[dict[str, Any]]:
    """For each word of a query that no drawer has, words of the palace that are spelt nearly so.

    Returns:
        [{"word", "near": [{"word", "drawers"}]}]; the near ones as some drawer writes them.
    """
    unknown = []
    for word, stem in list(zip(words.words, words.stems, strict=True))[:MOST_WORDS]:
        if drawers_with(connection, word, stem):
            continue
        terms = dict(
            connection.execute(
                "select term, doc from drawers_fts_terms where term >= ? and term < ? limit ?",
                [stem[:1], stem[:1] + "\U0010ffff", MOST_TERMS],
            ).fetchall()
        )
        alike = [
            difflib.get_close_matches(form, terms, n=2 * NEAR, cutoff=ALIKE_STEMS) for form in (word, stem)
        ]
        found = {
            written: terms[term]
            for term in dict.fromkeys(alike[0] + alike[1])
            if (written := _written(connection, term, word)) is not None
        }
        near = difflib.get_close_matches(word, found, n=NEAR, cutoff=LEAST_ALIKE)
        unknown.append({"word": word, "near": [{"word": other, "drawers": found[other]} for other in near]})
    return unknown


def _names(connection: Any, dimension: str) -> list[str]:
    rows = connection.execute(
        f"select distinct cast({dimension} as text) from drawers where {dimension} is not null limit ?",
        [MOST_NAMES],
    )
    return [row[0] for row in rows]


def _near(asked: str, names: list[str]) -> list[str]:
    same = [name for name in names if _bare(name) == _bare(asked)]
    close = difflib.get_close_matches(asked, names, n=NEAR, cutoff=LEAST_ALIKE)
    return list(dict.fromkeys(same + close))[: 2 * NEAR]


def _bare(name: str) -> str:
    """A name without case, accents and the signs that people put between words."""
    return "".join(character for character in fold(name) if character.isalnum())


def _written(connection: Any, term: str, asked: str) -> str | None:
    """A stem as some drawers spell it, in the way that is nearest to the word asked for."""
    rows = connection.execute(
        "select cast(text as text) from drawers where id in"
        " (select rowid from drawers_fts where drawers_fts match ? limit ?)",
        [quoted(term), READ],
    )
    words = read_query(term)
    spelt = {fold(text[start:end]) for (text,) in rows for start, end, _ in find_words(text, words)}
    return max(
        spelt, key=lambda word: (difflib.SequenceMatcher(None, asked, word).ratio(), word), default=None
    )
