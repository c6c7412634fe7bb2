"""Days to buckets: all of them counted once, in order, without a gap, never more than fit."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_mempalace.timeline import (
    LAST,
    MOST,
    UNITS,
    bucket_start,
    label,
    make_timeline,
    next_start,
    tick,
)

days = st.dates(date(1, 1, 1), LAST)


def counted(found):
    return {bucket.start.isoformat(): bucket.count for bucket in found.buckets if bucket.count}


@given(st.dictionaries(days, st.integers(1, 9), max_size=40), st.integers(0, 5))
def test_every_day_is_counted_once_in_few_buckets_without_a_gap(given_days, undated):
    found = make_timeline({day.isoformat(): number for day, number in given_days.items()}, undated)
    assert sum(bucket.count for bucket in found.buckets) == found.dated == sum(given_days.values())
    assert found.undated == undated
    assert len(found.buckets) <= MOST
    for one, other in zip(found.buckets, found.buckets[1:], strict=False):
        assert one.before == other.start
    for day in given_days:
        assert any(bucket.start <= day < bucket.before for bucket in found.buckets)
    if found.buckets:
        assert found.buckets[0].count
        assert found.buckets[-1].count


@pytest.mark.parametrize("unit", UNITS)
@given(day=days)
def test_a_bucket_holds_its_day_and_ends_where_the_next_begins(unit, day):
    start = bucket_start(unit, day)
    assert start <= day < next_start(unit, start)
    assert bucket_start(unit, next_start(unit, start) - timedelta(days=1)) == start
    assert label(unit, start)
    assert tick(unit, start)


@pytest.mark.parametrize(
    ("first", "last", "unit", "buckets"),
    [
        ("2026-03-02", "2026-03-02", "day", 1),
        ("2026-03-02", "2026-04-18", "day", 48),
        ("2026-03-02", "2026-04-19", "week", 7),
        ("2025-12-30", "2026-11-20", "week", 47),
        ("2023-01-31", "2026-11-20", "month", 47),
        ("1980-01-01", "2026-11-20", "year", 47),
        ("1926-01-01", "2026-11-20", "decade", 11),
        ("0044-03-15", "2026-11-20", "century", 21),
    ],
)
def test_the_unit_is_the_shortest_that_fits(first, last, unit, buckets):
    found = make_timeline({first: 1, last: 1}, 0)
    assert (found.unit, len(found.buckets)) == (unit, buckets)


def test_what_is_no_date_is_counted_apart():
    days = {"2026-03-02": 2, None: 3, "-044-03-15": 4, "9999-12-31": 5, "0000-01-01": 6, "2200-01-01": 7}
    found = make_timeline(days, 1)
    assert counted(found) == {"2026-03-02": 2}
    assert (found.dated, found.undated, found.unreadable) == (2, 1, 25)


def test_nothing_dated_is_no_timeline():
    found = make_timeline({None: 3}, 4)
    assert found.buckets == ()
    assert (found.dated, found.undated, found.unreadable) == (0, 4, 3)


def test_a_window_is_shown_whole_with_its_empty_ends():
    found = make_timeline({"2026-03-10": 1, "2026-03-12": 2}, 0, "2026-03-01 00:00:00", "2026-04-01 00:00:00")
    assert found.unit == "day"
    assert found.buckets[0].start == date(2026, 3, 1)
    assert found.buckets[-1].start == date(2026, 3, 31)


def test_a_window_that_is_much_wider_than_what_it_holds_is_not():
    found = make_timeline({"2026-03-10": 1}, 0, "0001-01-01 00:00:00", "9999-01-01 00:00:00")
    assert [bucket.start for bucket in found.buckets] == [date(2026, 3, 10)]


@pytest.mark.parametrize(
    ("unit", "start", "long", "short"),
    [
        ("day", date(2026, 3, 2), "2 Mar 2026", "2 Mar"),
        ("week", date(2026, 3, 2), "week of 2 Mar 2026", "2 Mar"),
        ("month", date(2026, 3, 1), "Mar 2026", "Mar"),
        ("month", date(2026, 1, 1), "Jan 2026", "2026"),
        ("year", date(2026, 1, 1), "2026", "2026"),
        ("decade", date(2020, 1, 1), "2020s", "2020"),
        ("century", date(1900, 1, 1), "1900 to 1999", "1900"),
    ],
)
def test_names_of_buckets(unit, start, long, short):
    assert (label(unit, start), tick(unit, start)) == (long, short)
