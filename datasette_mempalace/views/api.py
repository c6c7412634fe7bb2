"""The search as data: JSON and CSV under the page's own path, with the page's own parameters."""

from __future__ import annotations

import csv
import io
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from datasette import Response

from ..cells import cell, written
from ..errors import MempalaceError
from ..palace import Palace
from ..registry import run
from ..request import SearchRequest, parse_request, request_parameters
from ..searcher import run_search
from ..snippets import plain
from .access import cors_headers, may_read_closets, palace_of, parameters_of, reading_only
from .links import Links, openapi_path
from .operation import Operation, described
from .parameters import FILTERS, SEARCH
from .unknown import unknown_parameters

CSV_COLUMNS = (
    "rank", "id", "drawer_id", "wing", "room", "source_file", "source_path", "chunk_index", "chunk_total", "heading",
    "score", "similarity", "distance", "effective_distance", "bm25_score", "closet_boost", "matched_via", "found_by",
    "filed_at", "authored_at", "content_date", "also_in", "url", "snippet", "text",
)  # fmt: skip


@described(
    Operation(
        "Search a palace.",
        "Answer",
        (*SEARCH, FILTERS),
        headers={"Link": "The next page (next), and this description (service-desc)."},
    )
)
@reading_only
async def search_json(request: Any, datasette: Any) -> Any:
    """The answer as JSON: `run_search`'s, with the URLs that only a server knows."""
    headers = cors_headers(datasette)
    try:
        database, palace = await palace_of(datasette, request)
        asked = await asked_by(datasette, request, database, palace)
        if "facets" not in request.args:
            asked = replace(asked, facets=True)
        links = data_links(datasette, request, database, asked, palace, ".json")
        unknown = {"unknown_parameters": unknown_parameters(parameters_of(request))}
        response = await run(
            datasette, _as_response, palace, asked, links, lambda answer: Response.json(answer | unknown)
        )
    except MempalaceError as error:
        return Response.json(error.as_json(), status=error.status, headers=headers)
    response.headers |= headers
    return response


@reading_only
async def search_csv(request: Any, datasette: Any) -> Any:
    """The hits as CSV, one row each, to be saved as a file."""
    headers = cors_headers(datasette)
    try:
        database, palace = await palace_of(datasette, request)
        asked = await asked_by(datasette, request, database, palace)
        asked = replace(asked, facets=False, context=False)
        links = data_links(datasette, request, database, asked, palace, ".csv")
        response = await run(datasette, _as_response, palace, asked, links, _csv_response)
    except MempalaceError as error:
        return Response.text(error.message + "\n", status=error.status, headers=headers)
    response.headers |= {**headers, "Content-Disposition": attachment(f"{database}-mempalace.csv")}
    return response


def _as_response(
    palace: Palace, asked: SearchRequest, links: Links, written: Callable[[dict[str, Any]], Any]
) -> Any:
    """Search and write the answer, all in one thread: a long answer takes as long to write as to find."""
    answer = run_search(palace, asked)
    add_urls(answer, links)
    response = written(answer)
    response.headers |= _links(links.datasette, answer)
    return response


def _csv_response(answer: dict[str, Any]) -> Any:
    return Response(as_csv(answer["results"]), content_type="text/csv; charset=utf-8")


def add_urls(answer: dict[str, Any], links: Links) -> None:
    """Add to an answer what a server knows: the drawers' pages, the facets' links, the next page.

    Args:
        answer: of `run_search`; changed in place.
        links: out of this state.
    """
    for hit in answer["results"]:
        hit["url"] = links.row(hit["id"])
        for copy in hit["also_in"]:
            copy["url"] = links.row(copy["id"])
    for dimension, values in (answer.get("facets") or {}).items():
        for value in values:
            value["toggle_url"] = links.toggle(dimension, value["value"])
    answer["next_url"] = links.here(next=answer["next"]) if answer["next"] else None


def as_csv(hits: list[dict[str, Any]], heading: bool = True) -> str:
    """Hits as CSV.

    Args:
        hits: with their URLs.
        heading: whether the first row names the columns.
    Returns:
        lines that a spreadsheet takes for text: no cell begins a formula.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    if heading:
        writer.writerow(CSV_COLUMNS)
    for hit in hits:
        row = {
            **hit,
            "snippet": plain(hit["snippet"]),
            "found_by": " ".join(hit["found_by"]),
            "also_in": " ".join(copy["drawer_id"] for copy in hit["also_in"]),
        }
        writer.writerow([cell(row[column]) for column in CSV_COLUMNS])
    return written(out.getvalue())


async def asked_by(datasette: Any, request: Any, database: str, palace: Palace) -> SearchRequest:
    """The search that a URL asks for; what closets say is left out for whoever may not read them."""
    asked = parse_request(parameters_of(request), palace.settings)
    return replace(asked, closet_texts=await may_read_closets(datasette, request, database))


class _AbsoluteLinks(Links):
    """Links with scheme and host, as Datasette's own JSON has them."""

    def __init__(self, request: Any, *args: Any):
        super().__init__(*args)
        self.request = request

    def to(self, *args: Any, **kwargs: Any) -> str:
        return str(self.datasette.absolute_url(self.request, super().to(*args, **kwargs)))

    def beside(self, *args: Any, **kwargs: Any) -> str:
        return str(self.datasette.absolute_url(self.request, super().beside(*args, **kwargs)))

    def row(self, row_id: int) -> str:
        return str(self.datasette.absolute_url(self.request, super().row(row_id)))

    def drawer(self, drawer: Mapping[str, Any]) -> str:
        return str(self.datasette.absolute_url(self.request, super().drawer(drawer)))

    def source(self, source_file: str) -> str:
        return str(self.datasette.absolute_url(self.request, super().source(source_file)))


def data_links(
    datasette: Any, request: Any, database: str, asked: SearchRequest, palace: Palace, extension: str
) -> Links:
    """Absolute links out of a search, as data has them."""
    pairs = request_parameters(asked, palace.settings)
    return _AbsoluteLinks(request, datasette, database, pairs, extension)


def _links(datasette: Any, answer: dict[str, Any]) -> dict[str, str]:
    """The header that leads to the next page and to the description of the API."""
    links = [f'<{answer["next_url"]}>; rel="next"'] if answer["next_url"] else []
    return {"Link": ", ".join([*links, f'<{openapi_path(datasette)}>; rel="service-desc"'])}


def attachment(name: str) -> str:
    """A file name for any database name: plain letters for old clients, the name itself for the others."""
    simple = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "_" for letter in name
    )
    return f"attachment; filename=\"{simple}\"; filename*=UTF-8''{urllib.parse.quote(name, safe='')}"
