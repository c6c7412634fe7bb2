"""Lexical candidates: drawers found by their words through FTS5, and what BM25 needs to know of the palace.

Only ids, counts and lengths leave this module; it reads no vector and ranks nothing but FTS5's own order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .lexical_small import candidates_read
from .ranking import Statistics
from .scope import Scope
from .words import QueryWords, match_any, quoted

# The full-text match is narrowed by ids inside its own query; a join would let the planner leave the index. The plus
# sign keeps SQLite from looking up every id of the scope in FTS5 one by one. FTS5 skips what lies outside of the
# bounds without reading it, which makes a wing that was filed together as quick as one that stands alone.
_BY_WORDS = """
    select rowid from drawers_fts where drawers_fts match :match {narrowed}
    order by bm25(drawers_fts), rowid limit :limit
"""
_NARROWED = """
    and rowid >= (select min(id) from drawers where {where}) and rowid <= (select max(id) from drawers where {where})
    and +rowid in (select id from drawers where {where})
"""
_BY_SUBSTRINGS = """
    select id, {hits} as hits from drawers where {where} and ({any}) order by hits desc, length(text), id limit :limit
"""


def lexical_candidates(
    connection: Any, words: QueryWords, scope: Scope, limit: int, small: Statistics | None = None
) -> list[int]:
    """The drawers of a scope that hold the query's words best.

    Args:
        connection: an open connection to the palace.
        words: the query's words; any of them will do.
        scope: where to look; applied inside FTS5.
        limit: how many at most.
        small: the palace's statistics, where the scope is so small that its drawers are read instead of looked up.
    Returns:
        ids, best first by bm25, taken in turn with those found by substrings.
    """
    where, parameters = scope.where()
    found: list[int] = []
    match = match_any(words)
    if match and small is not None:
        found = candidates_read(connection, words, scope, limit, small)
    elif match:
        narrowed = "" if scope.is_everything else _NARROWED.format(where=where)
        rows = connection.execute(
            _BY_WORDS.format(narrowed=narrowed), {**parameters, "match": match, "limit": limit}
        ).fetchall()
        found = [row[0] for row in rows]
    if words.substrings:
        hits = [f"(instr(text, :part_{place}) > 0)" for place in range(len(words.substrings))]
        query = _BY_SUBSTRINGS.format(hits=" + ".join(hits), any=" or ".join(hits), where=where)
        rows = connection.execute(
            query, {**parameters, **_parts(words.substrings), "limit": limit}
        ).fetchall()
        found = list(dict.fromkeys(_interleaved(found, [row[0] for row in rows])))[:limit]
    return found


def palace_statistics(connection: Any, words: QueryWords, counts: dict[str, int] | None = None) -> Statistics:
    """What BM25 needs: number of drawers, their mean length, and in how many each word of the query stands.

    Args:
        connection: an open connection to the palace.
        words: the query's words.
        counts: what was counted before in the same state of the palace; gains what is counted now.
    """
    documents, total = _totals(connection)
    counts = {} if counts is None else counts
    for word, stem in zip(words.words, words.stems, strict=True):
        if stem not in counts:
            counts[stem] = drawers_with(connection, word, stem)
    parts = [part for part in words.substrings if part not in counts]
    if parts:
        sums = ", ".join(f"sum(instr(text, :part_{place}) > 0)" for place in range(len(parts)))
        row = connection.execute(f"select {sums} from drawers", _parts(parts)).fetchone()
        counts.update({part: count or 0 for part, count in zip(parts, row, strict=True)})
    wanted = (*words.stems, *words.substrings)
    return Statistics(
        documents, total / documents if documents else 0.0, {word: counts[word] for word in wanted}
    )


def drawers_with(connection: Any, word: str, stem: str) -> int:
    """In how many drawers a word stands."""
    row = connection.execute("select doc from drawers_fts_terms where term = ?", [stem]).fetchone()
    if row:
        return int(row[0])
    # FTS5 folds and stems a few letters beyond ASCII in its own way; what it calls such a word, only it knows.
    query = "select count(*) from drawers_fts where drawers_fts match ?"
    return int(connection.execute(query, [quoted(word)]).fetchone()[0])


def _totals(connection: Any) -> tuple[int, int]:
    """Rows and words of the full-text index, from the record of averages that FTS5 keeps for its own bm25().

    The record is row 1 of `%_data`: SQLite varints, first the number of rows, then the words of each column
    (SQLite documentation, FTS5, section "The %_data table", and `fts5StorageDecodeSizeArray`).
    """
    row = connection.execute("select block from drawers_fts_data where id = 1").fetchone()
    numbers = _varints(row[0]) if row and row[0] else []
    return (numbers[0], sum(numbers[1:])) if numbers else (0, 0)


def _varints(block: bytes) -> list[int]:
    numbers, value, length = [], 0, 0
    for byte in block:
        length += 1
        if length == 9:
            value = (value << 8) | byte
        else:
            value = (value << 7) | (byte & 0x7F)
        if length == 9 or byte < 0x80:
            numbers.append(value)
            value = length = 0
    return numbers


def _parts(parts: Sequence[str]) -> dict[str, str]:
    return {f"part_{place}": part for place, part in enumerate(parts)}


def _interleaved(first: list[int], second: list[int]) -> list[int]:
    """Two rankings taken in turn, since their scores cannot be compared."""
    mixed = []
    for place in range(max(len(first), len(second))):
        mixed += first[place : place + 1] + second[place : place + 1]
    return mixed
