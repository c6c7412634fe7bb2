"""The candidate pool: vector and lexical candidates of a scope united, boosted by closets, scored and put in order.

The steps in the middle of the pipeline, between a checked request and the hits that are shown.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import ranking
from .change_log import last_change
from .closets import PREVIEW, closet_words, has_pointer
from .context import MAX_CHARACTERS, Passage, read_passage
from .lexical import lexical_candidates, palace_statistics
from .lexical_small import is_small
from .nearest import nearest, true_distances
from .palace import Palace
from .request import SearchRequest
from .rows import count_in_scope, read_rows
from .scope import Scope
from .words import MOST_CHARACTERS, QueryWords, mempalace_words, stems_of

MULTIPLE = 3
# MemPalace rounds distances before it fuses them, which decides some close calls.
MEMPALACE_DECIMALS = 4
# Without vectors MemPalace ranks up to so many drawers that hold any of the words.
MEMPALACE_WORDS_ONLY = 500


@dataclass
class Candidate:
    """A drawer that may be a hit, with everything its rank is made of."""

    id: int
    row: dict[str, Any]
    distance: float | None = None
    effective_distance: float | None = None
    closet_boost: float = 0.0
    closet_preview: str | None = None
    bm25_score: float = 0.0
    bm25_share: float = 0.0
    score: float = 0.0
    vector_rank: int | None = None
    lexical_rank: int | None = None
    passage: Passage | None = None

    @property
    def found_by(self) -> list[str]:
        """How it became a candidate: "vector", "lexical", or both."""
        ranks = {"vector": self.vector_rank, "lexical": self.lexical_rank}
        return [by for by, rank in ranks.items() if rank is not None]

    @property
    def similarity(self) -> float | None:
        """1 - distance, at least 0; None without a vector."""
        return ranking.similarity(self.distance)


@dataclass
class Pool:
    """Candidates, best first.

    Attributes:
        candidates: after every limit of the request.
        fetched: how many there were before `max_distance`.
        exhausted: whether asking for more would bring nothing new.
        engine, note: how the vector candidates were found.
        vectors, lexical: how many candidates each way has brought.
    """

    candidates: list[Candidate]
    fetched: int
    exhausted: bool
    engine: str | None = None
    note: str | None = None
    vectors: int = 0
    lexical: int = 0


@dataclass
class Search:
    """One search under way: what every step of the pipeline needs.

    Attributes:
        vector: the query's vector, or None when only words can be searched.
        terms: a connection that has `drawers_fts_terms`; None where no words are searched.
        clock: milliseconds spent in each step, added up.
    """

    palace: Palace
    connection: Any
    request: SearchRequest
    words: QueryWords
    vector: NDArray[np.float32] | None
    terms: Any = None
    clock: dict[str, float] = field(default_factory=dict)
    _statistics: ranking.Statistics | None = None

    @property
    def statistics(self) -> ranking.Statistics:
        """What BM25 knows of the palace, read once a search; words are counted once a state of the palace."""
        # Not a cached_property: before Python 3.12 all searches would share its lock.
        if self._statistics is None:
            counts = self.palace.word_counts.at(last_change(self.connection))
            self._statistics = palace_statistics(self.terms, self.words, counts)
        return self._statistics

    def timed(self, step: str, started: float) -> None:
        """Add the time since `started` (of `time.perf_counter`) to a step's."""
        self.clock[step] = self.clock.get(step, 0.0) + (time.perf_counter() - started) * 1000


def pool_size(search: Search, n_results: int) -> int:
    """How many candidates each source is asked for: three for every hit, at least 30 for `palace`."""
    if search.request.ranking == "palace":
        return max(MULTIPLE * n_results, search.palace.settings.candidate_pool)
    return MULTIPLE * n_results if search.vector is not None else max(n_results, MEMPALACE_WORDS_ONLY)


def make_pool(search: Search, scope: Scope, n_results: int, in_scope: int) -> Pool:
    """Candidates of a scope, boosted, cut, scored and in order.

    Args:
        search: the search under way.
        scope: the request's scope, or a variation of it for facets.
        n_results: for how many hits the pool is to do.
        in_scope: how many drawers the scope holds.
    Returns:
        the pool.
    """
    pool = unite(search, scope, n_results, in_scope)
    boost_by_closets(search, scope, n_results, pool)
    if search.request.candidate_strategy == "vector" and search.vector is not None:
        pool.candidates.sort(key=lambda candidate: (candidate.effective_distance or 0.0, candidate.id))
        pool.exhausted = pool.exhausted and len(pool.candidates) <= n_results
        del pool.candidates[n_results:]
    add_context(search, pool.candidates)
    score(search, pool.candidates)
    return pool


