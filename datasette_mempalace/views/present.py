"""An answer in a reader's words: titles, places, days, and the sum that explains a rank.

Pure: from plain values to plain values for the templates, which escape every text.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from datetime import date
from typing import Any

from ..answer import boost_counts, closet_helped
from ..filters import WITHOUT_VALUE, Filter
from ..request import SearchRequest
from ..text import chunk_label, counted, source_name
from .links import Links, filter_pair
from .snippets import parts

SHOWN = 8  # values of a facet before "n more"
COPIES = 3
NAMES = (("wing", "wing"), ("room", "room"), ("source_file", "source"))
DATES = {"filed_at": "filed", "authored_at": "written", "content_date": "dated"}
OPERATORS = {
    "exact": "is", "not": "is not", "contains": "contains", "notcontains": "does not contain",
    "startswith": "starts with", "endswith": "ends with", "gt": ">", "gte": "≥", "lt": "<", "lte": "≤",
    "like": "is like", "notlike": "is not like", "glob": "matches", "in": "is one of", "notin": "is none of",
    "date": "is on", "isnull": "is not set", "notnull": "is set", "isblank": "is blank", "notblank": "is not blank",
}  # fmt: skip
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def day(moment: str | None) -> dict[str, str] | None:
    """A moment as a day for people.

    Returns:
        `iso` for the machine and `text` such as "29 Jan 2026"; a text that is no date stays as it is.
    """
    if not moment:
        return None
    try:
        found = date.fromisoformat(str(moment)[:10])
    except ValueError:
        return {"iso": "", "text": moment}
    return {"iso": found.isoformat(), "text": f"{found.day} {_MONTHS[found.month - 1]} {found.year}"}


def source_label(drawer: dict[str, Any]) -> str:
    """A drawer's source and its place in it, or its number where it has none."""
    named = [drawer.get("source_file"), chunk_label(drawer.get("chunk_index"), drawer.get("chunk_total"))]
    return ", ".join(name for name in named if name) if named[0] else f"Drawer {drawer['id']}"


def hit_view(hit: dict[str, Any], answer: dict[str, Any], links: Links) -> dict[str, Any]:
    """One hit for the template.

    Args:
        hit: as `run_search` gives it, with its URLs.
        answer: the answer it stands in.
        links: out of this state.
    """
    label = source_label(hit)
    written = day(hit["authored_at"] or hit["content_date"])
    filed = day(hit["filed_at"])
    copies = [{"url": links.drawer_from_here(copy), "label": source_label(copy)} for copy in hit["also_in"]]
    return {
        "rank": hit["rank"],
        "id": hit["id"],
        "url": links.drawer_from_here(hit),
        "wing": hit["wing"],
        "room": hit["room"],
        "wing_url": links.place(hit["wing"]),
        "room_url": links.place(hit["wing"], hit["room"]),
        "title": hit["heading"] or label,
        "source": hit["source_file"] if hit["heading"] else None,
        "source_url": links.to([*links.pairs, ("source_file", hit["source_path"])])
        if hit["source_path"]
        else None,
        "chunk": chunk_label(hit["chunk_index"], hit["chunk_total"]),
        "source_path": hit["source_path"],
        "filed": filed,
        "written": written if written != filed else None,
        "parts": parts(hit["snippet"]),
        "copies": copies[:COPIES],
        "more_copies": copies[COPIES:],
        "scores": scores(hit, answer),
        "found": found(hit, answer),
        "places": places(hit, answer),
        "closet_says": ((hit.get("explain") or {}).get("closet") or {}).get("says"),
        "closet_chose": answer["candidate_strategy"] == "vector",
        "words_found": hit["words_found"],
        "words_missing": hit["words_missing"],
    }


def found(hit: dict[str, Any], answer: dict[str, Any]) -> str:
    """How a hit came among the candidates, as a sentence; its closet is named only where it had a part in that or in the score."""
    ways = [name for name, way in (("meaning", "vector"), ("words", "lexical")) if way in hit["found_by"]]
    how = " and ".join(ways) if len(ways) != 1 else f"{ways[0]} alone"
    return f"Found by {how or 'its closet'}" + (", lifted by a closet" if closet_helped(hit, answer) else "")


