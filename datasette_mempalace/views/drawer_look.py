"""One look at a drawer: what is asked, what was found, and the links out of it."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..around import Around, read_around
from ..config import Settings
from ..errors import MempalaceError
from ..facts import read_facts
from ..palace import Palace
from ..parameter_values import read_choice
from ..request import SearchRequest, parse_request, request_parameters
from ..scope import Scope
from ..similar import SimilarRequest, find_drawer, run_similar
from ..time_limit import limited_reader
from .links import Links, Pair

VIEWS = ("written", "rendered")
REACHES = ("everywhere", "wing", "room")  # where similar drawers are looked for
SIMILAR = 5


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


def reach_of(row: Mapping[str, Any], reach: str) -> Scope:
    """A name of `REACHES` as the scope that it means for a drawer."""
    if reach == "everywhere":
        return Scope()
    return Scope(wings=(row["wing"],), rooms=(row["room"],) if reach == "room" else ())


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


def _similar_to(row: Mapping[str, Any], reach: str) -> SimilarRequest:
    return SimilarRequest(row["id"], SearchRequest(query="", scope=reach_of(row, reach), n_results=SIMILAR))


def _with_query(path: str, pairs: Iterable[Pair]) -> str:
    query = urllib.parse.urlencode(list(pairs))
    return f"{path}?{query}" if query else path
