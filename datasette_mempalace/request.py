"""What a person asks for: one `SearchRequest`, read and checked in one place for every face.

The page, the JSON API, the SQL function, the command line and Python all hand their parameters, under the same
names, to `parse_request`; so a value that is wrong is wrong everywhere, in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .config import RANKINGS, STRATEGIES, Settings
from .errors import BadInput, BadParameter
from .filters import ALLOWED, OPERATORS, Filter, is_filter, make_filter
from .parameter_values import read_choice, read_date, read_flag, read_number, read_one, read_whole
from .scope import DATE_COLUMNS, Scope
from .text import clean_text

PARAMETERS = (
    "q", "wing", "room", "source_file", "since", "before", "ids", "n_results", "max_distance",
    "candidate_strategy", "ranking", "vector_disabled", "next", "facets", "context",
    "wing__isnull", "room__isnull", "source_file__isnull", "date_column",
    "explain",
)  # fmt: skip
MAX_QUERY = 10_000
MAX_ID = 2**63 - 1
MAX_FILTERS = 20
# Every facet link and chip repeats them.
MAX_VALUES = 100


@dataclass(frozen=True)
class SearchRequest:
    """One search, checked.

    Attributes:
        query: the words, trimmed, never blank.
        scope: the drawers searched.
        n_results: hits wanted, 1 to the setting `max_n_results`.
        max_distance: the farthest cosine distance allowed, in (0, 2]; 0 for no limit.
        offset: how many hits of the same search were shown before.
        dates: `since` and `before` as they were written.
        closet_texts: whether hits say what the closet says that lifted them; no parameter, but whether the asker may read closets.
    """

    query: str
    scope: Scope = field(default_factory=Scope)
    n_results: int = 10
    max_distance: float = 0.0
    candidate_strategy: str = "union"
    ranking: str = "palace"
    vector_disabled: bool = False
    offset: int = 0
    facets: bool = False
    context: bool = True
    explain: bool = False
    dates: tuple[str | None, str | None] = (None, None)
    closet_texts: bool = True

    def allows(self, distance: float | None) -> bool:
        """Whether a hit may lie so far away; where there is a limit, a distance that is not known is too far."""
        return not self.max_distance or (distance is not None and distance <= self.max_distance)


def parse_request(
    parameters: Mapping[str, Any], settings: Settings, *, strict: bool = False, allow_blank: bool = False
) -> SearchRequest:
    """Read a search from parameters as any face has them.

    Args:
        parameters: names of `PARAMETERS`, or of a column filter such as `added_by__exact`, to a text, a number, a flag,
            or a list of them; "" and None mean "not set".
        settings: where the defaults and the greatest `n_results` come from.
        strict: whether a name that is not known is refused (SQL options, command line) or left alone (a URL).
        allow_blank: whether a missing or blank `q` is allowed (a page before its first search).
    Returns:
        the request.
    Raises:
        BadInput: naming the parameter, its value and what is allowed.
    """
    _check_names(parameters, strict)
    query = _query(parameters.get("q"), allow_blank)
    since, before = (read_one("since", parameters), read_one("before", parameters))
    return SearchRequest(
        query=query,
        scope=_scope(parameters, since, before),
        n_results=read_whole("n_results", parameters, 1, settings.max_n_results, settings.n_results),
        max_distance=read_number(
            "max_distance", parameters, 0, 2, 0, "it must be a number from 0 (no limit) to 2"
        ),
        candidate_strategy=read_choice(
            "candidate_strategy", parameters, STRATEGIES, settings.candidate_strategy
        ),
        ranking=read_choice("ranking", parameters, RANKINGS, settings.ranking),
        vector_disabled=read_flag("vector_disabled", parameters, False),
        offset=read_whole("next", parameters, 0, settings.max_n_results, 0),
        facets=read_flag("facets", parameters, False),
        context=read_flag("context", parameters, True),
        explain=read_flag("explain", parameters, False),
        dates=(since, before),
    )


def request_parameters(request: SearchRequest, settings: Settings) -> list[tuple[str, str]]:
    """The request as URL parameters, what is default left out; `parse_request` reads them back.

    Args:
        request: the search.
        settings: the defaults to leave out.
    Returns:
        name and value, ready to be URL-encoded; `next` is not among them.
    """
    pairs: list[tuple[str, str]] = [("q", request.query)] if request.query else []
    scope = request.scope
    for name, values in (("wing", scope.wings), ("room", scope.rooms), ("source_file", scope.source_files)):
        pairs += [(name, value) if value is not None else (f"{name}__isnull", "1") for value in values]
    pairs += [(name, value) for name, value in zip(("since", "before"), request.dates, strict=True) if value]
    if scope.date_column != "filed_at":
        pairs.append(("date_column", scope.date_column))
    pairs += [(condition.name, condition.value) for condition in scope.filters]
    if scope.ids is not None:
        pairs.append(("ids", ",".join(map(str, scope.ids))))
    for name in ("n_results", "candidate_strategy", "ranking"):
        if getattr(request, name) != getattr(settings, name):
            pairs.append((name, str(getattr(request, name))))
    if request.max_distance:
        pairs.append(("max_distance", f"{request.max_distance:g}"))
    for name in ("vector_disabled", "explain"):
        if getattr(request, name):
            pairs.append((name, "1"))
    return pairs


def _check_names(parameters: Mapping[str, Any], strict: bool) -> None:
    """Refuse a filter on a column that there is not, and, where asked, every name that is not known."""
    for name in parameters:
        if name in PARAMETERS or is_filter(name):
            continue
        if "__" in name and not name.startswith("_") and name.rpartition("__")[2] in OPERATORS:
            raise BadParameter(name, parameters[name], f"the column of a filter must be {ALLOWED}")
        if strict:
            allowed = f"it must be one of {', '.join(PARAMETERS)}, or a filter such as added_by__exact"
            raise BadParameter("options", name, allowed)


def _query(value: Any, allow_blank: bool) -> str:
    if isinstance(value, (list, tuple)):
        value = value[0] if len(value) == 1 else value or None
    if value is not None and not isinstance(value, (str, int, float)):
        raise BadParameter("q", value, "it must be one text: the words to search for")
    text, _ = clean_text(str(value) if value is not None else "")
    text = text.strip()
    if not text and not allow_blank:
        raise BadInput("q is missing or blank: give it the words to search for.")
    if len(text) > MAX_QUERY:
        raise BadParameter("q", text[:60] + "…", f"it must be at most {MAX_QUERY:,} characters long")
    return text


def _scope(parameters: Mapping[str, Any], since: str | None, before: str | None) -> Scope:
    bounds = read_date("since", since), read_date("before", before)
    if bounds[0] and bounds[1] and bounds[0] >= bounds[1]:
        raise BadParameter("since", since, f"it must lie before the end of the window, {before!r}")
    return Scope(
        wings=_values("wing", parameters),
        rooms=_values("room", parameters),
        source_files=_values("source_file", parameters),
        since=bounds[0],
        before=bounds[1],
        ids=_ids(parameters.get("ids")),
        date_column=read_choice("date_column", parameters, DATE_COLUMNS, "filed_at"),
        filters=_filters(parameters),
    )


def _filters(parameters: Mapping[str, Any]) -> tuple[Filter, ...]:
    """The column filters among the parameters; one that is given twice must hold twice, as on a table page."""
    found: list[Filter] = []
    for name, given in parameters.items():
        if name in PARAMETERS or not is_filter(name):
            continue
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if isinstance(value, dict) or (isinstance(value, (list, tuple)) and not name.endswith("in")):
                raise BadParameter(name, value, "it must be a text or a number")
            if value is None or value == "":
                continue
            if isinstance(value, bool):
                value = int(value)
            made = make_filter(name, clean_text(str(value))[0])
            if made is not None and made not in found:
                found.append(made)
    if len(found) > MAX_FILTERS:
        raise BadParameter("filters", len(found), f"there can be at most {MAX_FILTERS}")
    return tuple(found)


def _values(name: str, parameters: Mapping[str, Any]) -> tuple[str | None, ...]:
    given = parameters.get(name)
    values = list(given) if isinstance(given, (list, tuple)) else ([] if given is None else [given])
    found: list[str | None] = []
    for value in values:
        if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int, float))):
            raise BadParameter(name, value, "it must be a text, or a list of texts")
        text = None if value is None else clean_text(str(value))[0]
        if text != "" and text not in found:
            found.append(text)
        if len(found) > MAX_VALUES:
            raise BadParameter(name, len(values), f"there can be at most {MAX_VALUES} values")
    if read_flag(f"{name}__isnull", parameters, False) and None not in found:
        found.append(None)
    return tuple(found)


def _ids(value: Any) -> tuple[int, ...] | None:
    """Integer ids from a list, one number or a text with commas; an empty list allows nothing."""
    if value is None or value == "" or value == [""]:
        return None
    parts: list[Any] = []
    for item in value if isinstance(value, (list, tuple)) else [value]:
        # SQL hands a JSON array on as its text when it comes out of a subquery.
        parts += item.strip().strip("[]").replace(",", " ").split() if isinstance(item, str) else [item]
    try:
        if any(isinstance(part, bool) or (isinstance(part, float) and part != int(part)) for part in parts):
            raise ValueError
        ids = tuple(dict.fromkeys(int(part) for part in parts))
    except (TypeError, ValueError, OverflowError):
        raise BadParameter("ids", value, "it must be whole numbers: the drawers' id column") from None
    if any(abs(number) > MAX_ID for number in ids):
        raise BadParameter("ids", value, "it must be whole numbers of at most 64 bits")
    return ids
