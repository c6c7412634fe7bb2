"""`mempalace_search` as a table: `select id, score from mempalace_search(:q) where wing = :wing order by rank`.

One row a hit, one column a key of a hit. Conditions that a drawer itself can be asked narrow the search before it
ranks; conditions on what the ranking finds out (`score > 0.4`) are SQLite's.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from datasette.utils.sqlite import sqlite3

from .config import Settings
from .errors import BadParameter, MempalaceError
from .filters import Filter
from .logs import get_logger
from .palace import Palace
from .request import SearchRequest, parse_request
from .scope import DIMENSIONS, Scope
from .searcher import run_search
from .snippets import plain
from .sql_tables import generation, give_table, read_options
from .table_function import Condition, Rows, Shape, TableError
from .text import source_name

COLUMNS = {
    "rank": "integer", "id": "integer", "drawer_id": "text", "wing": "text", "room": "text", "source_file": "text",
    "source_path": "text", "chunk_index": "integer", "chunk_total": "integer", "heading": "text", "text": "text",
    "snippet": "text", "score": "real", "similarity": "real", "distance": "real", "effective_distance": "real",
    "bm25_score": "real", "bm25_share": "real", "closet_boost": "real", "closet_preview": "text",
    "matched_via": "text", "filed_at": "text", "authored_at": "text", "content_date": "text", "hall": "text",
    "added_by": "text", "found_by": "text", "context": "text", "context_drawer_ids": "text",
    "drawer_index": "integer", "total_drawers": "integer", "also_in": "text", "words_found": "text",
    "words_missing": "text", "explain": "text",
}  # fmt: skip
PARAMETERS = ("query", "in_wing", "in_room", "n_results", "options")
# Columns of a hit under which a drawer has the value itself, by the drawer's own name for it. Not `chunk_index`, which
# a hit shows as a number whatever is stored there.
STORED = {
    "wing": "wing", "room": "room", "source_path": "source_file", "drawer_id": "drawer_id", "hall": "hall",
    "added_by": "added_by", "filed_at": "filed_at", "authored_at": "authored_at", "content_date": "content_date",
}  # fmt: skip
AS_FILTER = {
    "=": "exact", "is": "exact", "in": "in", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte", "is null": "isnull",
}  # fmt: skip
SHAPE = Shape(
    name="mempalace_search",
    columns=COLUMNS,
    parameters=PARAMETERS,
    key="id",
    narrowing={
        "id": frozenset({"in"}),
        "source_file": frozenset({"=", "in"}),
        **dict.fromkeys(STORED, frozenset(AS_FILTER)),
    },
    order="rank",
)
REMEMBERED_HITS = 2_000
_WHOLE = re.compile(r"-?\d{1,18}")
logger = get_logger(__name__)


def register(connection: Any, palace: Palace) -> object:
    """Give a connection to a palace the table, where that works; what `give_table` promises."""
    return give_table(connection, palace, SHAPE, _Searches(palace, connection).rows)


def read_arguments(
    settings: Settings,
    query: Any,
    wing: Any = None,
    room: Any = None,
    n_results: Any = None,
    options: Any = None,
) -> SearchRequest | None:
    """What the arguments of `mempalace_search` ask for, in both of its forms.

    Args:
        settings: the palace's settings.
        query: the words.
        wing, room: NULL or '' for all, a name, or a JSON array of names.
        n_results: how many hits at most, or NULL.
        options: a JSON object with any other parameter of the HTTP API, or NULL.
    Returns:
        the search, or None when there are no words.
    Raises:
        BadInput: for what is not allowed.
    """
    if query is None or not str(query).strip():
        return None
    given: dict[str, Any] = {**read_options(options), "q": query}
    for name, value in (("wing", wing), ("room", room), ("n_results", n_results)):
        if value not in (None, ""):
            given[name] = _names(name, value) if name != "n_results" else value
    return parse_request(given, settings, strict=True)


class _Searches:
    """The searches of one connection. The last ones are remembered: SQLite may ask for the same more than once."""

    def __init__(self, palace: Palace, connection: Any):
        self.palace, self.connection = palace, connection
        self.remembered: OrderedDict[Any, Rows] = OrderedDict()

    def rows(self, arguments: dict[str, Any], conditions: tuple[Condition, ...], limit: int | None) -> Rows:
        """The hits, as `Shape` wants them."""
        # As they are written: 5 and 5.0 are equal, but not the same to ask for.
        key = (generation(self.connection), repr((arguments, conditions, limit)))
        if key not in self.remembered:
            try:
                self.remembered[key] = self._search(arguments, conditions, limit)
            except MempalaceError as error:
                raise TableError(error.message) from error
            except sqlite3.Error:  # SQLite's to tell: it may be its time limit
                raise
            except Exception as error:
                logger.exception("%s failed", SHAPE.name)
                raise TableError(f"{type(error).__name__}: {error}") from error
            while len(self.remembered) > 1 and self._held() > REMEMBERED_HITS:
                self.remembered.popitem(last=False)
        self.remembered.move_to_end(key)
        return self.remembered[key]

    def _held(self) -> int:
        """The hits held, where a search without any counts as one."""
        return sum(len(found.rows) or 1 for found in self.remembered.values())

    def _search(
        self, arguments: dict[str, Any], conditions: tuple[Condition, ...], limit: int | None
    ) -> Rows:
        settings = self.palace.settings
        request = read_arguments(settings, *arguments.values())
        if request is None:
            return Rows([])
        scope: Scope | None = request.scope
        left_out = False
        for condition in conditions:
            if scope is not None and is_sure(condition):
                scope = narrowed(scope, self._by_path(condition))
            else:
                left_out = True
        if scope is None:
            return Rows([])
        wanted = request.n_results
        if limit and not left_out and not _says_how_many(arguments):
            # Only ever more: fewer would make the pool smaller, and a smaller pool may rank otherwise.
            wanted = max(wanted, min(limit, settings.max_n_results))
        request = replace(request, scope=scope, n_results=wanted)
        hits = run_search(self.palace, request, self.connection)["results"]
        return Rows([{**hit, "snippet": plain(hit["snippet"])} for hit in hits])

    def _by_path(self, condition: Condition) -> Condition:
        """A condition on the short name of a source as one on the paths that are shown as that name."""
        if condition.column != "source_file":
            return condition
        names = condition.value if condition.operator == "in" else (condition.value,)
        rows = self.connection.execute(
            "select distinct source_file from drawers where source_file is not null"
        )
        return Condition("source_path", "in", tuple(path for (path,) in rows if source_name(path) in names))


def is_sure(condition: Condition) -> bool:
    """Whether a condition means to the search what it means to SQLite, whatever is on its other side.

    There SQLite may convert either side, by rules that depend on columns we do not see; not so where a column of texts
    meets a text, or one of whole numbers a whole number.
    """
    values = condition.value if condition.operator == "in" else (condition.value,)
    if condition.value is None:  # "is null", and "is" with nothing to be
        return True
    if condition.column == "id":
        return all(_is_whole(value) for value in values)
    return all(isinstance(value, str) and "\0" not in value for value in values)


def narrowed(scope: Scope, condition: Condition) -> Scope | None:
    """A scope with one more condition.

    Args:
        scope: what the search covers.
        condition: one that `is_sure`, on `id` or a column of `STORED`.
    Returns:
        the narrower scope, or None when no drawer can be in it.
    """
    column, operator, value = condition
    if column == "id":
        ids = tuple(dict.fromkeys(int(each) for each in value))
        kept = ids if scope.ids is None else tuple(each for each in ids if each in set(scope.ids))
        return replace(scope, ids=kept) if kept else None
    stored = STORED[column]
    values: tuple[Any, ...] = tuple(value) if operator == "in" else (value,)
    # The three that closets and Chroma have, too; a filter is for drawers alone. The empty name means "all" there.
    if stored in DIMENSIONS and operator in ("=", "in", "is", "is null") and "" not in values:
        allowed = getattr(scope, DIMENSIONS[stored])
        kept_values = tuple(each for each in values if not allowed or each in allowed)
        changed: dict[str, Any] = {DIMENSIONS[stored]: kept_values}
        return replace(scope, **changed) if kept_values else None
    if value is None:
        operator = "is null"
    text = json.dumps(values, ensure_ascii=False) if operator == "in" else str(value)
    return replace(scope, filters=(*scope.filters, Filter(stored, AS_FILTER[operator], text)))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and _WHOLE.fullmatch(value) is not None)


def _says_how_many(arguments: Mapping[str, Any]) -> bool:
    return arguments["n_results"] not in (None, "") or "n_results" in read_options(arguments["options"])


def _names(name: str, value: Any) -> Any:
    """A wing or room argument: a JSON array of names, or one name, which may well begin with a bracket."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            names = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if isinstance(names, list):
            if not names:
                raise BadParameter(name, value, "it must be a name or a JSON array with at least one name")
            return names
    return value
