"""The URLs of the memory pages: every state of a search is one, and every link is built here.

A state is a list of (name, value) pairs, the parameters of the HTTP API; what stands in no pair has its default.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from datasette.utils import tilde_encode

from ..compat import TABLE, sql_url
from ..request import SearchRequest
from .statements import Statement

OPENAPI = "/-/mempalace/openapi.json"
Pair = tuple[str, str]
FILTERS = ("wing", "room", "source_file")


def index_path(datasette: Any) -> str:
    """The list of palaces."""
    return str(datasette.urls.path("/-/mempalace"))


def openapi_path(datasette: Any) -> str:
    """The description of the JSON API."""
    return str(datasette.urls.path(OPENAPI))


def palace_path(datasette: Any, database: str, extension: str = "") -> str:
    """A palace's page, or with ".json" or ".csv" its data."""
    return f"{datasette.urls.database(database)}/-/mempalace{extension}"


def row_path(datasette: Any, database: str, row_id: int) -> str:
    """The page of one drawer's row."""
    return f"{datasette.urls.table(database, TABLE)}/{tilde_encode(str(row_id))}"


def drawer_path(datasette: Any, database: str, drawer_id: str) -> str:
    """The page of one drawer, under its lasting name."""
    return f"{palace_path(datasette, database)}/drawer/{tilde_encode(drawer_id)}"


def source_path(datasette: Any, database: str, source_file: str, extension: str = "", **more: str) -> str:
    """The page on which one source is read from start to end, or its data."""
    query = urllib.parse.urlencode({"source_file": source_file, **more})
    return f"{palace_path(datasette, database, f'/source{extension}')}?{query}"


def filter_pair(dimension: str, value: str | None) -> Pair:
    """The pair that allows one value of a dimension; None is "has none"."""
    if value == "":  # an empty parameter means "no filter"
        return f"{dimension}__in", '[""]'
    return (f"{dimension}__isnull", "1") if value is None else (dimension, value)


