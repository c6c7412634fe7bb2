"""The pages: a palace's search and overview, and the list of palaces. They only translate; `searcher` searches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from datasette import Forbidden, Response

from ..compat import TABLE, may_view_instance
from ..errors import MempalaceError
from ..explore.holdings import count_drawers, holdings
from ..palace import Palace
from ..registry import open_palace, run
from ..request import SearchRequest, parse_request, request_parameters
from ..searcher import run_search
from ..status import vectors_state
from ..text import counted
from . import present
from .access import may_read_closets, parameters_of, reading_only
from .api import add_urls
from .carried import OPTIONS, WORDS, to_table
from .folding import fold_runs
from .frame import page_of_palace, render, title_of
from .links import Links, Pair, palace_path, sql_path
from .menus import visible_palaces
from .overview import overview_view, timeline_view
from .table_page import pairs_of, ranked_url
from .unknown import unknown_parameters


@reading_only
async def index_page(request: Any, datasette: Any) -> Any:
    """The palaces that the visitor may see, or straight to the only one."""
    names = await visible_palaces(datasette, request.actor)
    if len(names) == 1:
        query = f"?{request.query_string}" if request.query_string else ""
        return Response.redirect(palace_path(datasette, names[0]) + query)
    if not names and not await may_view_instance(datasette, request.actor):
        raise Forbidden("You may not see this instance.")
    palaces = [await _index_entry(datasette, name) for name in names]
    return await render(
        datasette, request, "mempalace_index.html", {"palaces": palaces, "title": "Memory palaces"}
    )


@partial(page_of_palace, with_form=True)
async def palace_page(datasette: Any, request: Any, palace: Palace, context: dict[str, Any]) -> Any:
    """A palace: its overview, and with `q` the hits."""
    database = context["database"]
    if WORDS in request.args:  # from the search box of a table page
        return Response.redirect(ranked_url(datasette, database, TABLE, pairs_of(request)))
    asked = replace(
        parse_request(parameters_of(request), palace.settings, allow_blank=True),
        closet_texts=await may_read_closets(datasette, request, database),
    )
    links = Links(datasette, database, request_parameters(asked, palace.settings))
    show = _show_hits if asked.query else _show_overview
    shown = await show(datasette, palace, asked, links)
    return shown | {"unknown_parameters": _unknown_parameters(parameters_of(request), links)}


async def _show_hits(datasette: Any, palace: Palace, asked: SearchRequest, links: Links) -> dict[str, Any]:
    context = await run(datasette, _found, palace, asked, links)
    context["sql_url"] = sql_path(datasette, links.database, asked, links.pairs)
    context["as_table_url"] = links.table(to_table(asked, links.pairs))
    if not context["hits"]:
        context["total"] = await run(datasette, count_drawers, palace)
    return context | {"template": "mempalace_search.html"}


def _found(palace: Palace, asked: SearchRequest, links: Links) -> dict[str, Any]:
    """Search, and make of it what the template reads."""
    answer = run_search(palace, replace(asked, facets=True, context=False, explain=True))
    add_urls(answer, links)
    return search_context(answer, links, asked)


async def _show_overview(
    datasette: Any, palace: Palace, asked: SearchRequest, links: Links
) -> dict[str, Any]:
    found = await run(datasette, holdings, palace, asked.scope, asked.closet_texts)
    filters = present.filters_of(asked)
    return {
        "template": "mempalace_overview.html",
        "palace": overview_view(found, asked.scope, links),
        "vectors": await run(datasette, vectors_state, palace),
        "chips": present.chips(filters, links),
        "conditions": present.conditions(filters),
        "part": not asked.scope.is_everything,
        "drawers_url": _drawers_url(asked, links),
        "by_date_url": _drawers_url(asked, links, ("_sort_desc", "filed_at")),
    }


def _drawers_url(asked: SearchRequest, links: Links, *more: Pair) -> str | None:
    """Datasette's own table with the same drawers; None where its filters cannot say which."""
    pairs = [pair for pair in to_table(asked, links.pairs) if pair[0] != WORDS]
    return None if any(name == OPTIONS for name, _ in pairs) else links.table([*pairs, *more])


