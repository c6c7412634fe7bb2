"""Datasette's own table pages filtered by a search: `/{database}/drawers?_mempalace=words`.

The rows are those of the best hits (setting `table_hits`), in the table's order, and everything a table page can do
goes on working: column filters, facets, sorting, CSV, JSON, streams. Works for the table of drawers, and for
every table or view that the setting `tables` names with its column of drawers.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from datasette import Forbidden
from datasette.filters import FilterArguments
from datasette.utils import escape_sqlite
from datasette.views.base import DatasetteError

from ..change_log import last_change
from ..compat import TABLE, may_view_palace
from ..config import Settings
from ..errors import BadInput, BadParameter, MempalaceError
from ..palace import Palace
from ..registry import is_palace_database, open_palace, run, settings_of
from ..request import SearchRequest, parse_request
from ..searcher import run_search
from .carried import OPTIONS, WORDS, narrowing_filters, options_of, said, to_search
from .links import palace_path

Pair = tuple[str, str]
REMEMBERED = 32
WORDS_ONLY_SECONDS = 10.0  # the model may come at any moment
SHOWN = 200


@dataclass(frozen=True)
class Found:
    """The drawers that a search has found.

    Attributes:
        ids: the hits' rows; what was folded into them is not among them.
        drawers: row and lasting name of the hits and of their copies.
        reason: why only words were searched, or None.
        until: when it must be searched again, by `time.monotonic`.
    """

    ids: tuple[int, ...]
    drawers: tuple[tuple[int, str], ...]
    reason: str | None
    until: float


class Remembered:
    """The last searches of one palace: a page asks several times for the same, a stream once for every page."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[int, SearchRequest], Found] = OrderedDict()

    def get(self, palace: Palace, asked: SearchRequest) -> Found:
        """What a search finds, searched again only when the palace has changed."""
        with palace.reader() as connection:
            key = (last_change(connection), asked)
        with self._lock:
            found = self._found.get(key)
            if found is not None and time.monotonic() < found.until:
                self._found.move_to_end(key)
                return found
        found = _search(palace, asked)
        with self._lock:
            self._found[key] = found
            while len(self._found) > REMEMBERED:
                self._found.popitem(last=False)
        return found


_remembered: weakref.WeakKeyDictionary[Palace, Remembered] = weakref.WeakKeyDictionary()
_remembered_lock = threading.Lock()


def filters_from_request(request: Any, database: str, table: str, datasette: Any) -> Any:
    """The condition that a table page's `_mempalace` adds to it; None where nothing is asked for.

    Args:
        request, database, table, datasette: as Datasette's hook of this name gives them.
    Returns:
        an async function that gives Datasette's `FilterArguments`.
    """
    if not any(value.strip() for value in request.args.getlist(WORDS)):
        return None

    async def inner() -> Any:
        db = datasette.databases.get(database)
        if db is None or not await is_palace_database(datasette, db):
            return None
        if not await may_view_palace(datasette, request.actor, database):
            raise Forbidden(
                f"You may not search {database}: it needs view-database and view-table on {TABLE}."
            )
        try:
            palace = await open_palace(datasette, database)
            column = drawer_column(palace.settings, table)
            options = options_of(_once(request, OPTIONS))
            asked = _asked(request, palace.settings, table, options)
            found, numbers = await run(datasette, _find, palace, asked, table, column)
        except MempalaceError as error:
            raise DatasetteError(error.message, title=error.title, status=error.status) from None
        values: list[Any] = [row_id if numbers else name for row_id, name in found.drawers]
        if table == TABLE:
            values = list(found.ids)
        return FilterArguments(
            [f"{escape_sqlite(column)} in (select value from json_each(:mempalace_ids))"],
            params={"mempalace_ids": json.dumps(values, ensure_ascii=False)},
            human_descriptions=[_description(asked, options, found, table)],
        )

    return inner


def drawer_column(settings: Settings, table: str) -> str:
    """The column of a table that says which drawer a row is about.

    Raises:
        BadInput: when the table has none, as far as the settings tell.
    """
    if table == TABLE:
        return "id"
    if table not in settings.tables:
        raise BadInput(
            f"{WORDS} cannot filter {table}: the setting tables of datasette-mempalace does not name its column of drawers."
        )
    return str(settings.tables[table])


