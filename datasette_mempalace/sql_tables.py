"""What `mempalace_search` and `mempalace_similar` have in common as tables: whether they are there, and how they are asked.

They are registered where that has been proven to work (`table_function.proof`); the functions of JSON with the same
names do not need it.
"""

from __future__ import annotations

import json
from typing import Any

from datasette.utils.sqlite import sqlite3

from . import table_function
from .config import Settings
from .errors import BadParameter
from .logs import get_logger
from .palace import Palace
from .table_function import Function, Shape

logger = get_logger(__name__)


def why_off(settings: Settings) -> str | None:
    """Why a palace's connections have no such tables, as the end of "because ..."; None when they have."""
    if not settings.table_function:
        return "the setting table_function is false"
    return table_function.why_off(sqlite3)


def give_table(connection: Any, palace: Palace, shape: Shape, function: Function) -> object:
    """Give a connection to a palace a table, where that works. It never raises.

    Args:
        connection: a sqlite3 connection to the palace's database.
        palace: the palace.
        shape: what the table looks like.
        function: gives its rows.
    Returns:
        what the connection must keep for the table to work, or None when there is no table.
    """
    if not isinstance(connection, sqlite3.Connection) or why_off(palace.settings):
        return None
    try:
        return table_function.register(sqlite3, connection, shape, function)
    except Exception as error:
        logger.warning("The table %s is missing on a connection: %s", shape.name, error)
        return None


def generation(connection: Any) -> tuple[int, int]:
    """A number pair that changes whenever another or this connection has changed the database."""
    return (connection.execute("pragma data_version").fetchone()[0], connection.total_changes)


def read_options(options: Any) -> dict[str, Any]:
    """An argument that is a JSON object of parameters.

    Raises:
        BadParameter: when it is something else.
    """
    if options in (None, ""):
        return {}
    try:
        given = json.loads(options)
    except (TypeError, ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise BadParameter(
            "options", options, "it must be a JSON object, as json_object('max_distance', 0.5) makes one"
        )
    return given
