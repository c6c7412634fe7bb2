"""SQL that searches never takes all of Datasette's SQL threads: its requests wait for their turn, and one thread stays free.

A SQL function holds the thread of its statement until it has its hits. So a request whose statement searches (`?sql=`, `?_where=`, a
query or a view by its name) is held back before it gets a thread, on the event loop, where waiting costs nothing.
"""

from __future__ import annotations

import asyncio
import re
import urllib.parse
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

from datasette.utils import tilde_decode
from datasette.utils.sqlite import sqlite3

from .compat import database_of, named_query
from .schema import is_palace

App = Callable[..., Awaitable[None]]

SEARCHES = re.compile(r"(?<!\w)mempalace_(search|similar|similarity)\b", re.IGNORECASE)
NAMED = re.compile(r"/([^/.]+)/([^/.]+)(\.\w+)?")

_lanes: weakref.WeakKeyDictionary[Any, asyncio.Semaphore] = weakref.WeakKeyDictionary()


def wrap(datasette: Any, app: App) -> App:
    """An ASGI application that lets SQL that searches have all of Datasette's SQL threads but one.

    Args:
        datasette: the Datasette instance; its setting `num_sql_threads` counts. With one thread or none nothing is held back.
        app: the application that answers.
    """
    threads = datasette.setting("num_sql_threads")
    if threads < 2:
        return app

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not await _searches(datasette, scope):
            return await app(scope, receive, send)
        lane = _lanes.setdefault(datasette, asyncio.Semaphore(threads - 1))
        await _in_lane(lane, app, scope, receive, send)

    return answer


async def _in_lane(lane: asyncio.Semaphore, app: App, scope: Any, receive: Any, send: Any) -> None:
    """Answer when it is this request's turn; the next one's is when the answer begins, however slowly it is then read."""
    await lane.acquire()
    is_held = True

    def let_go() -> None:
        nonlocal is_held
        if is_held:
            is_held = False
            lane.release()

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            let_go()
        await send(message)

    try:
        await app(scope, receive, sent)
    finally:
        let_go()


async def _searches(datasette: Any, scope: Any) -> bool:
    """Whether a request runs SQL that searches."""
    query = urllib.parse.unquote_plus(scope.get("query_string", b"").decode("latin-1"))
    if SEARCHES.search(query):
        return True
    path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
    base = datasette.setting("base_url")
    named = NAMED.fullmatch("/" + path[len(base) :] if path.startswith(base) else path)
    db = database_of(datasette, named[1]) if named else None
    if db is None or db.path is None:
        return False
    return bool(SEARCHES.search(await _statement(datasette, db, tilde_decode(named[2]))))  # type: ignore[index]


async def _statement(datasette: Any, db: Any, name: str) -> str:
    """The SQL behind a name in a database: a view's or a query's; nothing for a table, or where no function searches."""

    def look(connection: Any) -> str | None:
        if not is_palace(connection):
            return ""
        found = connection.execute(
            "select type, sql from sqlite_master where name = ? and type in ('table', 'view')", [name]
        ).fetchone()
        return None if found is None else found[1] if found[0] == "view" else ""

    try:
        sql = await db.execute_fn(look)
    except sqlite3.Error:  # whatever is wrong with the database, its own page says it better
        return ""
    return (await named_query(datasette, db.name, name) or "") if sql is None else sql