def places(hit: dict[str, Any], answer: dict[str, Any]) -> str:
    """A hit's place among the candidates of each kind, as a sentence; "" where that was not asked for."""
    mine, pool = hit.get("explain"), answer.get("explain")
    if not mine or not pool:
        return ""
    said = [
        f"number {mine[way]['rank']:,} of {pool[f'{way}_candidates']:,} by {name}"
        for name, way in (("meaning", "vector"), ("words", "lexical"))
        if mine[way]
    ]
    return f"Before the ranking: {joined(said)}." if said else ""


def scores(hit: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """A hit's numbers in thousandths, so that the parts add up to the score as they are printed."""
    view: dict[str, Any] = {
        "words_only": hit["similarity"] is None,
        "total": round(1000 * hit["score"]),
        "score": f"{hit['score']:.3f}",
        "bm25": f"{hit['bm25_score']:.2f}",
        "bm25_best": f"{answer['best']['bm25_score']:.2f}",
        "bm25_share": min(max(hit["bm25_share"], 0.0), 1.0),
        "by_meaning": "vector" in hit["found_by"],
        "by_words": "lexical" in hit["found_by"],
        "closet_boost": f"{hit['closet_boost']:.2f}" if hit["closet_boost"] else None,
    }
    if view["words_only"]:
        return view
    boosted = boost_counts(hit, answer)
    closeness = max(0.0, 1 - hit["effective_distance"]) if boosted else hit["similarity"]
    meaning = min(round(1000 * answer["weights"]["similarity"] * closeness), view["total"])
    words = view["total"] - meaning
    return view | {
        "similarity": f"{hit['similarity']:.3f}",
        "similarity_share": hit["similarity"],
        "closeness": f"{closeness:.3f}",
        "boost_counts": boosted,
        "distance": f"{hit['distance']:.3f}",
        "meaning_adds": meaning,
        "words_adds": words,
        "similarity_weight": f"{answer['weights']['similarity']:g}",
        "bm25_weight": f"{answer['weights']['bm25']:g}",
        "best": round(1000 * answer["best"]["score"]),
    }


def add_leads(hits: list[dict[str, Any]]) -> None:
    """Say of each hit how far it is ahead of the one that follows on the same page, and by which part."""
    for hit, follower in itertools.pairwise(hits):
        mine, theirs = hit["scores"], follower["scores"]
        if mine["words_only"] or theirs["words_only"]:
            continue
        hit["lead"] = {
            "rank": follower["rank"],
            "score": thousandths(mine["total"] - theirs["total"]),
            "meaning": signed(mine["meaning_adds"] - theirs["meaning_adds"]),
            "words": signed(mine["words_adds"] - theirs["words_adds"]),
        }


def thousandths(number: int) -> str:
    """714 as "0.714"."""
    return f"{number / 1000:.3f}"


def signed(number: int) -> str:
    """-4 as "−0.004", with a minus that is as wide as the plus."""
    return f"{number / 1000:+.3f}".replace("-", "−")


def facet_view(values: list[dict[str, Any]]) -> dict[str, Any]:
    """A facet for the template: what is chosen comes first and is never folded away."""
    ordered = sorted(values, key=lambda value: not value["selected"])
    shown = max(SHOWN, sum(value["selected"] for value in values))
    return {
        "count": sum(value["count"] > 0 for value in values),
        "first": ordered[:shown],
        "more": ordered[shown:],
    }


def filters_of(asked: SearchRequest) -> dict[str, Any]:
    """The filters in force, dates as they were given."""
    scope = asked.scope
    return {
        "wing": list(scope.wings),
        "room": list(scope.rooms),
        "source_file": list(scope.source_files),
        "since": asked.dates[0],
        "before": asked.dates[1],
        "date_column": scope.date_column,
        "columns": scope.filters,
        "ids": None if scope.ids is None else len(scope.ids),
        "max_distance": asked.max_distance,
    }


def chips(filters: dict[str, Any], links: Links, words_only: bool = False) -> list[dict[str, Any]]:
    """One chip for each filter in force.

    Args:
        filters: as an answer has them.
        links: out of this state.
        words_only: whether meaning was left out on request.
    Returns:
        for each its name, value, the state without it, and what following that link does.
    """
    listed = []
    for dimension, name in NAMES:
        for value in filters[dimension]:
            text = source_name(value) if dimension == "source_file" else value
            without = f"whether or not there is a {name}" if value is None else f"without the {name} {text}"
            listed.append(
                _chip(name, text, links.without_pair(filter_pair(dimension, value)), without, value)
            )
    for name, other in (("since", "before"), ("before", "since")):
        if filters[name]:
            gone = (name,) if filters[other] else (name, "date_column")
            label = f"{DATES[filters['date_column']]} {name}"
            listed.append(_chip(label, day_or_time(filters[name]), links.without(*gone)))
    for condition in filters["columns"]:
        clause, value = column_clause(condition)
        listed.append(_chip(clause, value, links.without_pair((condition.name, condition.value))))
    if filters["ids"] is not None:
        listed.append(_chip("among", counted(filters["ids"], "drawer"), links.without("ids")))
    if filters["max_distance"]:
        listed.append(
            _chip("farthest distance", f"{filters['max_distance']:g}", links.without("max_distance"))
        )
    if words_only:
        url = links.without("vector_disabled")
        listed.append(_chip("ranked by", "words only", url, "by meaning too"))
    return listed


def _chip(
    name: str, value: str | None, url: str, without: str = "", title: str | None = ""
) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "url": url,
        "without": without or f"without “{name} {value}”",
        "title": title if title != value else "",
    }


