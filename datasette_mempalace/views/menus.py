"""The links that lead to the page: in Datasette's menu, a database's actions and the drawers table's actions."""

from __future__ import annotations

from typing import Any

from ..compat import TABLE, may_view_palace
from ..registry import is_palace_database, palace_databases
from .links import index_path, palace_path
from .table_page import pairs_of, ranked_url

Link = dict[str, str]


async def visible_palaces(datasette: Any, actor: dict[str, Any] | None) -> list[str]:
    """The names of the databases that are palaces and that the actor may see."""
    return [
        name for name in await palace_databases(datasette) if await may_view_palace(datasette, actor, name)
    ]


def menu_links(datasette: Any, actor: dict[str, Any] | None) -> Any:
    """Datasette's menu: one link, where there is a palace that the actor may see."""

    async def inner() -> list[Link]:
        names = await visible_palaces(datasette, actor)
        if not names:
            return []
        href = palace_path(datasette, names[0]) if len(names) == 1 else index_path(datasette)
        return [{"href": href, "label": "Memory palace"}]

    return inner


def database_actions(
    datasette: Any, actor: dict[str, Any] | None, database: str, href: str | None = None
) -> Any:
    """The actions of a database that is a palace; `href` is the search page in another state."""

    async def inner() -> list[Link]:
        db = datasette.databases.get(database)
        if db is None or not await is_palace_database(datasette, db):
            return []
        if not await may_view_palace(datasette, actor, database):
            return []
        return [
            {
                "href": href or palace_path(datasette, database),
                "label": "Search this memory palace",
                "description": "By meaning and by words, best first",
            }
        ]

    return inner


def table_actions(
    datasette: Any, actor: dict[str, Any] | None, database: str, table: str, request: Any
) -> Any:
    """The actions of a palace's table of drawers: the search page with the table's words and filters."""
    if table != TABLE:
        return None
    return database_actions(
        datasette, actor, database, ranked_url(datasette, database, table, pairs_of(request))
    )
