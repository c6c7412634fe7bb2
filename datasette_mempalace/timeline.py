"""Days to a timeline: buckets of one length that anybody takes in at a glance, empty ones among them. Pure."""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

UNITS = ("day", "week", "month", "year", "decade", "century")
MOST = 48  # bars side by side on a phone
LAST = date(
    2199, 12, 31
)  # what lies beyond is a slip or stands for "never", and would squeeze all else into one bar
MONTHS = tuple(calendar.month_abbr)
_YEARS = {"year": 1, "decade": 10, "century": 100}


@dataclass(frozen=True)
class Bucket:
    """Some days that are counted together: from `start` to the day before `before`."""

    start: date
    before: date
    count: int


@dataclass(frozen=True)
class Timeline:
    """How many drawers lie in each stretch of time.

    Attributes:
        unit: a name of `UNITS`: what a bucket is long.
        buckets: in order and without a gap; none where nothing has a date.
        dated: how many drawers the buckets hold.
        undated: how many have no date at all.
        unreadable: how many have something that is no date, or one before the year 1 or after 2199.
    """

    unit: str
    buckets: tuple[Bucket, ...]
    dated: int
    undated: int
    unreadable: int


def make_timeline(
    days: Mapping[str | None, int], undated: int, since: str | None = None, before: str | None = None
) -> Timeline:
    """Put days into buckets.

    Args:
        days: drawers by day as SQLite's `date()` writes it; under None those whose date it could not read.
        undated: drawers without any date.
        since, before: a window that was asked for, as `Scope` has it: the timeline then shows all of it.
    Returns:
        the timeline in the shortest unit that needs at most `MOST` buckets.
    """
    counts: dict[date, int] = {}
    unreadable = 0
    for text, number in days.items():
        day = _as_day(text)
        if day is None:
            unreadable += number
        else:
            counts[day] = counts.get(day, 0) + number
    if not counts:
        return Timeline(UNITS[0], (), 0, undated, unreadable)
    unit = _unit(min(counts), max(counts))
    first, last = _window(counts, unit, since, before)
    totals: dict[date, int] = dict.fromkeys(_starts(unit, first, last), 0)
    for day, number in counts.items():
        totals[bucket_start(unit, day)] += number
    buckets = tuple(Bucket(start, next_start(unit, start), number) for start, number in totals.items())
    return Timeline(unit, buckets, sum(counts.values()), undated, unreadable)


def bucket_start(unit: str, day: date) -> date:
    """The first day of the bucket that a day lies in; weeks begin on Monday."""
    if unit == "day":
        return day
    if unit == "week":
        return date.fromordinal(max(1, day.toordinal() - day.weekday()))
    if unit == "month":
        return day.replace(day=1)
    return date(max(1, day.year - day.year % _YEARS[unit]), 1, 1)


def next_start(unit: str, start: date) -> date:
    """The first day of the bucket after the one that begins with `start`."""
    if unit == "day":
        return start + timedelta(days=1)
    if unit == "week":
        return start + timedelta(days=7)
    if unit == "month":
        return date(start.year + start.month // 12, start.month % 12 + 1, 1)
    years = _YEARS[unit]
    return date(start.year - start.year % years + years, 1, 1)


def label(unit: str, start: date) -> str:
    """A bucket's name: "3 Mar 2026", "week of 2 Mar 2026", "Mar 2026", "2026", "2020s", "1900 to 1999"."""
    day = f"{start.day} {MONTHS[start.month]} {start.year}"
    if unit == "century":
        return f"{start.year} to {next_start(unit, start).year - 1}"
    names = {"day": day, "week": f"week of {day}", "month": f"{MONTHS[start.month]} {start.year}"}
    return names.get(unit) or f"{start.year}{'s' if unit == 'decade' else ''}"


def tick(unit: str, start: date) -> str:
    """A bucket's name at the foot of its bar, where there is room for little."""
    if unit in ("day", "week"):
        return f"{start.day} {MONTHS[start.month]}"
    return MONTHS[start.month] if unit == "month" and start.month > 1 else str(start.year)


def as_json(timeline: Timeline, date_column: str) -> dict[str, Any]:
    """A timeline as every face shows it."""
    return {
        "date_column": date_column,
        "unit": timeline.unit,
        "buckets": [
            {"since": bucket.start.isoformat(), "before": bucket.before.isoformat(), "count": bucket.count}
            for bucket in timeline.buckets
        ],
        "dated": timeline.dated,
        "undated": timeline.undated,
        "unreadable": timeline.unreadable,
    }


def _as_day(text: str | None) -> date | None:
    try:
        day = date.fromisoformat(text or "")
    except ValueError:
        return None
    return day if day <= LAST else None


def _unit(first: date, last: date) -> str:
    for unit in UNITS:
        if _length(unit, first, last) <= MOST:
            return unit
    return UNITS[-1]


def _length(unit: str, first: date, last: date) -> int:
    """How many buckets there are from one day to another."""
    start, end = bucket_start(unit, first), bucket_start(unit, last)
    if unit in ("day", "week"):
        return (end - start).days // (7 if unit == "week" else 1) + 1
    if unit == "month":
        return (end.year - start.year) * 12 + end.month - start.month + 1
    return end.year // _YEARS[unit] - start.year // _YEARS[unit] + 1


def _window(counts: Iterable[date], unit: str, since: str | None, before: str | None) -> tuple[date, date]:
    """The days to show: the window asked for where it has no more buckets than fit, else those that hold something."""
    first, last = min(counts), max(counts)
    begin = _as_day(since[:10]) if since else first
    end = _as_day(before[:10]) if before else None
    # The end is exclusive: midnight belongs to the day before.
    until = (end - timedelta(days=1) if before and before[11:] in ("", "00:00:00") else end) if end else last
    begin, until = min(begin or first, first), max(until, last)
    return (begin, until) if _length(unit, begin, until) <= MOST else (first, last)


def _starts(unit: str, first: date, last: date) -> Iterable[date]:
    start, end = bucket_start(unit, first), bucket_start(unit, last)
    while start <= end:
        yield start
        start = next_start(unit, start)
