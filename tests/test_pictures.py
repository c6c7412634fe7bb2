"""Pictures tell the truth: areas and heights as the numbers, nothing overlapping, nothing outside."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_mempalace.pictures.histogram import LEAST, lay_bars
from datasette_mempalace.pictures.treemap import Box, gather_small, keep_largest, squarify

sizes = st.lists(st.integers(1, 10**6), min_size=1, max_size=60).map(
    lambda found: sorted(found, reverse=True)
)
frames = st.builds(Box, st.just(3.0), st.just(5.0), st.floats(1, 2000), st.floats(1, 2000))


@given(sizes, frames)
def test_areas_are_in_proportion_and_fill_the_frame(numbers, frame):
    boxes = squarify(numbers, frame)
    assert len(boxes) == len(numbers)
    for number, box in zip(numbers, boxes, strict=True):
        assert box.area == pytest.approx(frame.area * number / sum(numbers), rel=1e-6)


@given(sizes, frames)
def test_no_box_leaves_the_frame_or_lies_on_another(numbers, frame):
    boxes, slack = squarify(numbers, frame), 1e-6 * max(frame.width, frame.height)
    for box in boxes:
        assert box.x >= frame.x - slack
        assert box.y >= frame.y - slack
        assert box.x + box.width <= frame.x + frame.width + slack
        assert box.y + box.height <= frame.y + frame.height + slack
    for one, other in itertools.combinations(boxes, 2):
        across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
        down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
        assert across <= slack or down <= slack


def test_equal_sizes_in_a_square_are_squares():
    for box in squarify([1] * 16, Box(0, 0, 100, 100)):
        assert box.width == pytest.approx(25)
        assert box.height == pytest.approx(25)


def test_nothing_to_divide():
    assert squarify([], Box(0, 0, 100, 100)) == []


@given(sizes, st.integers(1, 40))
def test_the_largest_that_are_kept_have_room(numbers, most):
    shown, rest = keep_largest(numbers, 100_000, 2_000, most)
    assert 1 <= shown <= most
    assert sum(numbers[:shown]) + rest == sum(numbers)
    boxes = squarify(numbers[:shown], Box(0, 0, 400, 250))
    assert all(box.area >= 1_999 for box in boxes[1:])


@given(sizes, st.integers(1, 40))
def test_small_ones_are_gathered_never_one_alone(numbers, most):
    shown, rest = gather_small(numbers, 100_000, 2_000, most)
    assert sum(numbers[:shown]) + rest == sum(numbers)
    assert len(numbers) - shown != 1


@given(st.lists(st.integers(0, 10**6), max_size=60), st.integers(10, 200))
def test_bars_are_as_high_as_their_numbers(counts, height):
    bars = lay_bars(counts, ["Mar 2026"] * len(counts), height)
    tallest = max(counts, default=0) or 1
    for count, bar in zip(counts, bars, strict=True):
        assert bar.height == pytest.approx(max(LEAST, height * count / tallest) if count else 0)
        assert bar.top + bar.height == pytest.approx(height)
    for one, other in itertools.pairwise(bars):
        assert one.x + one.width <= other.x
        assert one.slot + one.slot_width == pytest.approx(other.slot)
    assert all(bar.x >= 0 and bar.x + bar.width <= 100 + 1e-9 for bar in bars)


def test_labels_are_thinned_out_where_there_are_many():
    few = lay_bars([1, 2, 3], ["Jan", "Feb", "Mar"], 100)
    many = lay_bars([1] * 48, ["Jan"] * 48, 100)
    assert all(bar.labelled and bar.numbered for bar in few)
    assert 4 <= sum(bar.labelled for bar in many) <= 12
    assert not any(bar.numbered for bar in many)
