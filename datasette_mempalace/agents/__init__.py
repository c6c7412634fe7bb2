"""The tools that agents use, as functions over a palace: search, read, list, look for duplicates, tell the state.

They only read. An answer is of plain JSON types and bounded: what does not fit is left out, its `notes` say so, and
`next` or an offset leads to the rest. Which palace, and over which wire, is the business of the callers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..palace import Palace
from . import finding, reading, schemas
from .bounds import Answer
from .reading import UrlOf
from .schemas import TOOLS, check_arguments

__all__ = ["TOOLS", "call_tool"]

_RUN: dict[str, Callable[..., Answer]] = {
    schemas.SEARCH.name: finding.search,
    schemas.GET_DRAWER.name: reading.get_drawer,
    schemas.LIST_WINGS.name: reading.list_wings,
    schemas.LIST_ROOMS.name: reading.list_rooms,
    schemas.CHECK_DUPLICATE.name: finding.check_duplicate,
    schemas.STATUS.name: reading.status,
}


def call_tool(
    palace: Palace, name: str, arguments: Mapping[str, Any] | None, url_of: UrlOf | None = None
) -> Answer:
    """Run one tool.

    Args:
        palace: the palace.
        name: one of `TOOLS`.
        arguments: as the agent gave them.
        url_of: gives the page of a drawer by its integer id, where there are pages.
    Returns:
        the answer, as the tool's `output_schema` describes it.
    Raises:
        BadInput: for an argument that is not allowed, or a drawer that does not exist.
    """
    given = check_arguments(TOOLS[name], arguments)
    return _RUN[name](palace, url_of, **given)
