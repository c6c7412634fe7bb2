"""What is answered as CSV about a palace; errors are a line of text."""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasette import Response

from ..cells import cell, written
from ..palace import Palace
from .access import View
from .api import attachment
from .data import of_palace
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

    def respond(database: str, table: Table) -> tuple[Any, str | None]:
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(table.columns)
        writer.writerows([cell(row[column]) for column in table.columns] for row in table.rows)
        headers = {"Content-Disposition": attachment(f"{database}-{table.name}.csv")}
        body = written(out.getvalue())
        return Response(body, headers=headers, content_type="text/csv; charset=utf-8"), table.next_url

    return of_palace(read, respond, lambda error: Response.text(error.message + "\n"))
