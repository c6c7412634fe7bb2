"""How far a mirror in a folder is, read from its database without Chroma: quick, and with nothing opened that could crash.

What the palace records of its mirror may be untrue: the folder may have been emptied, or be a copy of another palace's.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ..logs import get_logger
from .state import State

logger = get_logger(__name__)

WAIT_SECONDS = 0.5
_METADATA = """
    select key, coalesce(str_value, int_value) from collection_metadata
    where collection_id = (select id from collections where name = ?)
"""


def recorded_state(database: Path, collections: str) -> State | None:
    """How far a mirror is, as the metadata of its collection of drawers say.

    To be asked only while this process has the database not open: closing a file gives its locks back.

    Args:
        database: Chroma's database file.
        collections: what the palace's collections are called, without "_drawers".
    Returns:
        the state, that of a mirror never filled where there is no such file or collection; None when it cannot be read
        now, as while somebody writes it, or when Chroma keeps it in another way.
    """
    if not database.exists():
        return State()
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=WAIT_SECONDS)
    try:
        return State.of(dict(connection.execute(_METADATA, [f"{collections}_drawers"])))
    except (sqlite3.Error, ValueError) as error:
        logger.info("%s cannot be read for the mirror's state: %s", database, error)
        return None
    finally:
        connection.close()