def search_context(answer: dict[str, Any], links: Links, asked: SearchRequest) -> dict[str, Any]:
    """An answer as the search template reads it.

    Args:
        answer: of `run_search`, with its URLs.
        links: out of this state.
        asked: the search.
    """
    hits = [present.hit_view(hit, answer, links) for hit in answer["results"]]
    present.add_leads(hits)
    filters = present.filters_of(asked)
    unknown = _unknown_words(answer, links, asked)
    last = hits[-1]["rank"] if hits else 0
    return {
        "answer": answer,
        "query": asked.query,
        "hits": hits,
        "runs": fold_runs(hits),
        "facets": {name: present.facet_view(values) for name, values in (answer.get("facets") or {}).items()},
        "chips": present.chips(filters, links, asked.vector_disabled),
        "clear_url": links.to([("q", asked.query)]),
        "conditions": present.conditions(filters),
        "time": timeline_view(answer["timeline"], links) if answer.get("timeline") else None,
        "pool": present.pool_sentence(answer),
        "took": round(answer["timings_ms"]["total"]),
        "json_url": links.here(".json"),
        "csv_url": links.here(".csv"),
        "all_csv_url": links.here(".csv", all="1"),
        "ndjson_url": links.here(".ndjson"),
        "meaning_url": links.without("vector_disabled"),
        "again_url": links.here(),
        "chosen_words_only": asked.vector_disabled,
        "first_page_url": links.here() if asked.offset else None,
        "next_page": f"hits {last + 1:,} to {last + asked.n_results:,}",
        "nearby": _nearby(answer, links),
        "unknown_words": unknown,
        "corrected": _corrected(unknown, links, asked),
        "thousandths": present.thousandths,
    }


def _nearby(answer: dict[str, Any], links: Links) -> list[dict[str, Any]]:
    """Wings and rooms asked for that hold nothing, each with the names that are near."""
    return [
        {
            "dimension": dimension,
            "asked": asked,
            "near": [{"name": name, "url": links.replaced(dimension, asked, name)} for name in names],
        }
        for dimension, found in (answer.get("did_you_mean") or {}).items()
        for asked, names in found.items()
    ]


def _unknown_parameters(given: Mapping[str, Sequence[str]], links: Links) -> list[dict[str, Any]]:
    """Parameters that say nothing here, each with the names that are near and the address that has one of them in its place."""
    pairs = [(name, value) for name, values in given.items() for value in values]
    return [
        {
            "name": unknown["name"],
            "near": [
                {
                    "name": near,
                    "url": links.to(
                        [(near if name == unknown["name"] else name, value) for name, value in pairs]
                    ),
                }
                for near in unknown["near"]
            ],
        }
        for unknown in unknown_parameters(given)
    ]


def _unknown_words(answer: dict[str, Any], links: Links, asked: SearchRequest) -> list[dict[str, Any]]:
    """Words that no drawer has, each with the words that are near and the search with one of them in its place."""
    return [
        {
            "word": unknown["word"],
            "near": [
                near | {"url": links.with_value("q", _with_word(asked.query, unknown["word"], near["word"]))}
                for near in unknown["near"]
            ],
        }
        for unknown in answer.get("unknown_words") or []
    ]


def _corrected(unknown: list[dict[str, Any]], links: Links, asked: SearchRequest) -> dict[str, str] | None:
    """The query with each unknown word replaced by its nearest, where any has one."""
    query = asked.query
    for word in unknown:
        if word["near"]:
            query = _with_word(query, word["word"], word["near"][0]["word"])
    return {"query": query, "url": links.with_value("q", query)} if query != asked.query else None


def _with_word(query: str, old: str, new: str) -> str:
    changed = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, query, flags=re.IGNORECASE)
    return changed if changed != query else new


async def _index_entry(datasette: Any, database: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"database": database, "url": palace_path(datasette, database), "title": database}
    try:
        palace = await open_palace(datasette, database)
        entry["title"] = await title_of(datasette, database, palace)
        entry["drawers"] = counted(await run(datasette, count_drawers, palace), "drawer")
    except MempalaceError as error:
        entry["problem"] = error.message
    return entry
