"""The pipeline: from a checked request to an answer. Every face comes through `run_search`.

words -> scope -> candidates (vector | lexical, united) -> closet boost -> context -> fusion -> facets -> hits
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from .answer import chunk_totals, hit_as_json
from .config import STRATEGIES
from .copies import fold_copies
from .errors import (
    EmbedderMismatch,
    EmbedderUnavailable,
    MempalaceError,
    PalaceNotFound,
    sentences,
)
from .facets import count_days, count_facets
from .origins import CHROMA_FILE, find_palace_of, how_to_import
from .palace import Palace
from .pool import Candidate, Pool, Search, make_pool, pool_size
from .request import SearchRequest, parse_request
from .rows import count_in_scope
from .scope import build_where_filter, scope_as_json
from .stop_words import stop_words
from .suggestions import near_names, near_words
from .time_limit import limited_reader
from .vectors import told_pending
from .words import read_query

__all__ = ["build_where_filter", "run_search", "search", "search_memories"]

WORDS_ONLY = "bm25_only_via_sqlite"


def run_search(palace: Palace, request: SearchRequest, connection: Any = None) -> dict[str, Any]:
    """Search a palace.

    Args:
        palace: the palace.
        request: what is asked, as `parse_request` reads it.
        connection: an open connection to read through (and whose time limit holds); None takes one of the palace's.
    Returns:
        the answer, of plain JSON types; `docs/api.md` describes its keys. No match is an empty list.
    Raises:
        TookTooLong: when the search took longer than the setting `time_limit_ms`.
        PalaceDamaged: when the database cannot be read as a palace.
    """
    with limited_reader(palace, connection) as reader, _with_terms(palace, connection) as terms:
        return _answer(palace, request, reader, terms or reader)


def search_memories(
    query: str,
    palace_path: str | os.PathLike[str],
    wing: str | None = None,
    room: str | None = None,
    n_results: int = 5,
    max_distance: float = 0.0,
    vector_disabled: bool = False,
    candidate_strategy: str = "vector",
    *,
    source_file: str | None = None,
    since: str | None = None,
    before: str | None = None,
    ranking: str = "mempalace",
) -> dict[str, Any]:
    """Search as MemPalace's function of this name does, with its arguments and its answer.

    Args:
        query: the words.
        palace_path: a palace database, or a MemPalace folder that was imported into one.
        wing, room, source_file: exact names; None or "" for all.
        n_results: how many hits at most, 1 to 1,000.
        max_distance: the farthest cosine distance, 0 for no limit.
        vector_disabled: whether to search by words alone.
        candidate_strategy: "vector" or "union".
        since, before: ISO dates around `filed_at`, the second exclusive.
        ranking: "mempalace", their formula, or "palace", that of the other faces.
    Returns:
        query, filters, total_before_filter and results; `error` and no results when there is no palace.
    Raises:
        ValueError: for an unknown strategy, whatever else is set.
        BadParameter: for another value that is not allowed.
    """
    if candidate_strategy not in STRATEGIES:
        raise ValueError(
            f"candidate_strategy must be one of {', '.join(STRATEGIES)}, not {candidate_strategy!r}"
        )
    given = {
        "q": query, "wing": wing, "room": room, "source_file": source_file, "since": since, "before": before,
        "n_results": n_results, "max_distance": max_distance, "vector_disabled": vector_disabled,
        "candidate_strategy": candidate_strategy, "ranking": ranking,
    }  # fmt: skip
    try:
        palace = Palace.open(_database_of(palace_path))
    except MempalaceError as error:
        return {"error": error.message, "results": []}
    with palace:
        answer = run_search(palace, parse_request(given, palace.settings))
    filters = {"wing": wing, "room": room, "source_file": source_file, "since": since, "before": before}
    shaped: dict[str, Any] = {
        "query": answer["query"],
        "filters": filters,
        "total_before_filter": answer["total_before_filter"],
        "results": [_mempalace_hit(hit) for hit in answer["results"]],
    }
    if answer["fallback"]:
        shaped |= {"fallback": answer["fallback"], "fallback_reason": answer["fallback_reason"]}
    return shaped


def search(
    query: str,
    palace_path: str | os.PathLike[str],
    wing: str | None = None,
    room: str | None = None,
    n_results: int = 5,
) -> None:
    """Search as `search_memories` does and print the hits.

    Raises:
        PalaceNotFound: when there is no palace at `palace_path`.
    """
    Palace.open(_database_of(palace_path)).close()
    answer = search_memories(query, palace_path, wing, room, n_results)
    if answer.get("fallback"):
        print(f"Words only: {answer['fallback_reason']}")
    if not answer["results"]:
        print(f"No drawers found for: {query}")
    for rank, hit in enumerate(answer["results"], 1):
        print(f"[{rank}] {hit['wing']} / {hit['room']}  {hit['source_file']}")
        print(f"    similarity {hit['similarity']}  bm25 {hit['bm25_score']}  {hit['matched_via']}")
        print("\n".join(f"    {line}" for line in hit["text"].strip().splitlines()), end="\n\n")


def _database_of(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The palace database that a path means: the file itself, or the one that a MemPalace folder was imported into."""
    if not (Path(path) / CHROMA_FILE).is_file():
        return path
    found = find_palace_of(path)
    if found is None:
        raise PalaceNotFound(how_to_import(path))
    return found


