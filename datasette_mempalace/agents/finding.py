"""The tools that find: search, and looking for duplicates before something is filed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..equal_texts import drawers_with_text
from ..errors import BadParameter, ended
from ..nearest import nearest
from ..palace import Palace
from ..pool import Search
from ..ranking import similarity
from ..request import SearchRequest, parse_request
from ..rows import count_in_scope
from ..scope import Scope
from ..searcher import embed_query, run_search
from ..text import clean_text
from ..words import read_query
from .bounds import Answer, bounded, cut_text, fit
from .reading import PLACE, UrlOf, row_of
from .schemas import SEARCH

RESULT_CHARACTERS = 20_000  # of the texts of all results together
SHORTEST_RESULT = 500
PREVIEW = 200
COPIES = 3
DUPLICATES = 5
UNKNOWN_WORDS = 5
LONG_PASSAGE = 1_000
COMPARED_CHARACTERS = 8_000  # of a text that is looked for: no model reads more than its beginning

_PARAMETERS = {"query": "q", "limit": "n_results"}


def search(palace: Palace, url_of: UrlOf | None, **given: Any) -> Answer:
    """The drawers that answer a question, best first.

    Args:
        palace, url_of: where, and how a drawer's page is found.
        given: checked arguments of `mempalace_search`.
    Raises:
        BadInput: for a value that the search refuses, under the agent's name for it.
    """
    parameters = {"n_results": SEARCH.properties["limit"]["default"], "context": False}
    parameters |= {_PARAMETERS.get(name, name): value for name, value in given.items()}
    try:
        request = parse_request(parameters, palace.settings, strict=True)
    except BadParameter as error:
        names = {ours: theirs for theirs, ours in _PARAMETERS.items()}
        raise BadParameter(names.get(error.parameter, error.parameter), error.value, error.allowed) from None
    found = run_search(palace, request)
    width = max(SHORTEST_RESULT, RESULT_CHARACTERS // max(1, len(found["results"])))
    results = fit(_result(hit, width, url_of) for hit in found["results"])
    following = found["next"]
    if len(results) < len(found["results"]):
        following = str(request.offset + len(results))
    answer: Answer = {
        "query": found["query"],
        "filters": {name: value for name, value in found["filters"].items() if value and name in given},
        "in_scope": found["in_scope"],
        "results": results,
        "next": following,
        "notes": list(_search_notes(found, results, following)),
    }
    answer |= {key: found[key] for key in ("fallback", "fallback_reason") if found[key]}
    return answer | ({"did_you_mean": found["did_you_mean"]} if found["did_you_mean"] else {})


# What a result tells beside its place and text; what is not known is left out.
_TOLD = (
    "rank", "source_file", "source_path", "heading", "chunk_index", "chunk_total", "filed_at", "authored_at",
    "content_date", "matched_via",
)  # fmt: skip
_NUMBERS = ("score", "similarity", "distance", "bm25_score")


def _result(hit: Mapping[str, Any], width: int, url_of: UrlOf | None) -> Answer:
    text = hit["text"]
    shown: Answer = {key: bounded(hit[key]) for key in PLACE}
    shown |= {key: bounded(hit[key]) for key in _TOLD if hit[key] is not None}
    shown |= {key: round(hit[key], 3) for key in _NUMBERS if hit[key] is not None}
    if url_of:
        shown["url"] = url_of(hit["id"])
    if hit["also_in"]:
        keys = (*PLACE, "source_path")
        shown["also_in"] = [{key: bounded(copy[key]) for key in keys} for copy in hit["also_in"][:COPIES]]
    shown["text"] = text if len(text) <= width else cut_text(text, width)
    if len(text) > width:
        shown |= {"text_cut": True, "characters": len(text), "best_passage": _plain(hit["snippet"])}
    return shown


def _search_notes(found: Answer, results: list[Answer], following: str | None) -> Iterable[str]:
    if found["fallback"] and found["vector_status"] != "disabled":
        yield f"Searched by words alone: {ended(found['fallback_reason'])}"
    if found["vector_note"]:
        yield ended(found["vector_note"])
    for dimension, names in found["did_you_mean"].items():
        for asked, near in names.items():
            offered = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
            yield f"There is no {dimension} {asked!r}{offered} Names must be exact."
    if not found["in_scope"]:
        yield "No drawer lies within these filters; see mempalace_list_wings and mempalace_list_rooms, or leave them out."
    for unknown in found["unknown_words"][:UNKNOWN_WORDS]:
        near_words = ", ".join(near["word"] for near in unknown["near"])
        yield f"No drawer has the word {unknown['word']!r}{f'; near: {near_words}' if near_words else ''}."
    cut = sum("text_cut" in result for result in results)
    if cut:
        yield f"The text of {cut} of these results is cut; mempalace_get_drawer gives it whole."
    if following:
        yield f"There may be more results: call again with next set to {following!r}."


def check_duplicate(palace: Palace, url_of: UrlOf | None, content: str, threshold: float = 0.9) -> Answer:
    """Whether a text is there already: the drawers with the same words, then those that are alike enough in meaning."""
    text = clean_text(content)[0]
    with palace.reader() as connection:
        alike, reason = _alike(palace, connection, text[:COMPARED_CHARACTERS], threshold)
        same = drawers_with_text(connection, text, DUPLICATES)
        ids = list(dict.fromkeys([*same, *alike]))[:DUPLICATES]
        matches = [_match(connection, row_id, row_id in same, alike.get(row_id), url_of) for row_id in ids]
    notes = [f"Only equal texts could be found: {ended(reason)}"] if reason else []
    if not reason and len(text) > LONG_PASSAGE:
        notes.append(
            "By meaning only the beginning of so long a text is compared, and with single drawers: "
            "ask passage by passage."
        )
    return {
        "is_duplicate": bool(matches),
        "matches": matches,
        "threshold": threshold,
        "vector_disabled": reason is not None,
        "vector_disabled_reason": reason,
        "notes": notes,
    }


def _alike(
    palace: Palace, connection: Any, text: str, threshold: float
) -> tuple[dict[int, float], str | None]:
    """The drawers nearest in meaning with their similarity, or why that cannot be known."""
    search = Search(palace, connection, SearchRequest(query=text), read_query(""), None)
    _, reason = embed_query(search)
    if search.vector is None:
        return {}, reason
    everything = Scope()
    in_scope = count_in_scope(connection, everything)
    near = nearest(palace, connection, "drawer", search.vector, everything, DUPLICATES, in_scope)
    alike = {row_id: similarity(distance) or 0.0 for row_id, distance in near.distances.items()}
    return {row_id: value for row_id, value in alike.items() if round(value, 6) >= threshold}, None


def _match(connection: Any, row_id: int, same: bool, alike: float | None, url_of: UrlOf | None) -> Answer:
    row = row_of(connection, "select * from drawers where id = ?", [row_id])
    match = {key: bounded(row[key]) for key in (*PLACE, "source_file", "filed_at")}
    match |= {
        "same_text": same,
        "similarity": 1.0 if same else round(alike or 0.0, 3),
        "text": row["text"] if len(row["text"]) <= PREVIEW else cut_text(row["text"], PREVIEW),
    }
    return match | ({"url": url_of(row_id)} if url_of else {})


def _plain(snippet: str) -> str:
    """A snippet without the marks around its found words."""
    return snippet.replace("\x01", "").replace("\x02", "")
