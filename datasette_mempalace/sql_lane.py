"""SQL that searches never takes all of Datasette's SQL threads: its requests wait for their turn, and one thread stays free.

A SQL function holds the thread of its statement until it has its hits. So a request whose address names what searches (one of
our functions, or a view or query that uses one) is held back before it gets a thread, on the event loop, where waiting costs
nothing. Our own pages are not: they search in threads of their own.
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
OUR_PAGES = "-/mempalace"
# In a quoted name such a mark stands twice, so that names are compared without them.
QUOTES = str.maketrans("", "", "\"'`")
LOOK_SECONDS = 0.001  # for what a client has already said

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
    has_waited = lane.locked()
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
        client = _Client(receive)
        if not (has_waited and await client.has_left()):
            await app(scope, client.receive, sent)
    finally:
        let_go()


class _Client:
    """Who waits for an answer: nobody searches for one who has left in the meantime.

    Args:
        receive: what the server hands on from it.
    """

    def __init__(self, receive: Any):
        self._receive = receive
        self._said: list[Any] = []

    async def receive(self) -> Any:
        """Its next message, as the application wants it."""
        return self._said.pop(0) if self._said else await self._receive()

    async def has_left(self) -> bool:
        """Whether it has closed its connection; to be asked before anything was received."""
        more = True
        while more:
            try:
                message = await asyncio.wait_for(self._receive(), LOOK_SECONDS)
            except asyncio.TimeoutError:
                return False
            if message["type"] == "http.disconnect":
                return True
            self._said.append(message)
            # The rest of a long body is not gathered here; who sends one is still there.
            more = not message.get("more_body")
        return False


async def _searches(datasette: Any, scope: Any) -> bool:
    """Whether a request's address names what searches."""
    query = urllib.parse.unquote_plus(scope.get("query_string", b"").decode("latin-1"))
    path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
    route, _, rest = path.removeprefix(datasette.setting("base_url")).lstrip("/").partition("/")
    if rest.startswith(OUR_PAGES):
        return False
    if SEARCHES.search(query):
        return True
    db = database_of(datasette, route.partition(".")[0])
    if db is None or db.path is None:
        return False
    statements = await _statements(db)
    name = tilde_decode(rest.partition("/")[0].partition(".")[0])
    if statements and name and name not in statements:
        query += " " + (await named_query(datasette, db.name, name) or "")
    address = f"{urllib.parse.unquote(tilde_decode(rest))} {query}"
    return bool(SEARCHES.search(address) or _searching(statements).search(address.translate(QUOTES)))


async def _statements(db: Any) -> dict[str, str]:
    """The tables and views of a palace, with the SQL of the views; nothing of another database."""

    def look(connection: Any) -> dict[str, str]:
        if not is_palace(connection):
            return {}
        query = """
            select name, case type when 'view' then sql else '' end from sqlite_master
            where type in ('table', 'view')
        """
        return dict(connection.execute(query).fetchall())

    try:
        return dict(await db.execute_fn(look))
    except sqlite3.Error:  # whatever is wrong with the database, its own page says it better
        return {}


def _searching(statements: dict[str, str]) -> re.Pattern[str]:
    """What finds the views that search, by themselves or through other views, in a text."""
    found: set[str] = set()
    statements = {name.translate(QUOTES): sql.translate(QUOTES) for name, sql in statements.items()}
    statements.pop("", None)
    names = SEARCHES
    while more := {name for name, sql in statements.items() if name not in found and names.search(sql)}:
        found |= more
        names = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, found))})(?!\w)", re.IGNORECASE)
    return names
