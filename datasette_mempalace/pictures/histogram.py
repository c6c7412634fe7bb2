"""A histogram: one bar for each number, their heights in proportion, with as many labels as have room. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST = 2.0  # pixels: a bar that stands for something is seen
GAP = 0.2  # of a bar's share of the width
WIDEST = 12.5  # per cent: few bars are no walls
LABEL_CHARACTERS = 44  # of all labels together, in the narrowest picture


@dataclass(frozen=True)
class Bar:
    """One bar, hanging from `top` to the foot of the picture.

    Attributes:
        x, width: of the bar, per cent of the picture's width.
        slot, slot_width: of the part of the picture that belongs to it, per cent.
        top, height: in pixels; the height of an empty one is 0.
        middle: where its labels stand, per cent.
        labelled: whether there is room for its label below the foot.
        numbered: whether there is room for its number above it.
    """

    x: float
    width: float
    slot: float
    slot_width: float
    top: float
    height: float
    middle: float
    labelled: bool
    numbered: bool


def lay_bars(counts: Sequence[int], labels: Sequence[str], height: float) -> list[Bar]:
    """Place the bars.

    Args:
        counts: numbers of at least 0.
        labels: one for each.
        height: of the tallest bar, in pixels.
    Returns:
        a bar for each number.
    """
    if not counts:
        return []
    share = 100 / len(counts)
    slot = min(share, WIDEST)
    tallest = max(counts) or 1
    every = _every(max(map(len, labels)), len(counts))
    digits = len(counts) * (max(len(f"{count:,}") for count in counts) + 1)
    bars = []
    for number, count in enumerate(counts):
        tall = max(LEAST, height * count / tallest) if count else 0.0
        bars.append(
            Bar(
                x=slot * (number + GAP / 2),
                width=slot * (1 - GAP),
                slot=slot * number,
                slot_width=slot,
                top=height - tall,
                height=tall,
                middle=slot * (number + 0.5),
                labelled=number % every == 0,
                numbered=count > 0 and digits <= LABEL_CHARACTERS,
            )
        )
    return bars


def _every(longest: int, bars: int) -> int:
    """Each how-manyth label is written, so that none runs into the next."""
    return max(1, -(-bars * (longest + 2) // LABEL_CHARACTERS))
