"""The pictures of the pages, ready for the templates: geometry from `pictures`, names cut to fit, links. Pure.

Widths are per cent and heights pixels, so that a picture follows the page's width without script and its texts keep
their size. What fits is judged at the narrowest width that a picture is shown at.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from .. import timeline as time
from ..pictures.histogram import lay_bars
from ..pictures.treemap import Box, gather_small, keep_largest, squarify
from ..text import counted

HEAD = 24  # pixels of a wing's name over its rooms
STRIP = 30  # pixels of what is left out, at the foot
LEAST_WING, MOST_WINGS = 4000, 40  # square pixels that a name needs; wings drawn
LEAST_ROOM, MOST_ROOMS = 1500, 60  # what can be pointed at, and mostly named; smaller ones are gathered
LETTER, MARGIN = 6.7, 12  # pixels of a letter at .8rem; left and right of a text
BAR_HEIGHT = 96

Url = Callable[..., str | None]


@dataclass(frozen=True)
class Format:
    """A size that a treemap is drawn in.

    Attributes:
        least_width: the narrowest it is shown at.
        height: for many rooms; few need less.
        base, per_room: the height for a few rooms is the one and the other times their number.
    """

    name: str
    width: float
    least_width: float
    height: float
    base: float
    per_room: float

    def for_rooms(self, number: int) -> Format:
        """The format with a height for so many rooms."""
        return replace(self, height=min(self.height, self.base + self.per_room * number))


FORMATS = (Format("wide", 740, 640, 400, 90, 32), Format("tall", 350, 340, 700, 120, 44))


def treemaps(wings: list[dict[str, Any]], entries: int, drawers: int, links: Any) -> list[dict[str, Any]]:
    """The wings and their rooms as treemaps, one for each format; none where there is nothing to compare.

    Args:
        wings: the largest first, each with its rooms, as `explore.holdings` has them.
        entries: how many there are, "no wing" among them.
        drawers: how many lie in all of them.
        links: out of the page's state.
    """
    formats = [form.for_rooms(sum(map(rooms_of, wings))) for form in FORMATS]
    if len(wings) == 1:
        wing = wings[0]
        if rooms_of(wing) < 2:
            return []
        return [_rooms_alone(wing, form, links) for form in formats]
    return [_nested(wings, entries, drawers, form, links) for form in formats] if wings else []


def rooms_of(wing: dict[str, Any]) -> int:
    """How many rooms a wing shows, "no room" among them."""
    return int(wing["room_count"]) + bool(wing["without_room"])


def _rooms_alone(wing: dict[str, Any], form: Format, links: Any) -> dict[str, Any]:
    rooms = wing["rooms"]
    counts = [room["count"] for room in rooms]
    shown, _ = keep_largest(counts, form.width * form.height, LEAST_WING, MOST_WINGS)
    rest = rooms_of(wing) - shown
    left = wing["count"] - sum(counts[:shown])
    frame = Box(0, 0, form.width, form.height - (STRIP if rest else 0))
    cells = [
        _cell(
            box,
            form,
            "room",
            named(room["room"], "room"),
            room["count"],
            links.place(wing["wing"], room["room"]),
        )
        for room, box in zip(rooms[:shown], squarify(counts[:shown], frame), strict=True)
    ]
    if rest:
        cells.append(_strip(form, rest, "more room", left, links.beside("rooms")))
    return {"form": form, "cells": cells, "shown": shown, "rest": rest}


def _nested(
    wings: list[dict[str, Any]], entries: int, drawers: int, form: Format, links: Any
) -> dict[str, Any]:
    counts = [wing["count"] for wing in wings]
    shown, _ = keep_largest(counts, form.width * form.height, LEAST_WING, MOST_WINGS)
    rest, left = entries - shown, drawers - sum(counts[:shown])
    frame = Box(0, 0, form.width, form.height - (STRIP if rest else 0))
    cells: list[dict[str, Any]] = []
    for wing, box in zip(wings[:shown], squarify(counts[:shown], frame), strict=True):
        cells += _wing(wing, box, form, links)
    if rest:
        cells.append(_strip(form, rest, "more wing", left, links.beside("wings")))
    return {"form": form, "cells": cells, "shown": shown, "rest": rest}


def _wing(wing: dict[str, Any], box: Box, form: Format, links: Any) -> list[dict[str, Any]]:
    """A wing's name over its rooms, or the name alone where there is one room or none of them could be read."""
    name, url = named(wing["wing"], "wing"), links.place(wing["wing"])
    counts = [room["count"] for room in wing["rooms"]]
    unlisted = wing["count"] - sum(counts)
    inner = Box(box.x, box.y + HEAD, box.width, max(1.0, box.height - HEAD))
    kept = gather_small([*counts, *([unlisted] if unlisted else [])], inner.area, LEAST_ROOM, MOST_ROOMS)
    shown = min(kept.shown, len(counts))
    if not shown or rooms_of(wing) == 1 or box.height < 2 * HEAD:
        return [_cell(box, form, "whole", name, wing["count"], url)]
    rest, left = rooms_of(wing) - shown, wing["count"] - sum(counts[:shown])
    more, frame = _cut_off(inner, left / wing["count"]) if rest else (None, inner)
    cells = [_cell(Box(box.x, box.y, box.width, HEAD), form, "wing", name, wing["count"], url)]
    for room, place in zip(wing["rooms"][:shown], squarify(counts[:shown], frame), strict=True):
        to_room = links.place(wing["wing"], room["room"])
        cells.append(_cell(place, form, "room", named(room["room"], "room"), room["count"], to_room, name))
    if more:
        cells.append(_cell(more, form, "more", counted(rest, "more room"), left, url, name))
    return cells