def unite(search: Search, scope: Scope, n_results: int, in_scope: int) -> Pool:
    """Vector candidates united with lexical ones, each with its true distance, within `max_distance`."""
    request, size = search.request, pool_size(search, n_results)
    lexical: list[int] = []
    distances: dict[int, float] = {}
    vectors: list[int] = []
    engine = note = None
    if in_scope and search.vector is not None:
        started = time.perf_counter()
        found = nearest(search.palace, search.connection, "drawer", search.vector, scope, size, in_scope)
        distances, vectors, engine, note = found.distances, list(found.distances), found.engine, found.note
        search.timed("vector", started)
    if in_scope and (request.candidate_strategy == "union" or search.vector is None):
        started = time.perf_counter()
        small = search.statistics if is_small(in_scope, search.statistics.documents) else None
        lexical = lexical_candidates(search.connection, search.words, scope, size, small)
        if search.vector is not None:
            missing = [row_id for row_id in lexical if row_id not in distances]
            distances = {**distances, **true_distances(search.connection, "drawer", search.vector, missing)}
        search.timed("lexical", started)
    ids = list(dict.fromkeys([*vectors, *lexical]))
    near = [row_id for row_id in ids if search.vector is None or request.allows(distances.get(row_id))]
    rows = read_rows(search.connection, near)
    vector_ranks = {row_id: rank for rank, row_id in enumerate(vectors, 1)}
    lexical_ranks = {row_id: rank for rank, row_id in enumerate(lexical, 1)}
    candidates = [
        Candidate(
            id=row_id,
            row=rows[row_id],
            distance=distances.get(row_id),
            effective_distance=distances.get(row_id),
            vector_rank=vector_ranks.get(row_id),
            lexical_rank=lexical_ranks.get(row_id),
        )
        for row_id in near
        if row_id in rows
    ]
    exhausted = len(vectors) < size and len(lexical) < size
    return Pool(candidates, len(ids), exhausted, engine, note, len(vectors), len(lexical))


def boost_by_closets(search: Search, scope: Scope, n_results: int, pool: Pool) -> None:
    """Lift the drawers of sources whose closets are near the query; a closet never adds or removes a candidate."""
    if search.vector is None or not pool.candidates:
        return
    started, settings = time.perf_counter(), search.palace.settings
    closet_scope = scope.for_closets()
    in_scope = count_in_scope(search.connection, closet_scope, "closets")
    if not in_scope:
        return
    found = nearest(
        search.palace, search.connection, "closet", search.vector, closet_scope, 2 * n_results, in_scope
    )
    closets = _read_closets(search.connection, list(found.distances))
    places = [
        (closets[row_id][0] if has_pointer(closets[row_id][1]) else None, distance)
        for row_id, distance in found.distances.items()
    ]
    texts = [closets[row_id][1] for row_id in found.distances]
    gains = ranking.closet_boosts(places, settings.closet_boosts, settings.closet_distance_cap)
    for candidate in pool.candidates:
        gain, place = gains.get(candidate.row["source_file"], (0.0, -1))
        if gain and candidate.distance is not None:
            candidate.closet_boost = gain
            if search.request.closet_texts:
                candidate.closet_preview = closet_words(texts[place])[:PREVIEW]
            candidate.effective_distance = ranking.effective_distance(candidate.distance, gain)
    search.timed("vector", started)


def add_context(search: Search, candidates: list[Candidate]) -> None:
    """Give closet-boosted candidates the passage of their source that says most of the query."""
    if not search.request.context:
        return
    passages: dict[tuple[str | None, str | None], Passage | None] = {}
    for candidate in candidates:
        if not candidate.closet_boost:
            continue
        key = (candidate.row["source_file"], candidate.row["parent_drawer_id"])
        if key not in passages:
            passages[key] = read_passage(search.connection, *key, mempalace_words(search.request.query))
        candidate.passage = passages[key]


def score(search: Search, candidates: list[Candidate]) -> None:
    """BM25, fusion and order: candidates are sorted in place, best first."""
    started, request, settings = time.perf_counter(), search.request, search.palace.settings
    if request.ranking == "mempalace":
        query = mempalace_words(request.query)
        scores = ranking.bm25_scores(query, [mempalace_words(_mempalace_text(item)) for item in candidates])
    else:
        words = search.words
        statistics = search.statistics
        texts = [_stems_and_substrings(item.row["text"], words) for item in candidates]
        scores = ranking.bm25_scores((*words.stems, *words.substrings), texts, statistics)
    for candidate, raw, share in zip(candidates, scores, ranking.shares(scores), strict=True):
        distance = candidate.effective_distance if settings.closet_boost_in_score else candidate.distance
        if request.ranking == "mempalace" and distance is not None:
            distance = round(distance, MEMPALACE_DECIMALS)
        candidate.bm25_score, candidate.bm25_share = raw, share
        candidate.score = (
            share
            if search.vector is None
            else ranking.fuse(
                ranking.similarity(distance), share, settings.similarity_weight, settings.bm25_weight
            )
        )
    places = ranking.order(
        [candidate.score for candidate in candidates],
        [_moment(candidate, request) for candidate in candidates],
        [_name(candidate, request) for candidate in candidates],
    )
    candidates[:] = [candidates[place] for place in places]
    search.timed("rank", started)


def _moment(candidate: Candidate, request: SearchRequest) -> str | None:
    """What decides between equal scores: the newer; MemPalace leaves them as the candidates came."""
    if request.ranking == "mempalace":
        return None
    return candidate.row["authored_at"] or candidate.row["filed_at"]


def _name(candidate: Candidate, request: SearchRequest) -> str:
    """What decides last: the drawer's id, after the effective distance in the ranking `mempalace`."""
    distance = candidate.effective_distance if request.ranking == "mempalace" else None
    return f"{distance or 0.0:.7f} {candidate.row['drawer_id']}"


def _read_closets(connection: Any, ids: list[int]) -> dict[int, tuple[str | None, str]]:
    rows = connection.execute(
        "select id, cast(source_file as text), cast(text as text) from closets where id in (select value from json_each(?))",
        [json.dumps(ids)],
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def _mempalace_text(candidate: Candidate) -> str:
    """What MemPalace scores: the passage in place of the drawer, its chunks joined as they are."""
    if candidate.passage is None:
        return str(candidate.row["text"])
    return "\n\n".join(candidate.passage.pieces)[:MAX_CHARACTERS]


def _stems_and_substrings(text: str, words: QueryWords) -> list[str]:
    stems = stems_of(text)
    for part in words.substrings:
        stems += [part] * text[:MOST_CHARACTERS].count(part)
    return stems