class Links:
    """The links out of one state of a search.

    Args:
        datasette: the Datasette instance.
        database: the palace's database.
        pairs: the state, without `next`.
        extension: "" for links to the page, ".json" for links to the data.
    """

    def __init__(self, datasette: Any, database: str, pairs: Iterable[Pair], extension: str = ""):
        self.datasette, self.database, self.pairs = datasette, database, list(pairs)
        self.extension = extension

    def to(self, pairs: Iterable[Pair], extension: str | None = None) -> str:
        """A URL for any state."""
        path = palace_path(self.datasette, self.database, self.extension if extension is None else extension)
        query = urllib.parse.urlencode(list(pairs))
        return f"{path}?{query}" if query else path

    def here(self, extension: str | None = None, **more: str) -> str:
        """This state, perhaps as other data and with more parameters."""
        return self.to([*self.pairs, *more.items()], extension)

    def without(self, *names: str) -> str:
        """This state without some parameters, whatever their values."""
        return self.to(pair for pair in self.pairs if pair[0] not in names)

    def without_pair(self, pair: Pair) -> str:
        """This state without one value of a parameter."""
        return self.to(other for other in self.pairs if other != pair)

    def with_value(self, name: str, value: str) -> str:
        """This state with one parameter set to one value."""
        return self.to([*(pair for pair in self.pairs if pair[0] != name), (name, value)])

    def replaced(self, dimension: str, old: str | None, new: str | None) -> str:
        """This state with one value of a dimension put in place of another."""
        old_pair, new_pair = filter_pair(dimension, old), filter_pair(dimension, new)
        return self.to(dict.fromkeys(new_pair if pair == old_pair else pair for pair in self.pairs))

    def toggle(self, dimension: str, value: str | None) -> str | None:
        """This state with a value of a facet added, or removed where it is in force; None where no URL can say it."""
        if value == "":  # an empty parameter means "no filter"
            return None
        pair = filter_pair(dimension, value)
        return self.without_pair(pair) if pair in self.pairs else self.to([*self.pairs, pair])

    def place(self, wing: str | None, *room: str | None) -> str:
        """The page of a wing, or of a room in it."""
        return self.to([filter_pair("wing", wing), *(filter_pair("room", name) for name in room)], "")

    def having(self, column: str, value: str | None) -> str:
        """This state, narrowed to drawers with one value in a column; None is "has none"."""
        if value is None:
            pair = (f"{column}__isnull", "1")
        else:
            pair = (f"{column}__exact", value) if value else (f"{column}__in", '[""]')
        return self.to(dict.fromkeys([*self.pairs, pair]))

    def narrowed(self, since: str, before: str, date_column: str) -> str:
        """This state with another window of dates, inside the one it has."""
        given = dict(self.pairs)
        # Texts of one form: days, perhaps with a time, which sorts after its day.
        window = [
            ("since", max(since, given.get("since", since))),
            ("before", min(before, given.get("before", before))),
        ]
        names = ("since", "before", "date_column")
        kept = [pair for pair in self.pairs if pair[0] not in names]
        column = [("date_column", date_column)] if date_column != "filed_at" else []
        return self.to([*kept, *window, *column])

    def beside(self, page: str, extension: str = "", **more: str) -> str:
        """This state on another page of the palace: a list of its wings, its timeline ..."""
        path = palace_path(self.datasette, self.database, f"/{page}{extension}")
        query = urllib.parse.urlencode([*self.pairs, *more.items()])
        return f"{path}?{query}" if query else path

    def table(self, pairs: Iterable[Pair]) -> str:
        """Datasette's own page of the drawers, in a state of its own."""
        query = urllib.parse.urlencode(list(pairs))
        path = str(self.datasette.urls.table(self.database, TABLE))
        return f"{path}?{query}" if query else path

    def row(self, row_id: int) -> str:
        """The page of one drawer's row."""
        return row_path(self.datasette, self.database, row_id)

    def drawer(self, drawer: Mapping[str, Any]) -> str:
        """The page of one drawer; one whose name is empty is found by its row."""
        return drawer_path(self.datasette, self.database, drawer["drawer_id"] or str(drawer["id"]))

    def drawer_from_here(self, drawer: Mapping[str, Any]) -> str:
        """The page of one drawer, which leads back to this state."""
        path = self.drawer(drawer)
        return f"{path}?{urllib.parse.urlencode(self.pairs)}" if self.pairs else path

    def source(self, source_file: str) -> str:
        """The page of one source."""
        return source_path(self.datasette, self.database, source_file)

    def sql(self, statement: Statement) -> str:
        """Datasette's SQL page with a statement."""
        return sql_url(self.datasette, self.database, statement.sql, statement.parameters)


def sql_path(datasette: Any, database: str, request: SearchRequest, pairs: Iterable[Pair]) -> str:
    """The SQL page with a statement that gives the hits of this very page, to be changed there.

    Args:
        datasette: the Datasette instance.
        database: the palace's database.
        request: the search.
        pairs: its parameters, what is default left out.
    """
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in ("q", "wing", "room", "wing__isnull", "room__isnull", "n_results", "explain"):
            given.setdefault(name, []).append(value)
    if request.offset:
        given["next"] = [str(request.offset)]
    options = {name: values[0] if len(values) == 1 else values for name, values in given.items()}
    parameters = {
        "q": request.query,
        "wing": _argument(request.scope.wings),
        "room": _argument(request.scope.rooms),
        "n_results": str(request.n_results),
    }
    if options:
        parameters["options"] = json.dumps(options, ensure_ascii=False)
    call = f"mempalace_search({', '.join(f':{name}' for name in parameters)})"
    return sql_url(datasette, database, HITS_SQL.format(measure="score", call=call), parameters)


def _argument(values: tuple[str | None, ...]) -> str:
    """Wings or rooms as an argument of mempalace_search: all, one, or a JSON array of several."""
    if not values:
        return ""
    if len(values) == 1 and values[0] is not None and not values[0].startswith("["):
        return values[0]
    return json.dumps(values, ensure_ascii=False)


HITS_SQL = """select
  json_extract(hit.value, '$.rank') as rank,
  round(json_extract(hit.value, '$.{measure}'), 3) as {measure},
  drawers.id,
  drawers.wing,
  drawers.room,
  drawers.source_file,
  drawers.text
from
  json_each((select {call})) as hit
  join drawers on drawers.id = json_extract(hit.value, '$.id')
order by
  rank"""
