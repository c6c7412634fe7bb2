"""Words of texts and queries, as FTS5's `porter unicode61` sees them, and safe MATCH expressions made of them.

Pure. Scripts written without spaces, and queries of signs alone, are no words to FTS5: they become substrings.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

# Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar: runs of them are one token to unicode61, so they are cut here.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
# ASCII stands on its own because most text is, and a class alone is matched twice as fast.
_RUN = re.compile(
    f"[{_UNSPACED}]+|(?:[a-zA-Z0-9]+[\u0300-\u036f]*|(?![{_UNSPACED}])[^\\W_][\u0300-\u036f]*)+"
)
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_MARKS = re.compile("[\u0300-\u036f]")
# FTS5 has two rules of Porter's later version, -bli to -ble and -logi to -log, which the library's first version lacks.
_LATER_RULES = (
    (re.compile(r"(.*[aeiouy][^aeiouy].*bl)(?:y|ies)"), "e"),
    (re.compile(r"(.*[aeiouy][^aeiouy].*log)(?:y|ies)"), ""),
)
_MEMPALACE_WORD = re.compile(r"\w{2,}", re.UNICODE)
# A stemmer keeps its word on itself while it works, so every thread has one of its own.
_PORTER = threading.local()
# What a query may ask for at most: beyond it a statement grows without finding anything better.
MOST_WORDS = 64
MOST_SUBSTRINGS = 16
# A drawer's text is read so far for words and snippets; a longer one is found by its beginning.
MOST_CHARACTERS = 100_000


@dataclass(frozen=True)
class QueryWords:
    """The words of a query.

    Attributes:
        words: its words as written, lower case, each once; stop words left out while others remain.
        stems: the same as FTS5 indexes them.
        substrings: what has to be looked for inside words: unspaced scripts in pairs of characters, or signs.
    """

    words: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    substrings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words or self.substrings)


def read_query(query: str, stop_words: Collection[str] = ()) -> QueryWords:
    """The words of a query that are worth looking for.

    Args:
        query: a person's words, of any kind.
        stop_words: words to leave out while other words remain.
    Returns:
        its words and substrings; both are empty only for a blank query.
    """
    runs = [match[0] for match in _RUN.finditer(query)]
    words = list(dict.fromkeys(fold(run) for run in runs if not _IS_UNSPACED.match(run)))
    pairs = dict.fromkeys(pair for run in runs if _IS_UNSPACED.match(run) for pair in _pairs(run))
    telling = [word for word in words if word not in stop_words]
    kept = telling or ([] if pairs else words)
    substrings = tuple(pairs if runs else dict.fromkeys(query.split()))[:MOST_SUBSTRINGS]
    kept = kept[:MOST_WORDS]
    by_stem = {stem(word): word for word in reversed(kept)}
    chosen = [word for word in kept if by_stem[stem(word)] == word]
    return QueryWords(tuple(chosen), tuple(stem(word) for word in chosen), substrings)


def match_any(words: QueryWords) -> str | None:
    """An FTS5 expression for rows with any of the words, or None when there are none; nothing in it is an operator."""
    return " OR ".join(quoted(word) for word in words.words) or None


def match_all(query: str) -> str:
    """An FTS5 expression for rows with all the words of a person's query, whatever signs they hold.

    Args:
        query: any text.
    Returns:
        each part between spaces quoted, so that `multi-agent` is a phrase and `NOT` a word; `""`, which matches
        nothing, for a blank query.
    """
    return " ".join(quoted(part) for part in query.replace("\0", " ").split()) or '""'


def quoted(token: str) -> str:
    """A token as an FTS5 string."""
    return '"' + token.replace('"', '""') + '"'


def stems_of(text: str) -> list[str]:
    """The stems of a text's words in order, repeats kept, as they stand in the full-text index."""
    return list(map(stem, _RUN.findall(text[:MOST_CHARACTERS])))


def mempalace_words(text: str) -> list[str]:
    """The tokens of MemPalace's own BM25: runs of two or more word characters, lower case."""
    return _MEMPALACE_WORD.findall(text[:MOST_CHARACTERS].lower())


def find_words(text: str, words: QueryWords) -> list[tuple[int, int, str]]:
    """Where a query's words stand in a text.

    Returns:
        (start, end, the query's word or substring) in order, not overlapping.
    """
    wanted = dict(zip(words.stems, words.words, strict=True))
    text = text[:MOST_CHARACTERS]
    found = []
    if wanted:
        for match in _RUN.finditer(text):
            word = wanted.get(stem(match[0]))
            if word is not None:
                found.append((match.start(), match.end(), word))
    for part in words.substrings:
        found += [(match.start(), match.end(), part) for match in re.finditer(re.escape(part), text)]
    found.sort()
    apart: list[tuple[int, int, str]] = []
    for place in found:
        if not apart or place[0] >= apart[-1][1]:
            apart.append(place)
    return apart


def stem(word: str) -> str:
    """A word folded and stemmed as FTS5's porter does it: only words of 3 to 64 bytes are stemmed."""
    # A text may have "words" of many thousand letters, which nobody needs to remember.
    return _remembered_stem(word) if len(word) <= 256 else _stem(word)


def _stem(word: str) -> str:
    folded = fold(word)
    if not 3 <= len(folded.encode("utf-8", "replace")) <= 64:
        return folded
    for rule, ending in _LATER_RULES:
        if later := rule.fullmatch(folded):
            folded = later[1] + ending
    if not hasattr(_PORTER, "stemmer"):
        _PORTER.stemmer = snowballstemmer.stemmer("porter")
    stemmed: str = _PORTER.stemmer.stemWord(folded)
    return stemmed


_remembered_stem = lru_cache(maxsize=65_536)(_stem)


def fold(word: str) -> str:
    """Lower case without diacritics, as `unicode61 remove_diacritics 2` folds."""
    if word.isascii():
        return word.lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare).lower()


def _pairs(run: str) -> Sequence[str]:
    return [run] if len(run) <= 2 else [run[place : place + 2] for place in range(len(run) - 1)]
