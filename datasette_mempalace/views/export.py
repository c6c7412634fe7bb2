"""A whole result set as a stream: `.csv?all=1` and `.ndjson`, page by page, up to the setting `max_n_results`.

Pages follow one another as those of `next` do. One page is in memory at a time, and a thread is held only while it is
searched. What is wrong with a request is said before the stream begins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from datasette import Response
from datasette.utils.asgi import AsgiStream

from ..errors import MempalaceError
from ..palace import Palace
from ..parameter_values import read_flag
from ..registry import run
from ..request import SearchRequest
from ..searcher import run_search
from .access import cors_headers, palace_of, parameters_of, reading_only
from .api import add_urls, as_csv, asked_by, attachment, data_links, search_csv
from .links import Links
from .operation import Operation, described
from .parameters import FILTERS, SEARCH
from .schemas import ref

PAGE = 100
LIMIT_HEADER = "X-Mempalace-Limit"
NDJSON = "application/x-ndjson; charset=utf-8"
CSV = "text/csv; charset=utf-8"
Hits = list[dict[str, Any]]


class Export:
    """The hits of a search from the first to the last that can be reached.

    Args:
        palace: the palace.
        asked: the search; pages hold its `n_results`, at least 100.

    Attributes:
        limit: the last rank.
        sent: how many hits were given so far.
        complete: at the end, whether there are no more hits than those.
        reason: why only words were searched, or None.
    """

    def __init__(self, palace: Palace, asked: SearchRequest):
        self.palace, self.limit = palace, palace.settings.max_n_results
        self.size = min(max(asked.n_results, PAGE), self.limit)
        self.asked = replace(asked, n_results=self.size, facets=False, context=False)
        self.sent, self.complete = 0, False
        self.reason: str | None = None

    def pages(self) -> Iterator[Hits]:
        """The hits, a page at a time; the first page is there even when it is empty."""
        for offset in range(self.asked.offset, max(self.limit, self.asked.offset + 1), self.size):
            found = self._page(offset)
            kept = found[: max(self.limit - offset, 0)]
            self.sent += len(kept)
            if len(found) < self.size:
                self.complete = len(kept) == len(found)
            elif offset + self.size >= self.limit:
                self.complete = len(kept) == len(found) and not self._page(offset + self.size)
            yield kept
            if len(found) < self.size:
                return

    def end(self) -> dict[str, Any]:
        """The last line of a stream of JSON."""
        message = f"All {self.sent:,} hits."
        if not self.complete:
            message = f"Stopped at the limit of {self.limit:,} hits; there are more. Narrow the search to reach them."
        return {
            "ok": True,
            "hits": self.sent,
            "complete": self.complete,
            "limit": self.limit,
            "fallback_reason": self.reason,
            "message": message,
        }

    def _page(self, offset: int) -> Hits:
        answer = run_search(self.palace, replace(self.asked, offset=offset))
        self.reason = answer["fallback_reason"]
        hits: Hits = answer["results"]
        return hits


@described(
    Operation(
        "Every hit of a search, a line each; the last line says whether these are all.",
        {"description": "Lines of JSON.", "anyOf": [ref("Hit"), ref("End"), ref("Error")]},
        (*SEARCH, FILTERS),
        media_type=NDJSON.partition(";")[0],
        headers={LIMIT_HEADER: "The last rank that can be reached."},
    )
)
@reading_only
async def export_ndjson(request: Any, datasette: Any) -> Any:
    """Every hit as a line of JSON, and a last line that says whether these are all."""
    headers = cors_headers(datasette)
    try:
        database, palace = await palace_of(datasette, request)
        export = Export(palace, await asked_by(datasette, request, database, palace))
        links = data_links(datasette, request, database, export.asked, palace, ".ndjson")
        stream = await _stream(datasette, export, links, _lines)
    except MempalaceError as error:
        return Response.json(error.as_json(), status=error.status, headers=headers)
    return _response(request, stream, {**headers, LIMIT_HEADER: str(export.limit)}, NDJSON)


@described(
    Operation(
        "The hits of a search as CSV.",
        {"type": "string"},
        (*SEARCH, FILTERS, "all"),
        media_type=CSV.partition(";")[0],
        text_errors=True,
        headers={"Content-Disposition": "A file name.", "Link": "The next page (next)."},
    )
)
@reading_only
async def export_csv(request: Any, datasette: Any) -> Any:
    """The hits as CSV: one page of them, or with `all=1` every one."""
    headers = cors_headers(datasette)
    try:
        if not read_flag("all", parameters_of(request), False):
            return await search_csv(request=request, datasette=datasette)
        database, palace = await palace_of(datasette, request)
        export = Export(palace, await asked_by(datasette, request, database, palace))
        links = data_links(datasette, request, database, export.asked, palace, ".csv")
        stream = await _stream(datasette, export, links, _rows)
    except MempalaceError as error:
        return Response.text(error.message + "\n", status=error.status, headers=headers)
    headers |= {
        "Content-Disposition": attachment(f"{database}-mempalace.csv"),
        LIMIT_HEADER: str(export.limit),
    }
    return _response(request, stream, headers, CSV)


async def _stream(
    datasette: Any, export: Export, links: Links, written: Callable[[Export, Hits, bool], str]
) -> Callable[[Any], Any]:
    """A function that writes the whole export; the first page is searched before, so that what is wrong is said."""
    texts = _texts(export, links, written)
    first = await run(datasette, next, texts, None)

    async def write(writer: Any) -> None:
        text = first
        try:
            while text is not None:
                await writer.write(text)
                text = await run(datasette, next, texts, None)
        except MempalaceError as error:
            if written is not _lines:  # in CSV nothing can say it but an end that is none
                raise
            await writer.write(_line(error.as_json()))
            return
        if written is _lines:
            await writer.write(_line(export.end()))

    return write


def _texts(export: Export, links: Links, written: Callable[[Export, Hits, bool], str]) -> Iterator[str]:
    """The export as it is written, page by page."""
    for place, hits in enumerate(export.pages()):
        add_urls({"results": hits, "next": None}, links)
        yield written(export, hits, place == 0)


def _response(request: Any, stream: Callable[[Any], Any], headers: dict[str, str], content_type: str) -> Any:
    if request.method == "HEAD":
        return Response("", headers=headers, content_type=content_type)
    return AsgiStream(stream, headers=headers, content_type=content_type)


def _lines(export: Export, hits: Hits, first: bool) -> str:
    return "".join(_line(hit) for hit in hits)


def _rows(export: Export, hits: Hits, first: bool) -> str:
    return as_csv(hits, heading=first)


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
