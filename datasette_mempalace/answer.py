"""A candidate as the hit that every face shows: plain JSON types under the names that the documentation promises."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from . import ranking
from .pool import Candidate, Search
from .snippets import snippet
from .text import clean_text, source_name
from .words import find_words


def hit_as_json(
    search: Search, hit: Candidate, rank: int, copies: list[Candidate], totals: Mapping[str | None, int]
) -> dict[str, Any]:
    """One hit.

    Args:
        search: the search it belongs to.
        hit: the candidate.
        rank: its place in the whole ranking, from 1.
        copies: the candidates folded into it.
        totals: of `chunk_totals`, for its source.
    Returns:
        the hit; `text` is always the drawer's own, a passage around it goes to `context`.
    """
    row = hit.row
    places = find_words(row["text"], search.words)
    counts = Counter(word for _, _, word in places)
    asked = (*search.words.words, *search.words.substrings)
    shown = {
        "rank": rank,
        **place_of(row),
        "chunk_total": totals.get(row["source_file"]),
        "heading": heading_of(row),
        "text": row["text"],
        "snippet": snippet(row["text"], places),
        "score": round(hit.score, 6),
        "similarity": rounded(hit.similarity),
        "distance": rounded(hit.distance),
        "effective_distance": rounded(hit.effective_distance),
        "bm25_score": round(hit.bm25_score, 6),
        "bm25_share": round(hit.bm25_share, 6),
        "closet_boost": hit.closet_boost,
        "closet_preview": hit.closet_preview,
        "matched_via": _matched_via(search, hit),
        "filed_at": row["filed_at"],
        "authored_at": row["authored_at"],
        "content_date": row["content_date"],
        "hall": row["hall"],
        "added_by": row["added_by"],
        "found_by": hit.found_by,
        "context": hit.passage.text if hit.passage else None,
        "context_drawer_ids": list(hit.passage.drawer_ids) if hit.passage else [],
        "drawer_index": hit.passage.drawer_index if hit.passage else None,
        "total_drawers": hit.passage.total_drawers if hit.passage else None,
        "also_in": [place_of(candidate.row) for candidate in copies],
        "words_found": [{"word": word, "count": counts[word]} for word in asked if counts[word]],
        "words_missing": [word for word in asked if not counts[word]],
    }
    if search.request.explain:
        shown["explain"] = explain_hit(search, hit)
    return shown


def explain_hit(search: Search, hit: Candidate) -> dict[str, Any]:
    """Where a hit came from and what its score is made of.

    Returns:
        `vector` and `lexical`: its rank among the candidates found that way, or null. `parts`: for "similarity" and
        "bm25" the value, the weight and what they add; they sum up to the score. `closet`: the boost and what the
        closet says, or null. `ranked_distance`: the distance that the similarity part was taken from.
    """
    settings = search.palace.settings
    parts: list[dict[str, Any]] = [{"part": "bm25", "value": hit.bm25_share, "weight": settings.bm25_weight}]
    distance = hit.effective_distance if settings.closet_boost_in_score else hit.distance
    if search.vector is None:
        parts[0]["weight"] = 1.0
    else:
        alike = ranking.similarity(distance) or 0.0
        parts.insert(0, {"part": "similarity", "value": alike, "weight": settings.similarity_weight})
    return {
        "vector": None
        if hit.vector_rank is None
        else {"rank": hit.vector_rank, "distance": rounded(hit.distance)},
        "lexical": None if hit.lexical_rank is None else {"rank": hit.lexical_rank},
        "closet": {"boost": hit.closet_boost, "says": hit.closet_preview} if hit.closet_boost else None,
        "ranked_distance": rounded(distance),
        "parts": [
            {
                "part": part["part"],
                "value": round(part["value"], 6),
                "weight": part["weight"],
                "adds": round(part["value"] * part["weight"], 6),
            }
            for part in parts
        ],
    }


def _matched_via(search: Search, hit: Candidate) -> str:
    if search.vector is None:
        return "bm25_sqlite"
    return "drawer+closet" if hit.closet_boost else "drawer"


def closet_helped(hit: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether a closet had a part in how a hit was found or scored, as readers are told: near ones are noted without it, too."""
    if not hit["closet_boost"]:
        return False
    return answer["candidate_strategy"] == "vector" or (
        hit["similarity"] is not None and boost_counts(hit, answer)
    )


def boost_counts(hit: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether the closet's boost went into the score, and not only into the choice of candidates: a setting."""
    if not hit["closet_boost"]:
        return False
    weights = answer["weights"]
    plain = weights["similarity"] * hit["similarity"] + weights["bm25"] * hit["bm25_share"]
    return abs(plain - hit["score"]) > 0.0015


def place_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Which drawer a row is and where it lies."""
    return {
        "id": row["id"],
        "drawer_id": row["drawer_id"],
        "wing": row["wing"],
        "room": row["room"],
        "source_file": source_name(row["source_file"]),
        "source_path": row["source_file"],
        "chunk_index": row["chunk_index"],
    }


def heading_of(row: Mapping[str, Any]) -> str | None:
    """The heading that a drawer stands under; what any writer has left in `metadata` that holds none counts as none."""
    try:
        metadata = json.loads(row["metadata"] or "{}")
    except (ValueError, RecursionError):
        return None
    heading = metadata.get("heading") if isinstance(metadata, dict) else None
    return clean_text(heading)[0] if isinstance(heading, str) else None


def chunk_totals(connection: Any, sources: Iterable[str | None]) -> dict[str | None, int]:
    """How many drawers some sources have; what is no source is left out."""
    rows = connection.execute(
        "select source_file, count(*) from drawers where source_file in (select value from json_each(?))"
        " group by source_file",
        [json.dumps([source for source in sources if source])],
    )
    return dict(rows.fetchall())


def rounded(number: float | None) -> float | None:
    """A number as an answer shows it; None stays None."""
    return None if number is None else round(number, 6)
