"""What the data app's templates ask for beyond what Datasette gives them: the palaces, and a drawer among its neighbours.

Templates reach it as `mempalace`: `mempalace.palaces()`, `mempalace.drawer(database, id)`. It reads SQLite and
nothing else, and answers None where there is nothing to show, so that a template falls back on Datasette's own page.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from ..compat import TABLE, database_title, may_view_palace
from ..errors import MempalaceError
from ..palace import Palace
from ..registry import is_palace_database, open_palace, run
from ..scope import Scope
from ..text import source_name
from . import present
from .links import Links, palace_path
from .menus import visible_palaces
from .overview import overview
from .table_page import search_box

logger = logging.getLogger(__name__)

SHEETS = ("mempalace.css", "data-app.css")
FACTS = ("hall", "added_by", "filed_at", "authored_at", "content_date", "parent_drawer_id", "drawer_id")


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
                held = await run(self._datasette, overview, palace, Scope())
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
                        present.count(held[f"{noun}s"], noun)
                        for noun in ("drawer", "room", "source", "closet")
                    ],
                    "last_filed": present.day(held["last_filed"]),
                    "wings": [
                        wing
                        | {
                            "name": wing["wing"],
                            "url": links.place(wing["wing"]),
                            "rooms": len(wing["rooms"]),
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
            place, source, position, neighbours, text and facts; None where this is no palace's drawer.
        """
        db = self._datasette.databases.get(database)
        if db is None or not str(row_id).isdecimal() or not await is_palace_database(self._datasette, db):
            return None
        if not await may_view_palace(self._datasette, self._actor, database):
            return None
        try:
            palace = await open_palace(self._datasette, database)
            row = await run(self._datasette, read_drawer, palace, int(row_id))
        except MempalaceError as error:
            logger.warning("%s: drawer %s is shown as a plain row: %s", database, row_id, error)
            return None
        return drawer_view(row, Links(self._datasette, database, [])) if row else None


def template_vars(datasette: Any, request: Any) -> dict[str, DataApp]:
    """What the plugin adds to every template: names only, nothing is read before a template asks."""
    return {"mempalace": DataApp(datasette, request)}


def top_table(datasette: Any, request: Any, database: str, table: str) -> Any:
    """The search box above a table, for Datasette's slot there; 0.65 has none, and a template of `templates/` instead."""

    async def inner() -> str:
        box = await search_box(datasette, request, database, table)
        if box is None:
            return ""
        sheets = "".join(
            f'<link rel="stylesheet" href="{sheet}">' for sheet in DataApp(datasette, request).css
        )
        return sheets + await datasette.render_template(
            "_mempalace_table.html", {"box": box}, request=request
        )

    return inner


def read_drawer(palace: Palace, row_id: int) -> dict[str, Any] | None:
    """A drawer's row with its number among the drawers of its source and the rows before and after it.

    Args:
        palace: the palace.
        row_id: the drawer's row.
    Returns:
        the row's columns with `place`, `total`, `previous_id`, `previous_index`, `next_id` and `next_index`.
    """
    with palace.reader() as connection:
        found = connection.execute("select * from drawers where id = ?", [row_id])
        names = [column[0] for column in found.description]
        values = found.fetchone()
        if values is None:
            return None
        row = dict(zip(names, values, strict=True))
        # As search takes a passage together: chunks of one split drawer, else of one source.
        column = next((name for name in ("parent_drawer_id", "source_file") if row[name]), "id")
        siblings = connection.execute(_SIBLINGS.format(column=column), {"value": row[column], "id": row_id})
        place = dict(zip((name[0] for name in siblings.description), siblings.fetchone(), strict=True))
    return row | place


def drawer_view(row: dict[str, Any], links: Links) -> dict[str, Any]:
    """A drawer's row for the template.

    Args:
        row: of `read_drawer`.
        links: out of the palace.
    """
    metadata = _metadata(row["metadata"])
    heading = metadata.pop("heading", None)
    name = source_name(row["source_file"])
    named = present.source_label(
        {
            "id": row["id"],
            "source_file": name,
            "chunk_index": row["chunk_index"],
            "chunk_total": row["total"],
        }
    )
    return {
        "id": row["id"],
        "title": heading if isinstance(heading, str) and heading else named,
        "named": named,
        "wing": row["wing"],
        "room": row["room"],
        "wing_url": links.place(row["wing"]),
        "room_url": links.place(row["wing"], row["room"]),
        "source": name,
        "source_path": row["source_file"],
        "source_url": links.to([("source_file", row["source_file"])]) if row["source_file"] else None,
        "place": row["place"],
        "total": row["total"],
        "previous": _neighbour(row, "previous", links),
        "next": _neighbour(row, "next", links),
        "filed": present.day(row["filed_at"]),
        "text": row["text"],
        "length": present.count(len(row["text"]), "character"),
        "facts": [(name.replace("_", " "), row[name]) for name in FACTS if row[name] not in (None, "")],
        "metadata": [(key, _shown(value)) for key, value in metadata.items()],
        "home_url": links.to([]),
    }


def _neighbour(row: dict[str, Any], side: str, links: Links) -> dict[str, Any] | None:
    if row[f"{side}_id"] is None:
        return None
    label = present.chunk_label(row[f"{side}_index"]) or f"drawer {row[f'{side}_id']}"
    return {"url": links.row(row[f"{side}_id"]), "label": label}


def _metadata(stored: str | None) -> dict[str, Any]:
    """The metadata column as a dictionary; what is no JSON object is shown as it is."""
    if not stored:
        return {}
    try:
        found = json.loads(stored)
    except (ValueError, RecursionError):
        return {"metadata": stored}
    return found if isinstance(found, dict) else {"metadata": found}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# {column} is one of three names of our own.
_SIBLINGS = """
select place, total, previous_id, previous_index, next_id, next_index from (
  select
    id,
    row_number() over position as place,
    count(*) over () as total,
    lag(id) over position as previous_id,
    lag(chunk_index) over position as previous_index,
    lead(id) over position as next_id,
    lead(chunk_index) over position as next_index
  from drawers
  where {column} = :value
  window position as (order by chunk_index, id)
)
where id = :id
"""