def _with_terms(palace: Palace, connection: Any) -> AbstractContextManager[Any]:
    """A connection of the palace's beside one of Datasette's, which has no `drawers_fts_terms`.

    Datasette would list a connection's temporary schema on the database's page.
    """
    return nullcontext() if connection is None else limited_reader(palace)


def _answer(palace: Palace, request: SearchRequest, connection: Any, terms: Any) -> dict[str, Any]:
    started = time.perf_counter()
    # MemPalace drops no stop words unless a language is set there.
    dropped = frozenset() if request.ranking == "mempalace" else stop_words(palace.settings.stop_words)
    search = Search(palace, connection, request, read_query(request.query, dropped), None, terms)
    status, reason = embed_query(search)
    in_scope = count_in_scope(connection, request.scope)
    hits, copies, pool, more = _hits(search, in_scope)
    shown = hits[request.offset : request.offset + request.n_results]
    totals = chunk_totals(connection, {hit.row["source_file"] for hit in shown})
    best = hits[0] if hits else None
    words_only = search.vector is None
    trouble = pool.note or palace.mirror.trouble if pool.engine in ("exact", "matrix") else None
    answer = {
        "ok": True,
        "query": request.query,
        "filters": {
            **scope_as_json(request.scope, dict(zip(("since", "before"), request.dates, strict=True))),
            "max_distance": request.max_distance,
        },
        "ranking": request.ranking,
        "candidate_strategy": request.candidate_strategy,
        "n_results": request.n_results,
        "in_scope": in_scope,
        "candidates": len(pool.candidates),
        "total_before_filter": pool.fetched,
        "copies": sum(len(also) for also in copies.values()),
        "results": [
            hit_as_json(search, hit, request.offset + place, copies.get(hit.id, []), totals)
            for place, hit in enumerate(shown, 1)
        ],
        "best": {
            "score": round(best.score, 6) if best else None,
            "bm25_score": round(max((hit.bm25_score for hit in hits), default=0.0), 6),
        },
        "weights": {"similarity": palace.settings.similarity_weight, "bm25": palace.settings.bm25_weight},
        "vector_candidates": 0 if words_only else pool_size(search, request.n_results),
        "lexical_candidates": (
            pool_size(search, request.n_results) if words_only or request.candidate_strategy == "union" else 0
        ),
        "next": str(request.offset + request.n_results) if more else None,
        "engine": pool.engine,
        "vector_status": "mirror_unavailable" if trouble else status,
        "vector_note": sentences(pool.note or trouble, None if words_only else told_pending(connection)),
        "fallback": WORDS_ONLY if words_only else None,
        "fallback_reason": reason,
        "did_you_mean": near_names(connection, request.scope),
        "unknown_words": near_words(terms, search.words, thorough=not hits),
    }
    if request.explain:
        answer["explain"] = {
            "vector_candidates": pool.vectors,
            "lexical_candidates": pool.lexical,
            "both": pool.vectors + pool.lexical - pool.fetched,
            "words": list(search.words.words),
            "substrings": list(search.words.substrings),
        }
    if request.facets:
        facets_started = time.perf_counter()
        answer["facets"] = count_facets(search, pool)
        answer["timeline"] = count_days(search, pool)
        search.timed("facets", facets_started)
    search.timed("total", started)
    answer["timings_ms"] = {step: round(spent, 1) for step, spent in search.clock.items()}
    return answer


