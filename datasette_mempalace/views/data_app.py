"""What the data app's templates ask for beyond what Datasette gives them: the palaces, and a drawer among its neighbours.

Templates reach it as `mempalace`: `mempalace.palaces()`, `mempalace.drawer(database, id)`. It reads SQLite and
nothing else, and answers None where there is nothing to show, so that a template falls back on Datasette's own page.
"""

from __future__ import annotations

from typing import Any

from ..compat import TABLE, database_title, may_view_palace
from ..errors import MempalaceError
from ..explore.holdings import holdings
from ..logs import get_logger
from ..registry import is_palace_database, open_palace, run
from ..scope import Scope
from ..text import counted
from . import present
from .drawer import view_of_row
from .links import Links, index_path, palace_path
from .menus import visible_palaces
from .table_page import search_box

logger = get_logger(__name__)

SHEETS = ("mempalace.css", "drawer.css", "data-app.css")
BOXES = 5  # palaces with a search box on the front page


class DataApp:
    """The name `mempalace` in templates.

    Args:
        datasette: the Datasette instance.
        request: the request that is answered, or None.
    """

    def __init__(self, datasette: Any, request: Any):
        self._datasette, self._request = datasette, request
        self._actor = request.actor if request else None

    @property
    def css(self) -> list[str]:
        """The URLs of the style sheets."""
        return [str(self._datasette.urls.static_plugins("datasette_mempalace", sheet)) for sheet in SHEETS]

    def search_url(self, database: str) -> str:
        """The URL of a palace's search page."""
        return palace_path(self._datasette, database)

    async def table_box(self, database: str, table: str) -> dict[str, Any] | None:
        """What the search box of a table page shows; None where the table cannot be searched."""
        return await search_box(self._datasette, self._request, database, table) if self._request else None

    async def palaces(self) -> list[dict[str, Any]]:
        """The palaces that the visitor may see, each with what it holds; one that cannot be opened is left out."""
        found = []
        for name in await visible_palaces(self._datasette, self._actor):
            try:
                palace = await open_palace(self._datasette, name)
                held = await run(self._datasette, holdings, palace, Scope())
                title = palace.settings.title or await database_title(self._datasette, name) or name
            except MempalaceError as error:
                logger.warning("%s is not shown: %s", name, error)
                continue
            links = Links(self._datasette, name, [])
            found.append(
                {
                    "database": name,
                    "title": title,
                    "url": palace_path(self._datasette, name),
                    "table_url": self._datasette.urls.table(name, TABLE),
                    "counts": [
                        counted(held["drawers"], "drawer"),
                        *(counted(held[f"{noun}_count"], noun) for noun in ("room", "source", "closet")),
                    ],
                    "last_filed": present.day(held["last_filed"]),
                    "wings": [
                        wing
                        | {
                            "name": wing["wing"],
                            "url": links.place(wing["wing"]),
                            "rooms": wing["room_count"],
                        }
                        for wing in held["wings"]
                    ],
                }
            )
        return found

    async def drawer(self, database: str, row_id: str | int) -> dict[str, Any] | None:
        """One drawer as a page of text.

        Args:
            database: the palace's database.
            row_id: the drawer's row, as it stands in the URL.
        Returns:
            what `_mempalace_drawer.html` shows; None where this is no palace's drawer.
        """
        db = self._datasette.databases.get(database)
        if db is None or not str(row_id).isdecimal() or not await is_palace_database(self._datasette, db):
            return None
        if not await may_view_palace(self._datasette, self._actor, database):
            return None
        try:
            palace = await open_palace(self._datasette, database)
            return await view_of_row(self._datasette, self._request, database, palace, int(row_id))
        except MempalaceError as error:
            logger.warning("%s: drawer %s is shown as a plain row: %s", database, row_id, error)
            return None


def template_vars(datasette: Any, request: Any) -> dict[str, DataApp]:
    """What the plugin adds to every template: names only, nothing is read before a template asks."""
    return {"mempalace": DataApp(datasette, request)}


def top_homepage(datasette: Any, request: Any) -> Any:
    """A search box for each palace on the front page, in Datasette's slot there; 0.65 has none and keeps to the menu."""

    async def inner() -> str:
        names = await visible_palaces(datasette, request.actor)
        if not names:
            return ""
        box = {
            "palaces": [await _searched(datasette, name) for name in names[:BOXES]],
            "all_url": index_path(datasette) if len(names) > BOXES else None,
            "count": len(names),
        }
        return await _box(datasette, request, "_mempalace_front.html", box)

    return inner


async def _searched(datasette: Any, name: str) -> dict[str, str]:
    """A palace's name and search page; no file is opened for it."""
    return {
        "title": await database_title(datasette, name) or name,
        "search_url": palace_path(datasette, name),
    }


def top_database(datasette: Any, request: Any, database: str) -> Any:
    """The search box on a palace's database page, in Datasette's slot there; 0.65 has none and keeps to the database's actions."""

    async def inner() -> str:
        if database not in await visible_palaces(datasette, request.actor):
            return ""
        box = {"search_url": palace_path(datasette, database)}
        return await _box(datasette, request, "_mempalace_database.html", box)

    return inner


def top_table(datasette: Any, request: Any, database: str, table: str) -> Any:
    """The search box above a table, for Datasette's slot there; 0.65 has none, and a template of `templates/` instead."""

    async def inner() -> str:
        box = await search_box(datasette, request, database, table)
        return await _box(datasette, request, "_mempalace_table.html", box) if box else ""

    return inner


async def _box(datasette: Any, request: Any, template: str, box: dict[str, Any]) -> str:
    """A search box with its style sheets, for a page that is not ours."""
    sheets = "".join(f'<link rel="stylesheet" href="{sheet}">' for sheet in DataApp(datasette, request).css)
    return sheets + await datasette.render_template(template, {"box": box}, request=request)
