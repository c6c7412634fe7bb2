"""A connection for work that must end in time: what SQLite does on it stops after the setting `time_limit_ms`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from datasette.utils.sqlite import sqlite3

from .errors import PalaceDamaged, TookTooLong
from .palace import Palace

PROGRESS_STEPS = 20_000


@contextmanager
def limited_reader(palace: Palace, connection: Any = None) -> Iterator[Any]:
    """A connection to read through.

    Args:
        palace: the palace.
        connection: an open connection, whose own time limit holds; None takes one of the palace's.
    Raises:
        TookTooLong: when the time is over.
        PalaceDamaged: when the database cannot be read as a palace.
    """
    if connection is not None:
        yield connection
        return
    seconds = palace.settings.time_limit_ms / 1000
    deadline = time.monotonic() + seconds
    with palace.reader() as own:
        own.set_progress_handler(lambda: time.monotonic() > deadline, PROGRESS_STEPS)
        try:
            yield own
        except sqlite3.Error as error:
            if "interrupted" not in str(error):
                name = Path(palace.path).name
                helps = f"find out what is wrong with: datasette mempalace doctor {name} --fix"
                raise PalaceDamaged(f"{name} cannot be searched: {error}; {helps}") from error
            raise TookTooLong(
                f"The search took longer than {seconds:g} seconds; narrow it by wing, room or date, "
                "or raise the setting time_limit_ms."
            ) from error
        finally:
            own.set_progress_handler(None, 0)
