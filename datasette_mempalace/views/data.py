"""The frame of what is answered as JSON about a palace: permission, cross-origin headers, errors as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from datasette import Response

from ..errors import MempalaceError
from ..palace import Palace
from .access import View, cors_headers, palace_of, reading_only

NEXT = {"Link": "Where the answer goes on (next), absent at its end."}

Data = Callable[[Any, Any, str, Palace], Awaitable[dict[str, Any]]]


def data_of_palace(read: Data) -> View:
    """A view that answers with JSON about the palace that the URL names, errors too.

    Args:
        read: `read(datasette, request, database, palace)` returns the answer; it may raise any MempalaceError. Its
            `next_url`, where it has one, becomes the header `Link`, too (`NEXT` in its description).
    """

    async def view(request: Any, datasette: Any) -> Any:
        headers = cors_headers(datasette)
        try:
            database, palace = await palace_of(datasette, request)
            answer = await read(datasette, request, database, palace)
        except MempalaceError as error:
            return Response.json(error.as_json(), status=error.status, headers=headers)
        if answer.get("next_url"):
            headers["Link"] = f'<{answer["next_url"]}>; rel="next"'
        return Response.json({"ok": True, **answer}, headers=headers)

    # Not functools.wraps: Datasette asks a view for its parameters, and would be shown those of `read`.
    view.__name__, view.__doc__ = read.__name__, read.__doc__
    return reading_only(view)
