"""The drawers that are like one, as a page and as JSON. It only translates; `datasette_mempalace.similar` finds them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..config import Settings
from ..palace import Palace
from ..registry import run
from ..request import request_parameters
from ..similar import PARAMETERS, SimilarRequest, parse_similar, run_similar
from . import present
from .access import parameters_of
from .data import data_of_palace
from .drawer_look import REACHES, reach_of
from .drawer_text import similar_sql, similar_view
from .frame import page_of_palace, sheet_url
from .links import Links, Pair
from .operation import Operation, described
from .parameters import FILTERS

SIZES = (10, 20, 50, 100)
SIMILAR = "/similar"


@page_of_palace
async def similar_page(datasette: Any, request: Any, palace: Palace, context: dict[str, Any]) -> Any:
    """The drawers nearest to one, and where else to look for them."""
    asked = parse_similar(parameters_of(request), palace.settings)
    answer = await run(datasette, run_similar, palace, asked)
    drawer = answer["drawer"]
    links = Links(datasette, context["database"], pairs_of(asked, palace.settings), SIMILAR)
    sizes = sorted(
        {*(size for size in SIZES if size <= palace.settings.max_n_results), asked.search.n_results}
    )
    scoped = [(reach, replace(asked.search, scope=reach_of(drawer, reach))) for reach in REACHES]
    return {
        "template": "mempalace_similar.html",
        "drawer_css": sheet_url(datasette, "drawer.css"),
        "answer": answer,
        "drawer_label": present.source_label(drawer),
        "drawer_url": links.drawer(drawer),
        "hits": [similar_view(hit, links, links.drawer(hit)) for hit in answer["results"]],
        "reaches": [
            {
                "label": {"everywhere": "everywhere", "wing": "in its wing", "room": "in its room"}[reach],
                "url": links.to(pairs_of(replace(asked, search=search), palace.settings)),
                "current": asked.search.scope == search.scope,
            }
            for reach, search in scoped
        ],
        "first": {
            "current": asked.other_sources_first,
            "url": links.to(
                pairs_of(replace(asked, other_sources_first=not asked.other_sources_first), palace.settings)
            ),
        },
        "sizes": [
            {
                "label": f"{size:,}",
                "url": links.with_value("n_results", str(size)),
                "current": size == asked.search.n_results,
            }
            for size in sizes
        ],
        "json_url": links.to(links.pairs, SIMILAR + ".json"),
        "sql_url": similar_sql(links, drawer["drawer_id"], asked.search.n_results)
        if context["may_run_sql"] and asked.search.scope.is_everything and asked.other_sources_first
        else None,
    }


@described(Operation("The drawers most like one.", "Similar", ("of_drawer", *PARAMETERS[1:], FILTERS)))
@data_of_palace
async def similar_json(datasette: Any, request: Any, database: str, palace: Palace) -> dict[str, Any]:
    """The page as JSON."""
    asked = parse_similar(parameters_of(request), palace.settings)
    answer = await run(datasette, run_similar, palace, asked)
    links = Links(datasette, database, [])
    for drawer in (answer["drawer"], *answer["results"]):
        drawer["url"] = str(datasette.absolute_url(request, links.drawer(drawer)))
    return answer


def pairs_of(asked: SimilarRequest, settings: Settings) -> list[Pair]:
    """The question as parameters, what is default left out; `parse_similar` reads them back."""
    pairs = [("drawer_id", str(asked.drawer)), *request_parameters(asked.search, settings)]
    return pairs if asked.other_sources_first else [*pairs, ("other_sources_first", "0")]