def embed_query(search: Search) -> tuple[str, str | None]:
    """Give the search its query's vector; returns the vector status and, where there is none, the reason."""
    started = time.perf_counter()
    if search.request.vector_disabled:
        return "disabled", "searching by meaning was switched off for this search"
    if not search.connection.execute("select 1 from drawer_vectors limit 1").fetchone():
        if not search.connection.execute("select 1 from drawers limit 1").fetchone():
            return "no_vectors", "the palace is empty; fill it with: datasette mempalace mine PALACE FOLDER"
        return (
            "no_vectors",
            "no drawer of this palace has a vector yet; make them with: datasette mempalace sync",
        )
    try:
        embedder = search.palace.embedder
        if not embedder.is_loaded and (missing := embedder.missing()):
            return "model_missing", missing
        seconds = search.palace.settings.time_limit_ms / 1000 / 2
        search.vector = embedder.embed_query(search.request.query, seconds)
    except EmbedderMismatch as error:
        return "other_model", _as_reason(error)
    except EmbedderUnavailable as error:
        return "model_unavailable", _as_reason(error)
    search.timed("embed", started)
    return "ok", None


def _hits(search: Search, in_scope: int) -> tuple[list[Candidate], dict[int, list[Candidate]], Pool, bool]:
    """The hits up to the end of the page asked for.

    A pool holds more than one page. Where a page lies beyond it the pool is doubled, and what is new comes after what
    was ranked before: so pages neither repeat a hit nor skip one.

    Returns:
        hits, copies folded into them by hit id, the first pool, and whether there are more.
    """
    request, size = search.request, search.request.n_results
    wanted = request.offset + request.n_results
    first = pool = make_pool(search, request.scope, size, in_scope)
    ordered: list[Candidate] = []
    while True:
        known = {candidate.id for candidate in ordered}
        ordered += [candidate for candidate in pool.candidates if candidate.id not in known]
        hits, copies = fold_copies(ordered)
        if len(hits) >= wanted or pool.exhausted:
            break
        size *= 2
        pool = make_pool(search, request.scope, size, in_scope)
    more = (len(hits) > wanted or not pool.exhausted) and wanted < search.palace.settings.max_n_results
    return hits, copies, first, more


def _mempalace_hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    """A hit as MemPalace shapes it: the passage stands in `text`, unknown names are "unknown" and "?"."""
    filed_at = hit["filed_at"] or "unknown"
    shaped = {
        "drawer_id": hit["drawer_id"],
        "text": hit["context"] or hit["text"],
        "wing": hit["wing"] if hit["wing"] is not None else "unknown",
        "room": hit["room"] if hit["room"] is not None else "unknown",
        "source_file": hit["source_file"] or "?",
        "source_path": hit["source_path"] or "",
        "created_at": filed_at,
        "filed_at": filed_at,
        "authored_at": hit["authored_at"] or filed_at,
        "content_date": hit["content_date"],
        "similarity": _rounded(hit["similarity"], 3),
        "distance": _rounded(hit["distance"], 4),
        "effective_distance": _rounded(hit["effective_distance"], 4),
        "closet_boost": round(hit["closet_boost"], 3),
        "matched_via": hit["matched_via"],
        "bm25_score": round(hit["bm25_score"], 3),
    }
    for key in ("closet_preview", "drawer_index", "total_drawers", "also_in"):
        if hit.get(key):
            shaped[key] = hit[key]
    return shaped


def _rounded(number: float | None, places: int) -> float | None:
    return None if number is None else round(number, places)


def _as_reason(error: MempalaceError) -> str:
    """An error's sentence as the end of "because ..."."""
    text = error.message.rstrip(".")
    return text[0].lower() + text[1:]
