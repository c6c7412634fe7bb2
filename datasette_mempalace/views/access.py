"""From a request to the palace that it names: methods, permission, and what is said when there is none."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from datasette import Response
from datasette.utils import add_cors_headers

from ..compat import CLOSETS, database_of, may_view_palace, may_view_table
from ..errors import NotAllowed, PalaceNotFound
from ..palace import Palace
from ..registry import is_palace_database, open_palace

View = Callable[..., Awaitable[Any]]
ALLOW = "GET, HEAD, OPTIONS"


async def palace_of(datasette: Any, request: Any) -> tuple[str, Palace]:
    """The database that the URL names and its palace.

    Raises:
        PalaceNotFound: no such database, or it is no palace.
        NotAllowed: the visitor may not see it.
        MempalaceError: it cannot be opened.
    """
    route = request.url_vars["database"]
    db = database_of(datasette, route)
    if db is None:
        raise PalaceNotFound(f"Database not found: {route}")
    if not await may_view_palace(datasette, request.actor, db.name):
        raise NotAllowed(
            f"You may not see the memory palace {db.name}: it needs view-database and view-table on drawers."
        )
    if not await is_palace_database(datasette, db):
        raise PalaceNotFound(_no_palace(db))
    return db.name, await open_palace(datasette, db.name)


async def may_read_closets(datasette: Any, request: Any, database: str) -> bool:
    """Whether the visitor may see the table of closets, and so what closets say."""
    return await may_view_table(datasette, request.actor, database, CLOSETS)


def parameters_of(request: Any) -> Mapping[str, list[str]]:
    """The URL's parameters, each with all its values, as `parse_request` reads them."""
    args = request.args  # parsed anew each time it is asked for
    return {name: args.getlist(name) for name in args}


def reading_only(view: View) -> View:
    """A view that answers GET and HEAD, a browser's question before a cross-origin GET, and nothing else."""

    @functools.wraps(view)
    async def checked(request: Any, datasette: Any) -> Any:
        if request.method == "OPTIONS" and datasette.cors:
            return Response.text("ok", headers=cors_headers(datasette))
        if request.method not in ("GET", "HEAD"):
            headers = {"Allow": ALLOW if datasette.cors else "GET, HEAD", **cors_headers(datasette)}
            return Response.text(
                "Method not allowed: searching only reads, use GET.", status=405, headers=headers
            )
        response = await view(request=request, datasette=datasette)
        if request.method == "HEAD":
            response.body = ""
        return response

    return checked


def cors_headers(datasette: Any) -> dict[str, str]:
    """The headers that let pages of other origins read an answer, where Datasette was told to send them."""
    headers: dict[str, str] = {}
    if datasette.cors:
        add_cors_headers(headers)
    return headers


def _no_palace(db: Any) -> str:
    if db.path is None:
        return f"{db.name} lies in memory and is no memory palace: a palace is a database file."
    odd = next((mark for mark in "?#" if mark in str(db.path)), None)
    if (
        odd is not None
    ):  # Datasette puts the path into a URI as it is, so that SQLite opens what stands before the mark
        return (
            f"Datasette cannot serve {db.name}: the path of its file has a {odd}, and Datasette opens the name before it instead."
            " Rename the file or its folder; the command line can use it as it is."
        )
    return f"{db.name} is no memory palace yet. To make it one, run: datasette mempalace init {db.name}.db"
