"""What stands around a server: the keeper from its start on, a look whether palaces were replaced, a lane for SQL that searches, and an
orderly end.

Datasette 1.0 tells plugins of its end by a hook, 0.65 does not: there the ASGI server's own message is overheard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from datasette import Response

from . import replaced, sql_lane
from .errors import MempalaceError, PalaceReplaced
from .registry import registry_of

App = Callable[..., Awaitable[None]]


def wrap(datasette: Any) -> Callable[[App], App]:
    """The ASGI wrapper: it starts the keeper with the server, holds back SQL, and closes the palaces at the end."""

    def wrapped(app: App) -> App:
        app = sql_lane.wrap(datasette, app)

        async def served(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] in ("lifespan", "http"):
                registry_of(datasette).keeper.start()
                await replaced.follow(datasette)
            if scope["type"] == "http":
                return await _answer(datasette, app, scope, receive, send)
            if scope["type"] == "lifespan":
                receive = _overhear(receive, datasette)
            await app(scope, receive, send)

        return served

    return wrapped


async def _answer(datasette: Any, app: App, scope: Any, receive: Any, send: Any) -> None:
    """Answer a request; one that reads and fails because a palace was replaced meanwhile begins again, with what is there now."""
    try:
        replaced.refuse_missing(datasette, scope["path"])
        before, failure = replaced.changes(datasette), _Failure(send)
        await app(scope, receive, failure.send)
        if not failure.held:
            return
        await replaced.follow(datasette)
        if replaced.changes(datasette) == before:
            return await failure.tell()
        replaced.refuse_missing(datasette, scope["path"])
    except PalaceReplaced as error:
        return await _tell(error, scope, send)
    if scope["method"] not in ("GET", "HEAD"):  # it may have been done in part
        return await failure.tell()
    await app(scope, receive, send)


class _Failure:
    """Holds an answer back that says that Datasette has failed; any other goes on its way.

    Args:
        send: what the server takes messages with.
    """

    def __init__(self, send: Any):
        self._send = send
        self.held: list[Any] = []

    async def send(self, message: Any) -> None:
        """Take one message of the answer."""
        if self.held or (message["type"] == "http.response.start" and message["status"] == 500):
            self.held.append(message)
        else:
            await self._send(message)

    async def tell(self) -> None:
        """Send what was held back after all."""
        for message in self.held:
            await self._send(message)


async def close(datasette: Any) -> None:
    """Close the palaces of a Datasette that ends; a second time does nothing."""
    await asyncio.to_thread(registry_of(datasette).close)


async def _tell(error: MempalaceError, scope: Any, send: Any) -> None:
    """Answer with an error before Datasette has seen the request."""
    is_page = scope["method"] in ("GET", "HEAD") and "." not in scope["path"].rpartition("/")[2]
    body = Response.text(error.message) if is_page else Response.json(error.as_json())
    body.status = error.status
    await body.asgi_send(send)


def _overhear(receive: Any, datasette: Any) -> Any:
    async def overheard() -> Any:
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            await close(datasette)
        return message

    return overheard
