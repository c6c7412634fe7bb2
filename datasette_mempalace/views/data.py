"""The frame of what is answered about a palace to programs: permission, cross-origin headers, errors; and its form as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from datasette import Response

from ..errors import MempalaceError
from ..palace import Palace
from .access import View, cors_headers, palace_of, reading_only

NEXT = {"Link": "Where the answer goes on (next), absent at its end."}

Data = Callable[[Any, Any, str, Palace], Awaitable[dict[str, Any]]]
Answer = TypeVar("Answer")


def data_of_palace(read: Data) -> View:
    """A view that answers with JSON about the palace that the URL names, errors too.

    Args:
        read: `read(datasette, request, database, palace)` returns the answer; it may raise any MempalaceError. Its
            `next_url`, where it has one, becomes the header `Link`, too (`NEXT` in its description).
    """

    def respond(database: str, answer: dict[str, Any]) -> tuple[Any, str | None]:
        return Response.json({"ok": True, **answer}), answer.get("next_url")

    return of_palace(read, respond, lambda error: Response.json(error.as_json()))


def of_palace(
    read: Callable[[Any, Any, str, Palace], Awaitable[Answer]],
    respond: Callable[[str, Answer], tuple[Any, str | None]],
    refuse: Callable[[MempalaceError], Any],
) -> View:
    """A view that answers about the palace that the URL names, in any form.

    Args:
        read: `read(datasette, request, database, palace)` returns what is to be answered; it may raise any MempalaceError.
        respond: `respond(database, answer)` returns that as a response, and where it goes on.
        refuse: returns an error as a response.
    """

    async def view(request: Any, datasette: Any) -> Any:
        headers = cors_headers(datasette)
        try:
            database, palace = await palace_of(datasette, request)
            answer = await read(datasette, request, database, palace)
        except MempalaceError as error:
            response = refuse(error)
            response.status = error.status
        else:
            response, next_url = respond(database, answer)
            if next_url:
                headers["Link"] = f'<{next_url}>; rel="next"'
        response.headers |= headers
        return response

    # Not functools.wraps: Datasette asks a view for its parameters, and would be shown those of `read`.
    view.__name__, view.__doc__ = read.__name__, read.__doc__
    return reading_only(view)