def day_or_time(moment: str) -> str:
    """A bound as it was given: a day in words, a time to the letter."""
    shown = day(moment) if len(moment) == 10 else None
    return shown["text"] if shown else moment


def conditions(filters: dict[str, Any]) -> str:
    """The filters as the end of a heading: "where wing is a or b and room is c"; "" without any."""
    clauses = []
    for dimension, name in NAMES:
        values = [value if value is not None else "not set" for value in filters[dimension]]
        if values:
            clauses.append(f"{name} is {' or '.join(values)}")
    clauses += [
        f"{DATES[filters['date_column']]} {name} {day_or_time(filters[name])}"
        for name in ("since", "before")
        if filters[name]
    ]
    clauses += [" ".join(column_clause(condition)) for condition in filters["columns"]]
    if filters["ids"] is not None:
        clauses.append(f"drawer is one of {filters['ids']:,}")
    return f" where {joined(clauses)}" if clauses else ""


def column_clause(condition: Filter) -> tuple[str, str]:
    """A column filter in words: ("hall is", "facts"), ("hall", "is not set")."""
    says = OPERATORS[condition.operator]
    if condition.operator in WITHOUT_VALUE:
        return condition.column, says
    value = condition.value
    if condition.operator in ("in", "notin"):
        value = ", ".join(map(str, json.loads(value)))
    return f"{condition.column} {says}", value


def pool_sentence(answer: dict[str, Any]) -> str:
    """What was searched: the scope, and how many candidates each way was asked for."""
    near, worded = answer["vector_candidates"], answer["lexical_candidates"]
    ways = []
    if near:
        ways.append(f"the {near:,} nearest in meaning")
    if worded:
        ways.append(f"the {worded:,} best in words")
    sentence = f"Of {counted(answer['in_scope'], 'drawer')} in scope"
    return sentence + (f": {' and '.join(ways)}{', united' if len(ways) > 1 else ''}." if ways else ".")


def joined(items: Iterable[str]) -> str:
    """a, b and c."""
    listed = list(items)
    return " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)
