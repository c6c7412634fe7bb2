"""One parameter of any face as what it must be: a text, a whole number, a number, one of a few words, a flag, a date."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from .errors import BadParameter

FLAGS = {
    "1": True,
    "true": True,
    "on": True,
    "yes": True,
    "0": False,
    "false": False,
    "off": False,
    "no": False,
}


def read_one(name: str, parameters: Mapping[str, Any]) -> str | None:
    """One parameter as a text; None when it is not set.

    Args:
        name: the parameter.
        parameters: as any face has them.
    Raises:
        BadParameter: when it is given more than once.
    """
    value = parameters.get(name)
    if isinstance(value, (list, tuple)):
        given = [item for item in value if item not in ("", None)]
        if len(given) > 1:
            raise BadParameter(name, value, "it must be given once")
        value = given[0] if given else None
    return None if value is None or value == "" else str(value).strip() or None


def read_whole(name: str, parameters: Mapping[str, Any], low: int, high: int, default: int) -> int:
    """One parameter as a whole number.

    Args:
        name: the parameter.
        parameters: as any face has them.
        low, high: the least and the greatest allowed.
        default: what it is when it is not set.
    Raises:
        BadParameter: when it is none, or lies outside.
    """
    text = read_one(name, parameters)
    if text is None:
        return default
    allowed = f"it must be a whole number from {low} to {high:,}"
    try:
        number = float(text) if "e" not in text.lower() and "_" not in text else math.nan
        if not number.is_integer() or not low <= number <= high:
            raise ValueError
    except (ValueError, OverflowError):
        raise BadParameter(name, text, allowed) from None
    return int(number)


def read_number(
    name: str, parameters: Mapping[str, Any], low: float, high: float, default: float, allowed: str
) -> float:
    """One parameter as a number.

    Args:
        name: the parameter.
        parameters: as any face has them.
        low, high: the least and the greatest allowed.
        default: what it is when it is not set.
        allowed: the same as a sentence.
    Raises:
        BadParameter: when it is none, or lies outside.
    """
    text = read_one(name, parameters)
    if text is None:
        return default
    try:
        number = float(text)
        if "_" in text or not low <= number <= high:
            raise ValueError
    except ValueError:
        raise BadParameter(name, text, allowed) from None
    return number


def read_choice(name: str, parameters: Mapping[str, Any], allowed: tuple[str, ...], default: str) -> str:
    """One parameter as one of a few words.

    Args:
        name: the parameter.
        parameters: as any face has them.
        allowed: the words.
        default: what it is when it is not set.
    Raises:
        BadParameter: when it is another word.
    """
    text = read_one(name, parameters)
    if text is not None and text not in allowed:
        raise BadParameter(name, text, f"it must be one of {', '.join(allowed)}")
    return text or default


def read_flag(name: str, parameters: Mapping[str, Any], default: bool) -> bool:
    """One parameter as a flag.

    Args:
        name: the parameter.
        parameters: as any face has them.
        default: what it is when it is not set.
    Raises:
        BadParameter: when it is neither yes nor no.
    """
    text = read_one(name, parameters)
    if text is None:
        return default
    if text.lower() not in FLAGS:
        raise BadParameter(name, text, "it must be 1 or 0, true or false")
    return FLAGS[text.lower()]


def read_date(name: str, text: str | None) -> str | None:
    """A date or date-time in ISO 8601 as SQLite's `datetime()` shows it: UTC when it names a zone, else as it is.

    Args:
        name: the parameter.
        text: what it holds; None when it is not set.
    Raises:
        BadParameter: when it is no date.
    """
    if text is None:
        return None
    allowed = "it must be a date such as 2026-03-14 or a time such as 2026-03-14T09:30:00"
    if len(text) < 10:
        raise BadParameter(name, text, allowed)
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
        if moment.tzinfo is not None:
            moment = moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise BadParameter(name, text, allowed) from None
    return f"{moment.year:04d}-{moment:%m-%d %H:%M:%S}"
