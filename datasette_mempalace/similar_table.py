"""`mempalace_similar` as a table: `select id, similarity from mempalace_similar(:drawer_id) order by rank`.

One row a hit, one column a key of a hit. No condition goes into the question; SQLite filters what was asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .config import Settings
from .errors import MempalaceError
from .palace import Palace
from .similar import SimilarRequest, parse_similar, run_similar
from .sql_tables import generation, give_table, read_options
from .table_function import Condition, Rows, Shape, TableError

COLUMNS = {
    "rank": "integer", "id": "integer", "drawer_id": "text", "wing": "text", "room": "text", "source_file": "text",
    "source_path": "text", "chunk_index": "integer", "chunk_total": "integer", "heading": "text", "text": "text",
    "snippet": "text", "similarity": "real", "distance": "real", "same_source": "integer", "same_text": "integer",
    "filed_at": "text", "authored_at": "text", "content_date": "text", "hall": "text", "added_by": "text",
}  # fmt: skip
PARAMETERS = ("similar_to", "n_results", "options")
SHAPE = Shape(name="mempalace_similar", columns=COLUMNS, parameters=PARAMETERS, key="id", order="rank")
REMEMBERED = 16


def register(connection: Any, palace: Palace) -> object:
    """Give a connection to a palace the table, where that works; what `give_table` promises."""
    remembered: OrderedDict[Any, Rows] = OrderedDict()

    def rows(arguments: dict[str, Any], conditions: tuple[Condition, ...], limit: int | None) -> Rows:
        key = (generation(connection), repr(arguments))
        if key not in remembered:
            try:
                request = read_arguments(palace.settings, *arguments.values())
                remembered[key] = Rows(run_similar(palace, request, connection)["results"] if request else [])
            except MempalaceError as error:
                raise TableError(error.message) from error
            while len(remembered) > REMEMBERED:
                remembered.popitem(last=False)
        return remembered[key]

    return give_table(connection, palace, SHAPE, rows)


def read_arguments(
    settings: Settings, drawer_id: Any, n_results: Any = None, options: Any = None
) -> SimilarRequest | None:
    """What the arguments of `mempalace_similar` ask for, in both of its forms; None when they name no drawer.

    Args:
        settings: the palace's settings.
        drawer_id: the drawer's `drawer_id`, or its integer id.
        n_results: how many hits at most, or NULL.
        options: a JSON object with any other of `similar.PARAMETERS`, or NULL.
    Raises:
        BadInput: for what is not allowed.
    """
    if drawer_id in (None, ""):
        return None
    given = {**read_options(options), "drawer_id": drawer_id}
    if n_results not in (None, ""):
        given["n_results"] = n_results
    return parse_similar(given, settings, strict=True)
