"""The page of one drawer, as a page of its own and as JSON; the data app shows the same on Datasette's row page."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from datasette.utils import tilde_decode

from ..around import Around, read_around
from ..compat import CLOSETS, may_run_sql, may_view_table
from ..config import Settings
from ..errors import MempalaceError
from ..facts import read_facts
from ..palace import Palace
from ..parameter_values import read_choice
from ..registry import run
from ..request import SearchRequest, parse_request, request_parameters
from ..scope import Scope
from ..similar import SimilarRequest, find_drawer, run_similar
from ..time_limit import limited_reader
from .access import parameters_of
from .data import data_of_palace
from .drawer_text import REACHES, drawer_view, metadata_of, reach_of
from .frame import page_of_palace, sheet_url
from .links import Links, Pair
from .operation import Operation, described

VIEWS = ("written", "rendered")
PARAMETERS = ("as", "similar")
SIMILAR = 5
# What a page says of a drawer beside its row and its source, and the tables that it takes it from.
TABLES = {"closets": (CLOSETS,), "facts": ("kg_triples", "kg_entities")}


@dataclass(frozen=True)
class DrawerRequest:
    """One look at a drawer, checked.

    Attributes:
        drawer: a `drawer_id`, or the `id` of the row.
        view: the text as it was "written", or "rendered" as Markdown.
        reach: where similar drawers are looked for: "everywhere", in its "wing", in its "room".
        search: the search that the reader comes from; its words are marked.
    """

    drawer: str | int
    view: str
    reach: str
    search: SearchRequest

    def pairs(self, settings: Settings, **changed: str) -> list[Pair]:
        """The look as parameters, what is default left out; `changed` has other values for `as` and `similar`."""
        own = {"as": self.view, "similar": self.reach, **changed}
        defaults = {"as": VIEWS[0], "similar": REACHES[0]}
        kept = [(name, value) for name, value in own.items() if value != defaults[name]]
        return [*(request_parameters(self.search, settings) if self.search.query else []), *kept]


@dataclass(frozen=True)
class Found:
    """A drawer with everything that its page shows.

    Attributes:
        row: the drawer's row.
        around: its neighbours, outline, copies and closets.
        facts: of the knowledge graph.
        similar: the answer of `run_similar`, or None.
        no_similar: why there is none.
    """

    row: dict[str, Any]
    around: Around
    facts: list[dict[str, Any]]
    similar: dict[str, Any] | None
    no_similar: str | None


def parse_look(drawer: str | int, given: Mapping[str, Any], settings: Settings) -> DrawerRequest:
    """Read a look at a drawer from a URL's parameters.

    Raises:
        BadInput: naming the parameter, its value and what is allowed.
    """
    return DrawerRequest(
        drawer=drawer,
        view=read_choice("as", given, VIEWS, VIEWS[0]),
        reach=read_choice("similar", given, REACHES, REACHES[0]),
        search=parse_request(given, settings, allow_blank=True),
    )


def look_at(palace: Palace, asked: DrawerRequest, hidden: frozenset[str] = frozenset()) -> Found:
    """Read what the page of a drawer shows.

    Args:
        palace: the palace.
        asked: the look.
        hidden: of "closets" and "facts" what the visitor may not see.
    Raises:
        DrawerNotFound: when there is no such drawer.
    """
    with limited_reader(palace) as connection:
        row = find_drawer(connection, asked.drawer)
        around = read_around(connection, row)
        closets = [closet["id"] for closet in around.closets]
        facts = [] if "facts" in hidden else read_facts(connection, row, closets)
        if "closets" in hidden:
            around.closets.clear()
        similar, no_similar = None, None
        try:
            similar = run_similar(palace, _similar_to(row, asked.reach), connection)
        except MempalaceError as error:
            no_similar = error.message
    return Found(row, around, facts, similar, no_similar)


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


class DrawerLinks(Links):
    """The links out of a drawer's page; each takes the search along that the reader came from.

    Args:
        datasette, database: where.
        palace: whose defaults are left out.
        asked: the look at the drawer.
        rows: whether other drawers are shown on Datasette's pages of their rows.
    """

    def __init__(
        self, datasette: Any, database: str, palace: Palace, asked: DrawerRequest, rows: bool = False
    ):
        super().__init__(datasette, database, request_parameters(asked.search, palace.settings))
        self.asked, self.settings, self.rows = asked, palace.settings, rows

    def to_drawer(self, drawer: Mapping[str, Any], **changed: str) -> str:
        """The page of a drawer, seen as this one is."""
        path = self.row(drawer["id"]) if self.rows else self.drawer(drawer)
        return _with_query(path, self.asked.pairs(self.settings, **changed))

    def data(self, drawer: Mapping[str, Any]) -> str:
        """A drawer as JSON."""
        return _with_query(
            self.drawer(drawer) + ".json", self.asked.pairs(self.settings, **{"as": "written"})
        )

    def similar_page(self, drawer: Mapping[str, Any], scope: Scope) -> str:
        """The page of the drawers that are like one."""
        within = request_parameters(SearchRequest(query="", scope=scope), self.settings)
        return self.to([("drawer_id", drawer["drawer_id"] or str(drawer["id"])), *within], "/similar")


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


def _similar_to(row: Mapping[str, Any], reach: str) -> SimilarRequest:
    return SimilarRequest(row["id"], SearchRequest(query="", scope=reach_of(row, reach), n_results=SIMILAR))


def _with_query(path: str, pairs: Iterable[Pair]) -> str:
    query = urllib.parse.urlencode(list(pairs))
    return f"{path}?{query}" if query else path
