"""The SQL functions of a palace's connections: `mempalace_search`, `mempalace_similar`, `mempalace_similarity`, `mempalace_fts_query`.

The first two are also tables of that name, see `search_table` and `similar_table`. Registered on palace databases only; they read through the
connection they are called on. A problem becomes one readable JSON error object, because SQLite would show any exception
as "user-defined function raised exception".
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from datasette.utils.sqlite import sqlite3

from . import search_table, similar_table
from .errors import MempalaceError, TookTooLong
from .logs import get_logger
from .nearest import true_distances
from .palace import Palace
from .ranking import similarity
from .search_table import read_arguments
from .searcher import run_search
from .similar import run_similar
from .sql_tables import generation
from .words import match_all

REMEMBERED = 16

logger = get_logger(__name__)


def register(connection: Any, palace: Palace) -> None:
    """Give a connection to a palace its SQL functions.

    Args:
        connection: a sqlite3 connection to the palace's database.
        palace: the palace, for its settings, embedder and mirror.
    """
    tables = (search_table.register(connection, palace), similar_table.register(connection, palace))
    for name, function, arities in (
        ("mempalace_search", mempalace_search, range(1, 6)),
        ("mempalace_similar", mempalace_similar, range(1, 4)),
    ):
        answer = _remembering(palace, connection, name, function, tables)
        # Each arity on its own: a wrong count then brings SQLite's own clear message.
        for count in arities:
            connection.create_function(name, count, answer, deterministic=True)
    connection.create_function("mempalace_fts_query", 1, mempalace_fts_query, deterministic=True)
    connection.create_function(
        "mempalace_similarity",
        2,
        lambda drawer_id, query: _similarity(palace, connection, drawer_id, query),
    )


def _remembering(
    palace: Palace, connection: Any, name: str, function: Callable[..., list[dict[str, Any]]], keep: object
) -> Callable[..., str]:
    """A function that answers as JSON; SQLite may call it more than once for one statement.

    Args:
        palace, connection: its first two arguments.
        name: what it is called in SQL.
        function: gives the hits.
        keep: what must live as long as the connection's functions do.
    """
    remembered: OrderedDict[tuple[Any, ...], str] = OrderedDict()

    def answer(*arguments: Any, _keep: object = keep) -> str:
        key = (generation(connection), *((type(argument), argument) for argument in arguments))
        if key not in remembered:
            remembered[key] = _as_json(name, lambda: function(palace, connection, *arguments))
            while len(remembered) > REMEMBERED:
                remembered.popitem(last=False)
        return remembered[key]

    return answer


def mempalace_search(
    palace: Palace, connection: Any, query: Any, wing: Any = None, room: Any = None, n_results: Any = None,
    options: Any = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """The hits of a search.

    Args:
        palace, connection: where to search.
        query: the words; NULL, `''` or blank give `[]`.
        wing, room: NULL or `''` for all; a name; a JSON array of names, where null is "none".
        n_results: a whole number from 1 to the setting `max_n_results`; NULL or `''` for the setting `n_results`.
        options: a JSON object with any other [parameter of the API](api.md#parameters); NULL or `''` for none.
    Returns:
        a JSON array of hits, best first; a JSON object where something is wrong.
    Raises:
        BadInput: for what is not allowed.
    """
    request = read_arguments(palace.settings, query, wing, room, n_results, options)
    results: list[dict[str, Any]] = run_search(palace, request, connection)["results"] if request else []
    return results


def mempalace_similar(
    palace: Palace, connection: Any, drawer_id: Any, n_results: Any = None, options: Any = None
) -> list[dict[str, Any]]:
    """The drawers most like one.

    Args:
        palace, connection: where the drawer is.
        drawer_id: a drawer's `drawer_id`, or the `id` of its row; a text is a `drawer_id` first; NULL or `''` give `[]`.
        n_results: a whole number from 1 to the setting `max_n_results`; NULL or `''` for the setting `n_results`.
        options: a JSON object with any other [parameter](api.md#similar-drawers): `wing`, `max_distance`,
            `other_sources_first`, ...; NULL or `''` for none.
    Returns:
        a JSON array of the drawers nearest to one, best first; a JSON object where something is wrong.
    Raises:
        MempalaceError: for what is not allowed, and for a drawer that is not there or cannot be compared.
    """
    request = similar_table.read_arguments(palace.settings, drawer_id, n_results, options)
    hits: list[dict[str, Any]] = run_similar(palace, request, connection)["results"] if request else []
    return hits


def mempalace_fts_query(words: Any) -> str:
    """A person's words as a safe expression for `drawers_fts match`; NULL and blank ones match nothing."""
    return match_all("" if words is None else str(words))


def mempalace_similarity(palace: Palace, connection: Any, drawer_id: Any, query: Any) -> float | None:
    """How alike in meaning a drawer and a text are, 0 to 1; NULL when it is not known.

    Args:
        palace, connection: where the drawer is.
        drawer_id: its integer id or its `drawer_id`.
        query: the text.
    """
    if drawer_id is None or query is None or not str(query).strip():
        return None
    row = connection.execute(
        "select id from drawers where id = :it or drawer_id = :it", {"it": drawer_id}
    ).fetchone()
    if row is None:
        return None
    try:
        vector = palace.embedder.embed_query(str(query), palace.settings.time_limit_ms / 1000)
    except MempalaceError:
        return None
    alike = similarity(true_distances(connection, "drawer", vector, [row[0]]).get(row[0]))
    return None if alike is None else round(alike, 6)


def _as_json(name: str, work: Callable[[], list[dict[str, Any]]]) -> str:
    try:
        return json.dumps(work(), ensure_ascii=False)
    except MempalaceError as error:
        problem: MempalaceError = error
    except sqlite3.Error as error:
        if "interrupted" in str(error):
            problem = TookTooLong(f"{name}: the time limit for SQL was reached; narrow the search.")
        else:
            problem = MempalaceError(f"{name}: {error}")
    except (
        Exception
    ) as error:  # SQLite would hide what it was behind "user-defined function raised exception"
        logger.exception("%s failed", name)
        problem = MempalaceError(f"{name}: {type(error).__name__}: {error}")
    return json.dumps(problem.as_json(), ensure_ascii=False)


def _similarity(palace: Palace, connection: Any, drawer_id: Any, query: Any) -> float | None:
    """`mempalace_similarity` for SQLite, which cannot be told a problem: NULL, and the problem in the log."""
    try:
        return mempalace_similarity(palace, connection, drawer_id, query)
    except Exception:  # as above
        logger.exception("mempalace_similarity failed")
        return None
