"""The page of one drawer, as a page of its own and as JSON; the data app shows the same on Datasette's row page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datasette.utils import tilde_decode

from ..compat import CLOSETS, may_run_sql, may_view_table
from ..palace import Palace
from ..registry import run
from .access import parameters_of
from .data import data_of_palace
from .drawer_look import DrawerLinks, Found, look_at, parse_look
from .drawer_text import drawer_view, metadata_of
from .frame import page_of_palace, sheet_url
from .operation import Operation, described

# What a page says of a drawer beside its row and its source, and the tables that it takes it from.
TABLES = {"closets": (CLOSETS,), "facts": ("kg_triples", "kg_entities")}


async def hidden_parts(datasette: Any, actor: dict[str, Any] | None, database: str) -> frozenset[str]:
    """What of a drawer's surroundings an actor may not see, because a table of it is closed."""
    return frozenset(
        {
            part
            for part, tables in TABLES.items()
            for table in tables
            if not await may_view_table(datasette, actor, database, table)
        }
    )


@page_of_palace
async def drawer_page(datasette: Any, request: Any, palace: Palace, context: dict[str, Any]) -> Any:
    """A drawer among its neighbours."""
    database = context["database"]
    asked = parse_look(tilde_decode(request.url_vars["drawer_id"]), parameters_of(request), palace.settings)
    found = await run(
        datasette, look_at, palace, asked, await hidden_parts(datasette, request.actor, database)
    )
    return {
        "template": "mempalace_drawer.html",
        "drawer_css": sheet_url(datasette, "drawer.css"),
        "d": await run(
            datasette,
            drawer_view,
            found,
            asked,
            DrawerLinks(datasette, database, palace, asked),
            context["may_run_sql"],
        ),
    }


@described(
    Operation(
        "One drawer among its neighbours, with its copies, closets, facts and similar drawers.",
        "Drawer",
        ("as", "similar"),
    )
)
@data_of_palace
async def drawer_json(datasette: Any, request: Any, database: str, palace: Palace) -> dict[str, Any]:
    """The page as JSON."""
    asked = parse_look(tilde_decode(request.url_vars["drawer_id"]), parameters_of(request), palace.settings)
    hidden = await hidden_parts(datasette, request.actor, database)
    found = await run(datasette, look_at, palace, asked, hidden)
    links = DrawerLinks(datasette, database, palace, asked)
    return as_json(found, lambda row: datasette.absolute_url(request, links.to_drawer(row)))


async def view_of_row(
    datasette: Any, request: Any, database: str, palace: Palace, row_id: int
) -> dict[str, Any]:
    """What a template shows of a drawer on Datasette's own page of its row.

    Raises:
        MempalaceError: when there is nothing to show.
    """
    given = parameters_of(request) if request else {}
    asked = parse_look(row_id, given, palace.settings)
    actor = request.actor if request else None
    found = await run(datasette, look_at, palace, asked, await hidden_parts(datasette, actor, database))
    links = DrawerLinks(datasette, database, palace, asked, rows=True)
    return await run(
        datasette, drawer_view, found, asked, links, await may_run_sql(datasette, actor, database)
    )


def as_json(found: Found, url_of: Any) -> dict[str, Any]:
    """A drawer with its surroundings, of plain JSON types; `docs/api.md` describes its keys."""
    row, around = found.row, found.around
    similar = found.similar

    def told(each: Mapping[str, Any]) -> dict[str, Any]:
        return {**each, "url": url_of(each)}

    def beside(neighbour: Any) -> dict[str, Any] | None:
        if neighbour is None:
            return None
        kept = {key: neighbour.row[key] for key in ("id", "drawer_id", "chunk_index")}
        return told(kept) | {"overlap": neighbour.shared}

    return {
        "drawer": told({**row, "metadata": metadata_of(row["metadata"])}),
        "place": around.place,
        "total": around.total,
        "previous": beside(around.previous),
        "next": beside(around.next),
        "outline": [told(each) for each in around.outline],
        "outline_cut": around.outline_cut,
        "copies": [told(each) for each in around.copies],
        "closets": around.closets,
        "facts": found.facts,
        "similar": None if similar is None else [told(each) for each in similar["results"]],
        "no_similar": found.no_similar,
    }
