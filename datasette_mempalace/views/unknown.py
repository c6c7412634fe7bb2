"""Parameters of a URL that a search does not know: named, with what may have been meant. They are not refused. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from ..filters import COLUMNS, is_filter
from ..request import PARAMETERS

MOST = 10
NEAR = 2
OF_EXPORTS = ("all",)


def unknown_parameters(given: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The names among a URL's parameters that say nothing to a search.

    Args:
        given: the parameters, each with its values; blank ones, and names with `_` before them, Datasette's, are passed over.
    Returns:
        {name, near} for the first `MOST`, `near` being the names that are nearly the same.
    """
    names = [
        name
        for name, values in given.items()
        if any(values)
        and not (name in PARAMETERS or name in OF_EXPORTS or name.startswith("_") or is_filter(name))
    ]
    known = dict.fromkeys((*PARAMETERS, *COLUMNS))
    return [
        {"name": name, "near": difflib.get_close_matches(name.lower(), known, n=NEAR)}
        for name in names[:MOST]
    ]
