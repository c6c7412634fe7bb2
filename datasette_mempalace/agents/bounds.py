"""Keeps answers to agents within bounds: lists that fit, names and texts that are not endless, and pages of both."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..errors import BadParameter
from .schemas import LONGEST_NAME

Answer = dict[str, Any]

ANSWER_CHARACTERS = 40_000  # of a whole answer as JSON, about ten thousand of a language model's tokens
METADATA_CHARACTERS = 4_000


def fit(entries: Iterable[Answer]) -> list[Answer]:
    """The first entries that an answer has room for, at least one."""
    fitting: list[Answer] = []
    left = ANSWER_CHARACTERS
    for entry in entries:
        left -= len(json.dumps(entry, ensure_ascii=False))
        if left < 0 and fitting:
            break
        fitting.append(entry)
    return fitting


def page(
    what: str, entries: list[Answer], offset: int, total: int
) -> tuple[list[Answer], str | None, list[str]]:
    """As much of a list as fits, where it goes on, and what to say of it."""
    shown = fit(entries)
    end = offset + len(shown)
    if not shown or end >= total:
        return shown, None, []
    note = f"{what.capitalize()} {offset + 1:,} to {end:,} of {total:,}: call again with next set to '{end}'."
    return shown, str(end), [note]


def offset_of(token: str | None) -> int:
    """The place in a list that a `next` stands for.

    Raises:
        BadParameter: when it stands for none.
    """
    if token is None or not token.strip():
        return 0
    if not (token.isascii() and token.isdigit()):
        raise BadParameter("next", token, "it must be the `next` of an answer before")
    return int(token[:15])


def metadata_of(stored: str | None) -> tuple[Answer, list[str]]:
    """A drawer's other metadata, as much as fits, and the names of the keys that do not."""
    try:
        metadata = json.loads(stored or "{}", parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        metadata = {}
    kept: Answer = {}
    left_out, left = [], METADATA_CHARACTERS
    for key, value in (metadata if isinstance(metadata, dict) else {}).items():
        size = len(key) + len(json.dumps(value, ensure_ascii=False))
        if size <= left:
            kept[key] = value
            left -= size
        else:
            left_out.append(str(bounded(key)))
    return kept, left_out[:20]


def bounded(value: Any) -> Any:
    """A value that stands in a list; a text of monstrous length is cut."""
    if isinstance(value, str) and len(value) > LONGEST_NAME:
        return value[: LONGEST_NAME - 1] + "…"
    return value


def cut_text(text: str, width: int) -> str:
    """The beginning of a text, to the end of a word where one is near."""
    end = max(text.rfind(" ", width // 2, width), text.rfind("\n", width // 2, width))
    return text[: end if end > 0 else width].rstrip() + " […]"
