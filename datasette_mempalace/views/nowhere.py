"""Addresses under the plugin's own that lead nowhere: a 404 that says what there is, to whoever may see it."""

from __future__ import annotations

from typing import Any

from datasette import Forbidden, Response

from ..compat import may_view_instance
from ..errors import MempalaceError, NotAllowed, PageNotFound
from ..palace import Palace
from .access import cors_headers, palace_of, reading_only
from .frame import error_page, page_of_palace
from .links import index_path, openapi_path, palace_path
from .menus import visible_palaces

JSON = ".json"
PAGES = ("wings", "rooms", "sources", "halls", "authors", "duplicates", "status")


@reading_only
async def no_page_of_palace(request: Any, datasette: Any) -> Any:
    """Any other address under a palace's: not found, with the pages that there are."""
    answer = _no_data if request.path.endswith(JSON) else _no_page
    return await answer(request=request, datasette=datasette)


@reading_only
async def no_page(request: Any, datasette: Any) -> Any:
    """Any other address: not found."""
    is_data = request.path.endswith(JSON)
    error: MempalaceError = PageNotFound(
        f"There is no page {request.url_vars['unknown']} here; there are {index_path(datasette)}, "
        f"{index_path(datasette)}/mcp and {openapi_path(datasette)}."
    )
    if not await visible_palaces(datasette, request.actor) and not await may_view_instance(
        datasette, request.actor
    ):
        error = NotAllowed("You may not see this instance.")
        if not is_data:
            raise Forbidden(error.message)
    return _as_json(datasette, error) if is_data else await error_page(datasette, request, error)


@page_of_palace
async def _no_page(datasette: Any, request: Any, palace: Palace, context: dict[str, Any]) -> Any:
    raise _not_found(datasette, request, context["database"])


async def _no_data(datasette: Any, request: Any) -> Any:
    try:
        database, _ = await palace_of(datasette, request)
    except MempalaceError as error:
        return _as_json(datasette, error)
    return _as_json(datasette, _not_found(datasette, request, database))


def _not_found(datasette: Any, request: Any, database: str) -> PageNotFound:
    there_are = ", ".join(PAGES[:-1])
    return PageNotFound(
        f"There is no page {request.url_vars['unknown']} here; "
        f"under {palace_path(datasette, database)} there are {there_are} and {PAGES[-1]}."
    )


def _as_json(datasette: Any, error: MempalaceError) -> Response:
    return Response.json(error.as_json(), status=error.status, headers=cors_headers(datasette))
