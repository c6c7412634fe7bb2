"""How a view of data describes itself: an `Operation` beside the view, from which `openapi` makes its part of the document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

View = TypeVar("View", bound=Callable[..., Any])
Schema = dict[str, Any]
JSON = "application/json"


@dataclass(frozen=True)
class Operation:
    """What a view takes and answers.

    Attributes:
        summary: what it is for, in a line.
        answer: what stands in an answer of 200: a name of `schemas.SCHEMAS`, or a schema.
        parameters: the names of `parameters.PARAMETERS` that it reads from the query, in order.
        media_type: of the answer.
        text_errors: whether errors are plain text rather than JSON, as in CSV.
        headers: headers of the answer, each with its description.
    """

    summary: str
    answer: str | Schema
    parameters: tuple[str, ...] = ()
    media_type: str = JSON
    text_errors: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def described(operation: Operation) -> Callable[[View], View]:
    """Let a view carry the description of its operation; its path comes from the route."""

    def with_operation(view: View) -> View:
        view.operation = operation  # type: ignore[attr-defined]
        return view

    return with_operation


def operation_of(view: Any) -> Operation | None:
    """The description that a view carries, or None."""
    found: Operation | None = getattr(view, "operation", None)
    return found
