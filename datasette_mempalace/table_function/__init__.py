"""Table-valued functions written in Python: `select * from name(argument) where column = ...`.

SQLite knows them as eponymous virtual tables and lets only C define them. This package does it through ctypes, on the
very SQLite library that a sqlite3 module uses. Where that cannot be proven (see `why_off`) nothing is to be registered.
It knows nothing of palaces and imports nothing of the project, so that it can be tried alone in a process of its own.

    shapes    what a function looks like, and which conditions of a statement it takes over: plain Python
    library   SQLite's C interface, as far as it is needed
    glue      what SQLite calls
    proof     whether all this works here
"""

from .glue import Registration, register
from .proof import why_off
from .shapes import Condition, Rows, Shape, TableError

__all__ = ["Condition", "Registration", "Rows", "Shape", "TableError", "register", "why_off"]
