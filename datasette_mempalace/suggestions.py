"""What a person may have meant: wings and rooms that are nearly as asked for, words of the palace near unknown ones.

Stored names are never changed, and a search is never widened on its own: these are only offered.
"""

from __future__ import annotations

import difflib
import itertools
import json
import string
from typing import Any

from .lexical import drawers_with
from .scope import DIMENSIONS, Scope
from .words import QueryWords, find_words, fold, quoted, read_query, stem

MOST_NAMES = 20_000
MOST_ASKED = 4
LONGEST_NAME = 200  # comparing takes time by the square of the length
MOST_TERMS = 20_000
NEAR = 3
MOST_WORDS = 8
LEAST_ALIKE = 0.75
# Stems are shorter than words, and so less alike than what they were cut from.
ALIKE_STEMS = 0.6
READ = 20
# Of these lengths a word one edit away is most likely the one that was meant.
LEAST_LETTERS, MOST_LETTERS = 4, 32
SPREAD = 3


def near_names(connection: Any, scope: Scope) -> dict[str, dict[str, list[str]]]:
    """For each wing and room of a scope that no drawer has, those that are nearly the same.

    Returns:
        {"wing": {"acme-app": ["acme_app"]}, ...}; only what was not found, with no names where nothing is near, or after the
        first `MOST_ASKED` of a kind.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for dimension in ("wing", "room"):
        query = f"select 1 from drawers where {dimension} = ? limit 1"
        missing = [
            asked
            for asked in getattr(scope, DIMENSIONS[dimension])
            if asked is not None and not connection.execute(query, [asked]).fetchone()
        ]
        if missing:
            names = _names(connection, dimension)
            near = {asked: _near(asked, names) for asked in missing[:MOST_ASKED]}
            found[dimension] = {asked: near.get(asked, []) for asked in missing}
    return found


def near_words(connection: Any, words: QueryWords, thorough: bool) -> list[dict[str, Any]]:
    """For each word of a query that no drawer has, words of the palace that are spelt nearly so.

    Args:
        connection: the palace's.
        words: the query's.
        thorough: whether to compare all words of the same beginning too where none is one edit away, which takes longer.
    Returns:
        [{"word", "near": [{"word", "drawers"}]}]; the near ones as some drawer writes them.
    """
    unknown = []
    for word, term in list(zip(words.words, words.stems, strict=True))[:MOST_WORDS]:
        if not drawers_with(connection, word, term):
            near = _one_edit_away(connection, word)
            if not near and thorough:
                near = _alike(connection, word, term)
            unknown.append(
                {"word": word, "near": [{"word": other, "drawers": drawers} for other, drawers in near]}
            )
    return unknown


def _one_edit_away(connection: Any, word: str) -> list[tuple[str, int]]:
    """The words of the palace that one slip of the hand makes into this one, as `edits` orders them, then the most common.

    Each possible word is looked up in the index of terms, so that it costs the same in a palace of any size.
    """
    if not LEAST_LETTERS <= len(word) <= MOST_LETTERS:
        return []
    possible = edits(word)
    by_stem = {other: stem(other) for other in possible}
    drawers = dict(
        connection.execute(
            "select term, doc from drawers_fts_terms where term in (select value from json_each(?))",
            [json.dumps(sorted(set(by_stem.values())))],
        ).fetchall()
    )
    found = [(other, drawers[term]) for other, term in by_stem.items() if term in drawers]
    found.sort(key=lambda pair: (possible[pair[0]], -pair[1], pair[0]))
    # A stem in the index does not say that this form of it is anywhere written.
    written = (pair for pair in found[: 4 * NEAR] if pair[0] in _spellings(connection, by_stem[pair[0]]))
    return list(itertools.islice(written, NEAR))


def edits(word: str) -> dict[str, int]:
    """Every word one edit away (Damerau 1964): two neighbours swapped, a letter left out, put in or taken for another.

    Returns:
        word to 0 where letters were swapped, left out or put in twice, the commonest slips; else to 1.
    """
    letters = sorted({*string.ascii_lowercase, *word})
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    put_in = {
        head + letter + tail: int(letter not in (head[-1:], tail[:1]))
        for head, tail in cuts
        for letter in letters
    }
    others = {head + letter + tail[1:]: 1 for head, tail in cuts if tail for letter in letters}
    left_out = {head + tail[1:]: int(tail[0] not in (head[-1:], tail[1:2])) for head, tail in cuts if tail}
    swapped = {head + tail[1] + tail[0] + tail[2:]: 0 for head, tail in cuts if len(tail) > 1}
    found = others | put_in | left_out | swapped
    found.pop(word, None)
    return found


def _alike(connection: Any, word: str, asked: str) -> list[tuple[str, int]]:
    """The words of the palace that begin with the same letter and look most alike, for what is more than one edit away."""
    terms = dict(
        connection.execute(
            "select term, doc from drawers_fts_terms where term >= ? and term < ? and length(term) between ? and ? limit ?",
            [asked[:1], asked[:1] + "\U0010ffff", len(asked) - SPREAD, len(word) + SPREAD, MOST_TERMS],
        ).fetchall()
    )
    alike = [difflib.get_close_matches(form, terms, n=2 * NEAR, cutoff=ALIKE_STEMS) for form in (word, asked)]
    found = {
        written: terms[term]
        for term in dict.fromkeys(alike[0] + alike[1])
        if (written := _written(connection, term, word)) is not None
    }
    near = difflib.get_close_matches(word, found, n=NEAR, cutoff=LEAST_ALIKE)
    return [(other, found[other]) for other in near]


def _names(connection: Any, dimension: str) -> list[str]:
    rows = connection.execute(
        f"select distinct cast({dimension} as text) from drawers where {dimension} is not null limit ?",
        [MOST_NAMES],
    )
    return [name for (name,) in rows if len(name) <= LONGEST_NAME]


def _near(asked: str, names: list[str]) -> list[str]:
    if len(asked) > LONGEST_NAME:
        return []
    same = [name for name in names if _bare(name) == _bare(asked)]
    close = difflib.get_close_matches(asked, names, n=NEAR, cutoff=LEAST_ALIKE)
    return list(dict.fromkeys(same + close))[: 2 * NEAR]


def _bare(name: str) -> str:
    """A name without case, accents and the signs that people put between words."""
    return "".join(character for character in fold(name) if character.isalnum())


def _written(connection: Any, term: str, asked: str) -> str | None:
    """A stem as some drawers spell it, in the way that is nearest to the word asked for."""
    return max(
        _spellings(connection, term),
        key=lambda word: (difflib.SequenceMatcher(None, asked, word).ratio(), word),
        default=None,
    )


def _spellings(connection: Any, term: str) -> set[str]:
    """The words of some drawers that have this stem."""
    rows = connection.execute(
        "select cast(text as text) from drawers where id in"
        " (select rowid from drawers_fts where drawers_fts match ? limit ?)",
        [quoted(term), READ],
    )
    words = read_query(term)
    return {fold(text[start:end]) for (text,) in rows for start, end, _ in find_words(text, words)}
