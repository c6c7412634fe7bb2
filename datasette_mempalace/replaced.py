"""A served palace whose file was replaced, or taken away, is noticed before a request reads or writes it.

Datasette keeps its connections for as long as it runs. To a file that is no longer there they would answer of what was, and
write where nobody looks; and a new one beside them would mix both files through the log that they share by its name.
"""

from __future__ import annotations

import asyncio
import weakref
from pathlib import Path
from typing import Any

from .compat import database_of
from .connections import Identity, identity
from .errors import PalaceReplaced
from .logs import get_logger
from .registry import registry_of
from .reopening import reopen

logger = get_logger(__name__)


class Files:
    """Which file each database of one Datasette was opened from."""

    def __init__(self) -> None:
        self.opened: dict[str, Identity] = {}
        self.lock = asyncio.Lock()

    def replaced(self, datasette: Any) -> list[str]:
        """The names of the databases at whose path another file lies than was opened; those that are new are noted."""
        found = []
        for name, db in datasette.databases.items():
            now = identity(db.path) if db.path else None
            if now is not None and self.opened.setdefault(name, now) != now:
                found.append(name)
        return found


_files: weakref.WeakKeyDictionary[Any, Files] = weakref.WeakKeyDictionary()


async def follow(datasette: Any) -> None:
    """Let Datasette and the registry open anew what was replaced; other databases than palaces are left alone."""
    files = _files.setdefault(datasette, Files())
    if not files.replaced(datasette):
        return
    async with files.lock:
        for name in files.replaced(datasette):
            db, registry = datasette.databases[name], registry_of(datasette)
            now = identity(db.path)
            if registry.has_opened(db.path):
                # First what is written by us, and the old log: nobody may open the new file beside it.
                await asyncio.to_thread(registry.let_go_if_replaced, db.path)
                await reopen(datasette, db)
                logger.info("%s: Datasette has opened its file anew.", name)
            if now is not None:
                files.opened[name] = now


def refuse_lost(datasette: Any, path: str) -> None:
    """Refuse what concerns a palace whose file is gone.

    Writing would make an empty file in its place; reading would answer by chance, as far as a thread still has the old one open.

    Args:
        datasette: the Datasette instance.
        path: the request's, decoded.
    Raises:
        PalaceReplaced: when the file of the palace that it names is gone.
    """
    route = path.removeprefix(datasette.setting("base_url")).lstrip("/").partition("/")[0]
    db = database_of(datasette, route)
    if db is None or db.path is None or Path(db.path).exists():
        return
    registry = registry_of(datasette)
    registry.let_go_if_replaced(db.path)
    if registry.has_opened(db.path):
        raise PalaceReplaced(
            f"The file of {db.name} was deleted or moved away while it was served; nothing was read or written. Put it"
            " there again."
        )
