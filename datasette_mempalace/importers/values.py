"""Values of a record as a drawer has them: texts without half characters, whole numbers, dates, metadata. What cannot be one
of these makes the record unusable.
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime, timezone
from typing import Any

from ..text import clean_text

ADDED_BY = "import"
_DATES = frozenset({"filed_at", "authored_at", "content_date"})
_CLOCK = re.compile(r"[0-9]{10}(\.[0-9]+)?|[0-9]{13}")  # seconds or milliseconds since 1970, as text
_LARGEST = 2**53
_DEEPEST = 100


class Unusable(Exception):
    """A record that makes no drawer; its text is the reason."""


class Values:
    """Reads values.

    Attributes:
        replaced: how many characters were no characters and became U+FFFD.
    """

    def __init__(self) -> None:
        self.replaced = 0

    def field(self, name: str, value: Any) -> Any:
        """The value of a field.

        Raises:
            Unusable: with the reason.
        """
        if value is None:
            return None
        if name == "chunk_index":
            return _whole(value)
        if name in _DATES:
            return _date(name, self._clean(value) if isinstance(value, str) else value)
        if isinstance(value, str):
            return self._clean(value) if name == "text" else self._clean(value) or None
        if name != "text" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        raise Unusable(f"{name}: it is {kind_of(value)}, not a text")

    def metadata(self, rest: dict[str, Any]) -> dict[str, Any]:
        """The keys without a field; the object under `metadata`, JSON text too, is opened into them."""
        own = rest.get("metadata")
        if isinstance(own, str):
            try:
                own = json.loads(own, parse_constant=str)
            except (ValueError, RecursionError):
                own = None
        if isinstance(own, dict):
            rest = {**own, **{key: value for key, value in rest.items() if key != "metadata"}}
        if rest.get("added_by") == ADDED_BY:
            rest = {key: value for key, value in rest.items() if key != "added_by"}
        cleaned: dict[str, Any] = self._clean_deep(rest)
        return cleaned

    def _clean(self, text: str) -> str:
        cleaned, replaced = clean_text(text)
        self.replaced += replaced
        return cleaned

    def _clean_deep(self, value: Any, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise Unusable("nested too deeply")
        if isinstance(value, str):
            return self._clean(value)
        if isinstance(value, dict):
            return {self._clean(str(key)): self._clean_deep(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._clean_deep(item, depth + 1) for item in value]
        if isinstance(value, float) and not math.isfinite(value):  # 1e999: JSON knows no infinity
            return str(value)
        return value


def kind_of(value: Any) -> str:
    """What a JSON value is, for a sentence."""
    for kinds, name in (
        (bool, "true or false"),
        ((int, float), "a number"),
        (str, "a text"),
        (list, "a list"),
        (dict, "an object"),
    ):
        if isinstance(value, kinds):  # type: ignore[arg-type]
            return name
    return "null"


def _whole(value: Any) -> int | None:
    if value == "":
        return None
    try:
        if isinstance(value, (bool, dict, list)) or (number := float(value)) != int(number):
            raise ValueError
        if abs(number) > _LARGEST:
            raise OverflowError
    except (ValueError, OverflowError):
        raise Unusable(f"chunk_index: {str(value)[:40]!r} is not a whole number") from None
    return int(number)


def _date(name: str, value: Any) -> str | None:
    """A date as text; a number that counts seconds or milliseconds since 1970 becomes one, any other stays as it is."""
    number = value
    if isinstance(value, str):
        if not _CLOCK.fullmatch(value):
            return value or None
        number = float(value)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise Unusable(f"{name}: it is {kind_of(value)}, not a date")
    if 1e8 <= number < 1e11:  # seconds, 1973 to 5138; a smaller number is a year, or a day without hyphens
        return datetime.fromtimestamp(number, timezone.utc).isoformat()
    if 1e12 <= number < 1e14:  # milliseconds, from 2001
        return datetime.fromtimestamp(number / 1000, timezone.utc).isoformat()
    return str(value)