async def search_box(datasette: Any, request: Any, database: str, table: str) -> dict[str, Any] | None:
    """The search box of a table page.

    Args:
        datasette, request, database, table: the page.
    Returns:
        what `_mempalace_table.html` shows; None where this table cannot be searched, or by this visitor.
    """
    db = datasette.databases.get(database)
    if db is None or not await is_palace_database(datasette, db):
        return None
    if table != TABLE and table not in settings_of(datasette, database).tables:
        return None
    if not await may_view_palace(datasette, request.actor, database):
        return None
    pairs = pairs_of(request)
    words = request.args.get(WORDS) or ""
    kept = [(name, value) for name, value in pairs if name not in (WORDS, "_next")]
    rest = [(name, value) for name, value in kept if name != OPTIONS]
    here = str(datasette.urls.table(database, table))
    return {
        "words": words or request.args.get("_search") or "",
        "filtered": bool(words.strip()),
        "hidden": kept,
        "of_drawers": table == TABLE,
        "table_url": here,
        "search_url": palace_path(datasette, database),
        "ranked_url": ranked_url(datasette, database, table, pairs),
        "all_url": f"{here}?{urllib.parse.urlencode(rest)}" if rest else here,
    }


def ranked_url(datasette: Any, database: str, table: str, pairs: list[Pair]) -> str:
    """The search page with the words and filters of a table page."""
    try:
        state = to_search(pairs, with_filters=table == TABLE)
    except BadParameter:  # the page itself says so
        state = []
    query = urllib.parse.urlencode(state)
    return palace_path(datasette, database) + (f"?{query}" if query else "")


def pairs_of(request: Any) -> list[Pair]:
    """A request's parameters, in their order."""
    args = request.args  # parsed anew each time it is asked for
    return [(name, value) for name in args for value in args.getlist(name)]


def _once(request: Any, name: str) -> str | None:
    given = [value for value in request.args.getlist(name) if value.strip()]
    if len(given) > 1:
        raise BadParameter(name, given, "it must be given once")
    return given[0] if given else None


def _asked(request: Any, settings: Settings, table: str, options: dict[str, Any]) -> SearchRequest:
    """The search that a table page asks for; the columns of drawers narrow it before it ranks."""
    parameters: dict[str, Any] = {
        **options,
        "q": _once(request, WORDS),
        "context": 0,
        "facets": 0,
        "explain": 0,
    }
    if table == TABLE:
        for name, value in narrowing_filters(pairs_of(request)):
            if name not in options:
                parameters.setdefault(name, []).append(value)
    parameters["n_results"] = min(settings.table_hits, settings.max_n_results)
    parameters["next"] = 0
    return parse_request(parameters, settings, strict=True)


def _find(palace: Palace, asked: SearchRequest, table: str, column: str) -> tuple[Found, bool]:
    """What is found, and whether the column holds the drawers' numbers or else their lasting names."""
    numbers = True if table == TABLE else _holds_numbers(palace, table, column)
    with _remembered_lock:
        remembered = _remembered.setdefault(palace, Remembered())
    return remembered.get(palace, asked), numbers


def _holds_numbers(palace: Palace, table: str, column: str) -> bool:
    with palace.reader() as connection:
        columns = [row[1] for row in connection.execute(f"pragma table_info({escape_sqlite(table)})")]
        # SQLite would take the name of a column that is not there for a text.
        if column not in columns:
            raise BadInput(
                f"{table} has no column {column}; change the setting tables of datasette-mempalace. "
                f"It has {', '.join(columns)}."
            )
        name = escape_sqlite(column)
        query = f"select typeof({name}) from {escape_sqlite(table)} where {name} is not null limit 1"
        row = connection.execute(query).fetchone()
    return row is not None and row[0] == "integer"


def _search(palace: Palace, asked: SearchRequest) -> Found:
    answer = run_search(palace, asked)
    drawers = [
        (drawer["id"], drawer["drawer_id"]) for hit in answer["results"] for drawer in (hit, *hit["also_in"])
    ]
    return Found(
        ids=tuple(hit["id"] for hit in answer["results"]),
        drawers=tuple(drawers),
        reason=answer["fallback_reason"],
        until=time.monotonic() + WORDS_ONLY_SECONDS if answer["fallback"] else float("inf"),
    )


def _description(asked: SearchRequest, options: dict[str, Any], found: Found, table: str) -> str:
    """The condition in words, as Datasette joins it to those of other filters."""
    words = asked.query if len(asked.query) <= SHOWN else asked.query[:SHOWN] + "…"
    notes = [said(options)] if said(options) else []
    if found.reason:
        notes.append(f"by words only, because {found.reason.rstrip('. ')}")
    subject = "drawer is" if table == TABLE else "its drawer is"
    return f'{subject} among the best {asked.n_results} for "{words}"' + (
        f" ({'; '.join(notes)})" if notes else ""
    )
