"""A treemap: rectangles whose areas are as the numbers, as square as can be. Pure.

The layout is that of Bruls, Huizing and van Wijk, "Squarified treemaps" (2000): the largest first, in strips along the
shorter side, each strip ended as soon as one more rectangle would make its worst one thinner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Box:
    """A rectangle, its corner at the left and top, in any unit."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        """Width times height."""
        return self.width * self.height


class Kept(NamedTuple):
    """How many of the largest are drawn one by one, and the sum of the others."""

    shown: int
    rest: float


def squarify(sizes: Sequence[float], frame: Box) -> list[Box]:
    """Divide a frame.

    Args:
        sizes: numbers above 0, the largest first.
        frame: what they fill.
    Returns:
        a box for each size, in the same order: areas in proportion, no two of them overlapping, together the frame.
    """
    total = sum(sizes)
    if not sizes or frame.area <= 0:
        return [Box(frame.x, frame.y, 0, 0) for _ in sizes]
    areas = [size / total * frame.area for size in sizes]
    boxes: list[Box] = []
    left = frame
    while len(boxes) < len(areas):
        start = len(boxes)
        # The last strip takes what is left, so that rounding leaves no gap.
        count = _strip_length(areas[start:], min(left.width, left.height))
        strip, left = _lay(areas[start : start + count], left, last=start + count == len(areas))
        boxes += strip
    return boxes


def keep_largest(sizes: Sequence[float], area: float, least: float, most: int) -> Kept:
    """How many of the largest can be drawn so that each has room for its name, when they share the whole area.

    Args:
        sizes: numbers above 0, the largest first.
        area: what those that are drawn share.
        least: the smallest area that is worth drawing.
        most: how many are drawn at most.
    """
    total = 0.0
    shown = 0
    for size in sizes[:most]:
        if shown and size / (total + size) * area < least:
            break
        total += size
        shown += 1
    return Kept(shown, sum(sizes[shown:]))


def gather_small(sizes: Sequence[float], area: float, least: float, most: int) -> Kept:
    """How many of the largest are drawn when the others are drawn too, as one.

    Args:
        sizes, area, least, most: as for `keep_largest`; here all share the area.
    """
    total = sum(sizes)
    shown = sum(size / total * area >= least for size in sizes[:most]) if total else 0
    # One alone takes no more room under its own name than as "1 more".
    if len(sizes) - shown == 1:
        shown = len(sizes)
    return Kept(shown, sum(sizes[shown:]))


def _strip_length(areas: Sequence[float], side: float) -> int:
    total, worst = 0.0, float("inf")
    for number, area in enumerate(areas):
        total += area
        thinnest = max(side**2 * areas[0] / total**2, total**2 / (side**2 * area))
        if thinnest > worst:
            return number
        worst = thinnest
    return len(areas)


def _lay(areas: Sequence[float], frame: Box, last: bool) -> tuple[list[Box], Box]:
    """A strip along the shorter side of a frame, and the frame that is left."""
    upright = frame.width >= frame.height
    side, across = (frame.height, frame.width) if upright else (frame.width, frame.height)
    total = sum(areas)
    depth = across if last else min(total / side, across)
    boxes, at = [], 0.0
    for area in areas:
        length = area / total * side
        boxes.append(
            Box(frame.x, frame.y + at, depth, length)
            if upright
            else Box(frame.x + at, frame.y, length, depth)
        )
        at += length
    if upright:
        return boxes, Box(frame.x + depth, frame.y, frame.width - depth, frame.height)
    return boxes, Box(frame.x, frame.y + depth, frame.width, frame.height - depth)