def _cut_off(frame: Box, share: float) -> tuple[Box, Box]:
    """A share of a frame at its right or its foot, whichever is shorter, and what is left of it."""
    if frame.width > 1.5 * frame.height:
        width = share * frame.width
        rest = Box(frame.x, frame.y, frame.width - width, frame.height)
        return Box(frame.x + rest.width, frame.y, width, frame.height), rest
    height = share * frame.height
    rest = Box(frame.x, frame.y, frame.width, frame.height - height)
    return Box(frame.x, frame.y + rest.height, frame.width, height), rest


def _cell(
    box: Box, form: Format, kind: str, name: str, number: int, url: str | None, within: str = ""
) -> dict[str, Any]:
    room = (box.width * form.least_width / form.width - MARGIN) / LETTER
    digits = f"{number:,}"
    # A bar over rooms and a flat box have the number beside the name, another box below it.
    in_line = kind == "wing" or box.height < 36
    label = fitted(name, room - (len(digits) + 2 if in_line else 0)) if box.height >= 18 else ""
    numbered = bool(label) and len(digits) <= room
    if kind == "wing" and not label:
        label = fitted(name, room)
    return {
        "kind": kind,
        "x": f"{100 * box.x / form.width:.3f}",
        "y": f"{box.y:.1f}",
        "width": f"{100 * box.width / form.width:.3f}",
        "height": f"{box.height:.1f}",
        "label": label if numbered or kind == "wing" else "",
        "number": digits if numbered else "",
        "in_line": in_line,
        "title": f"{within + ' / ' if within else ''}{name}: {counted(number, 'drawer')}",
        "url": url,
    }


def _strip(form: Format, rest: int, noun: str, drawers: int, url: str) -> dict[str, Any]:
    """At the foot of the picture, not in proportion: what would be too small to see."""
    name = f"{counted(rest, noun)}, {counted(drawers, 'drawer')}"
    box = Box(0, form.height - STRIP + 4, form.width, STRIP - 4)
    fits = (form.least_width - MARGIN) / LETTER
    return _cell(box, form, "more", name, drawers, url) | {
        "label": fitted(name, fits),
        "number": "",
        "title": name,
    }


def named(value: str | None, dimension: str) -> str:
    """A wing's or room's name, or what stands for none."""
    return f"no {dimension}" if value is None else value or f"{dimension} without a name"


def width_of(text: str) -> int:
    """About how many letters wide a text is: East Asian signs are twice as wide."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def fitted(text: str, room: float) -> str:
    """A text cut to some letters' width, with "…"; nothing where too little of it would be left."""
    if width_of(text) <= room:
        return text
    cut, used = "", 1
    for letter in text:
        used += width_of(letter)
        if used > room:
            break
        cut += letter
    return f"{cut.rstrip()}…" if used > 5 and len(cut) > 2 else ""


def histogram(timeline: dict[str, Any], links: Any) -> dict[str, Any] | None:
    """A timeline as a picture, each bar a link that narrows the page's state to its dates.

    Args:
        timeline: as `timeline.as_json` has it.
        links: out of the page's state.
    Returns:
        bars, rows of the same numbers for a table, the unit; None where nothing has a date.
    """
    unit, buckets = timeline["unit"], timeline["buckets"]
    if not buckets:
        return None
    starts = [date.fromisoformat(bucket["since"]) for bucket in buckets]
    labels = [time.label(unit, start) for start in starts]
    ticks = [time.tick(unit, start) for start in starts]
    counts = [bucket["count"] for bucket in buckets]
    urls = [links.narrowed(bucket["since"], bucket["before"], timeline["date_column"]) for bucket in buckets]
    bars = [
        {"bar": bar, "label": label, "tick": tick, "count": number, "url": url if number else None}
        for bar, label, tick, number, url in zip(
            lay_bars(counts, ticks, BAR_HEIGHT), labels, ticks, counts, urls, strict=True
        )
    ]
    return {"bars": bars, "unit": unit, "height": BAR_HEIGHT, "said": _said(unit, labels)}


def _said(unit: str, labels: Sequence[str]) -> str:
    """What the bars stand for, as the end of a sentence: "in each month from Jan 2026 to Nov 2026"."""
    first, last = labels[0], labels[-1]
    return (
        f"in each {unit}, {first} to {last}"
        if len(labels) > 1
        else f"on {first}"
        if unit == "day"
        else f"in {first}"
    )
