"""Table-valued functions written in Python: `select * from name(argument) where column = ...`.

SQLite knows them as eponymous virtual tables and lets only C define them. This package does it through ctypes, on the
very SQLite library that a sqlite3 module uses. Where that cannot be proven (see `why_off`) nothing is to be registered.
It knows nothing of palaces and imports nothing of the project, so that it can be tried alone in a process of its own.

    shapes    what a function looks like, and which conditions of a statement it takes over: plain Python
    library   SQLite's C interface, as far as it is needed
    glue      what SQLite calls
    proof     whether all this works here
"""

from __future__ import annotations

from typing import Any

from .proof import why_off
from .shapes import Condition, Function, Rows, Shape, TableError

__all__ = ["Condition", "Function", "Rows", "Shape", "TableError", "register", "why_off"]


def register(sqlite3: Any, connection: Any, shape: Shape, function: Function) -> object:
    """Give a connection a table-valued function. Ask `why_off` first.

    Args:
        sqlite3: the module that the connection is of.
        connection: an open connection.
        shape: what the function looks like.
        function: takes all arguments by name, the conditions taken over, and how many rows the statement wants
            at most where that is known; returns rows in the shape's order.
    Returns:
        what has to be kept as long as the function is to work, best in a function registered on the connection.
    Raises:
        RuntimeError: when the connection is closed or SQLite refuses.
    """
    from . import glue  # not before: there are Pythons without ctypes

    return glue.register(sqlite3, connection, shape, function)
