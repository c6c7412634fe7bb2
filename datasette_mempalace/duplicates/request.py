"""What is asked of duplicates: one `DuplicatesRequest`, read and checked for every face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..config import Settings
from ..errors import BadParameter
from ..parameter_values import read_number, read_whole
from ..request import SearchRequest, parse_request

PARAMETERS = (
    "threshold", "min_characters", "n_results", "next", "wing", "room", "source_file", "since", "before", "date_column",
    "ids", "wing__isnull", "room__isnull", "source_file__isnull",
)  # fmt: skip
_OF_SEARCH = frozenset({
    "q", "candidate_strategy", "ranking", "vector_disabled", "facets", "context", "explain", "max_distance",
})  # fmt: skip
THRESHOLD, LOWEST = 0.95, 0.5
_THRESHOLDS = f"it must be a number from {LOWEST} to 1 (equal texts alone)"
MIN_CHARACTERS = 40  # "Thanks!" twice is no duplicate worth a look
CLUSTERS = 20


@dataclass(frozen=True)
class DuplicatesRequest:
    """One question, checked.

    Attributes:
        search: where to look (`scope`) and how many clusters are wanted (`n_results`).
        threshold: from which similarity on two drawers are near copies; 1 finds equal texts alone.
        min_characters: shorter texts are left out.
        after: the id that the call before had come to; 0 begins.
    """

    search: SearchRequest = field(default_factory=lambda: SearchRequest(query="", n_results=CLUSTERS))
    threshold: float = THRESHOLD
    min_characters: int = MIN_CHARACTERS
    after: int = 0


def parse_duplicates(
    parameters: Mapping[str, Any], settings: Settings, *, strict: bool = False
) -> DuplicatesRequest:
    """Read a question from parameters as any face has them.

    Args:
        parameters: names of `PARAMETERS`, or of a column filter, to a text, a number, a flag, or a list of them.
        settings: where the greatest `n_results` comes from.
        strict: whether a name that is not known is refused (command line, Python) or left alone (a URL).
    Raises:
        BadInput: naming the parameter, its value and what is allowed.
    """
    if strict and (foreign := sorted(_OF_SEARCH & parameters.keys())):
        allowed = f"it must be one of {', '.join(PARAMETERS)}, or a filter such as added_by__exact"
        raise BadParameter("options", foreign[0], allowed)
    own = {"threshold", "min_characters", "next", "n_results"}
    rest = {name: value for name, value in parameters.items() if name not in own | _OF_SEARCH}
    wanted = read_whole(
        "n_results", parameters, 1, settings.max_n_results, min(CLUSTERS, settings.max_n_results)
    )
    return DuplicatesRequest(
        search=parse_request({**rest, "n_results": wanted}, settings, strict=strict, allow_blank=True),
        threshold=read_number("threshold", parameters, LOWEST, 1, THRESHOLD, _THRESHOLDS),
        min_characters=read_whole("min_characters", parameters, 0, 1_000_000, MIN_CHARACTERS),
        after=read_whole("next", parameters, 0, 2**53, 0),
    )
