"""The frame of what is answered as CSV about a palace: permission, cross-origin headers, errors as a line of text."""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasette import Response

from ..cells import cell, written
from ..errors import MempalaceError
from ..palace import Palace
from .access import View, cors_headers, palace_of, reading_only
from .api import attachment
from .operation import Operation


@dataclass(frozen=True)
class Table:
    """What is answered.

    Attributes:
        name: of the file, behind the database's.
        columns: the heading row.
        rows: by column; what else they have is left out.
        next_url: where the answer goes on, or None.
    """

    name: str
    columns: Sequence[str]
    rows: Iterable[Mapping[str, Any]]
    next_url: str | None = None


Read = Callable[[Any, Any, str, Palace], Awaitable[Table]]


def as_csv(summary: str, parameters: Sequence[str], headers: Mapping[str, str] | None = None) -> Operation:
    """The description of such an answer."""
    return Operation(
        summary, {"type": "string"}, tuple(parameters), "text/csv", headers=headers or {}, text_errors=True
    )


def csv_of_palace(read: Read) -> View:
    """A view that answers with CSV about the palace that the URL names, and with errors as text.

    Args:
        read: `read(datasette, request, database, palace)` returns the table; it may raise any MempalaceError.
    """

    async def view(request: Any, datasette: Any) -> Any:
        headers = cors_headers(datasette)
        try:
            database, palace = await palace_of(datasette, request)
            table = await read(datasette, request, database, palace)
        except MempalaceError as error:
            return Response.text(error.message + "\n", status=error.status, headers=headers)
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(table.columns)
        writer.writerows([cell(row[column]) for column in table.columns] for row in table.rows)
        headers |= {"Content-Disposition": attachment(f"{database}-{table.name}.csv")}
        if table.next_url:
            headers["Link"] = f'<{table.next_url}>; rel="next"'
        return Response(written(out.getvalue()), headers=headers, content_type="text/csv; charset=utf-8")

    # Not functools.wraps: Datasette asks a view for its parameters, and would be shown those of `read`.
    view.__name__, view.__doc__ = read.__name__, read.__doc__
    return reading_only(view)
