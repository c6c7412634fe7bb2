"""Clusters of copies, as a page, JSON and CSV. It only translates; `datasette_mempalace.duplicates` finds them."""

from __future__ import annotations

from typing import Any

from ..config import Settings
from ..duplicates import run_duplicates
from ..duplicates.request import MIN_CHARACTERS, PARAMETERS, THRESHOLD, DuplicatesRequest, parse_duplicates
from ..palace import Palace
from ..registry import run
from ..request import request_parameters
from ..text import shown_similarity
from . import present
from .access import parameters_of
from .csv_data import Table, as_csv, csv_of_palace
from .data import NEXT, data_of_palace
from .frame import page_of_palace, sheet_url
from .links import Links, Pair
from .operation import Operation, described
from .parameters import FILTERS
from .statements import of_equal_texts

DUPLICATES = "/duplicates"
FIELDS = ("threshold", "min_characters", "wing", "room")
_DESCRIBED_AS = {"n_results": "clusters", "next": "next_drawers"}
COLUMNS = (
    "cluster", "size", "kind", "id", "drawer_id", "url", "wing", "room", "source_file", "source_path", "chunk_index",
    "chunk_total", "heading", "filed_at", "same_text", "similarity",
)  # fmt: skip
SHOWN = 8  # members of a cluster before the rest is folded


@page_of_palace
async def duplicates_page(datasette: Any, request: Any, palace: Palace, context: dict[str, Any]) -> Any:
    """The clusters, what was looked at, and how to go on."""
    given = parameters_of(request)
    asked = parse_duplicates(given, palace.settings)
    answer = await run(datasette, run_duplicates, palace, asked)
    links = Links(datasette, context["database"], pairs_of(asked, palace.settings), DUPLICATES)
    hidden = [pair for pair in links.pairs if pair[0] not in (*FIELDS, "next")]
    first = {name: next((value for value in given.get(name, []) if value), "") for name in FIELDS}
    return {
        "template": "mempalace_duplicates.html",
        "drawer_css": sheet_url(datasette, "drawer.css"),
        "answer": answer,
        "clusters": [_cluster(cluster, links) for cluster in answer["clusters"]],
        "fields": first | {"threshold": f"{asked.threshold:g}", "min_characters": asked.min_characters},
        "hidden": hidden,
        "action": links.to([]),
        "conditions": present.conditions({**answer["filters"], "columns": asked.search.scope.filters}),
        **{
            f"{kind}_url": links.to([*links.pairs, *_next(asked.after)], f"{DUPLICATES}.{kind}")
            for kind in ("json", "csv")
        },
        "sql_url": links.sql(of_equal_texts(asked.search.scope)),
        "next_url": links.here(next=answer["next"]) if answer["next"] else None,
        "first_url": links.here() if asked.after else None,
        "exact_url": links.with_value("threshold", "1") if asked.threshold < 1 else None,
        "more_url": links.with_value("n_results", str(min(answer["found"], palace.settings.max_n_results))),
    }


_PARAMETERS = (*(_DESCRIBED_AS.get(name, name) for name in PARAMETERS), FILTERS)


@described(Operation("Clusters of drawers that say the same.", "Duplicates", _PARAMETERS, headers=NEXT))
@data_of_palace
async def duplicates_json(datasette: Any, request: Any, database: str, palace: Palace) -> dict[str, Any]:
    """The page as JSON."""
    return await _answer(datasette, request, database, palace, ".json")


@described(as_csv("The same clusters as CSV, a row for each drawer that is listed.", _PARAMETERS, NEXT))
@csv_of_palace
async def duplicates_csv(datasette: Any, request: Any, database: str, palace: Palace) -> Table:
    """The clusters as CSV: their drawers, cluster by cluster."""
    answer = await _answer(datasette, request, database, palace, ".csv")
    rows = [
        {"cluster": number, "size": cluster["size"], "kind": cluster["kind"], **member}
        | {"same_text": int(member["same_text"])}
        for number, cluster in enumerate(answer["clusters"], 1)
        for member in cluster["members"]
    ]
    return Table("duplicates", COLUMNS, rows, answer["next_url"])


async def _answer(
    datasette: Any, request: Any, database: str, palace: Palace, extension: str
) -> dict[str, Any]:
    """The clusters that a URL asks for, with whole URLs."""
    asked = parse_duplicates(parameters_of(request), palace.settings)
    answer = await run(datasette, run_duplicates, palace, asked)
    links = Links(datasette, database, pairs_of(asked, palace.settings), DUPLICATES + extension)
    for cluster in answer["clusters"]:
        for member in cluster["members"]:
            member["url"] = str(datasette.absolute_url(request, links.drawer(member)))
    answer["next_url"] = None
    if answer["next"]:
        answer["next_url"] = str(datasette.absolute_url(request, links.here(next=answer["next"])))
    return answer


def pairs_of(asked: DuplicatesRequest, settings: Settings) -> list[Pair]:
    """The question as parameters, `next` and what is default left out; `parse_duplicates` reads them back."""
    pairs = [pair for pair in request_parameters(asked.search, settings) if pair[0] != "n_results"]
    defaults: dict[str, float] = {"n_results": parse_duplicates({}, settings).search.n_results}
    defaults |= {"threshold": THRESHOLD, "min_characters": MIN_CHARACTERS}
    own = {
        "threshold": asked.threshold,
        "min_characters": asked.min_characters,
        "n_results": asked.search.n_results,
    }
    return [*pairs, *((name, f"{value:g}") for name, value in own.items() if value != defaults[name])]


def _next(after: int) -> list[Pair]:
    return [("next", str(after))] if after else []


def _cluster(cluster: dict[str, Any], links: Links) -> dict[str, Any]:
    """A cluster for the template; the first member is the one that the others are held against."""
    members = [
        {
            "url": links.drawer(member),
            "label": member["heading"] or present.source_label(member),
            "source": present.source_label(member) if member["heading"] else None,
            "wing": member["wing"],
            "room": member["room"],
            "wing_url": links.place(member["wing"]),
            "room_url": links.place(member["wing"], member["room"]),
            "filed": present.day(member["filed_at"]),
            "same_text": member["same_text"],
            "similarity": shown_similarity(member["similarity"], member["same_text"]),
        }
        for member in cluster["members"]
    ]
    return {
        **cluster,
        "first": members[0],
        "members": members[1:SHOWN],
        "folded": members[SHOWN:],
        "not_listed": cluster["size"] - len(members),
        "snippet": cluster["snippet"],
    }
