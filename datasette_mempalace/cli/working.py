"""What the writing commands share: progress bars, the end of the work (vectors, mirror), and how it is told."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..errors import MempalaceError
from ..text import counted
from .common import Failure, note

if TYPE_CHECKING:
    from ..drawers import Report
    from ..palace import Palace

# Of a long job a log tells that it goes on; a short one says nothing there.
LINE_SECONDS = 10


class Steps:
    """Progress on standard error: bars, one after the other; where that is no terminal, a line now and then."""

    def __init__(self) -> None:
        self._said = time.monotonic()
        self._bar: Any = None
        self._step = ""
        self._at = 0

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show how far a step is; another step's bar is finished first."""
        if not sys.stderr.isatty():
            if time.monotonic() - self._said >= LINE_SECONDS:
                self._said = time.monotonic()
                note(f"{step}: {done / max(total, 1):.0%}")
            return
        if step != self._step:
            self.close()
            self._bar = click.progressbar(
                length=max(total, 1), label=f"{step:<10}", file=sys.stderr, show_pos=True
            )
            self._bar.__enter__()
            self._step, self._at = step, 0
        self._bar.update(done - self._at)
        self._at = done

    def of(self, step: str) -> Callable[[int, int], None]:
        """A progress function for one step."""
        return lambda done, total: self(step, done, total)

    def close(self) -> None:
        """End the bar that is shown."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar, self._step = None, ""


@contextmanager
def steps() -> Iterator[Steps]:
    """Progress bars for a command."""
    bars = Steps()
    try:
        yield bars
    finally:
        bars.close()


def told(report: Report, what_of: str = "Drawers") -> str:
    """What a write did, as a sentence about drawers or closets."""
    parts = [
        f"{number:,} {what}"
        for number, what in (
            (report.added, "added"),
            (report.updated, "updated"),
            (report.unchanged, "unchanged"),
            (report.removed, "removed"),
        )
        if number
    ]
    sentence = f"{what_of}: {', '.join(parts) or 'none'}."
    if report.replaced_characters:
        sentence += (
            f" {counted(report.replaced_characters, 'character')} that no text can hold became U+FFFD."
        )
    return sentence


def finish(
    palace: Palace, bars: Steps, embedded: int | None = None, problem: MempalaceError | None = None
) -> None:
    """Embed what has no vector, bring the mirror in step, and tell both.

    Args:
        palace: the palace that was written to.
        bars: where progress is shown.
        embedded: how many texts were embedded, when that has been done.
        problem: why they could not be.
    Raises:
        Failure: when texts are stored but cannot be embedded; words find them.
    """
    from ..vectors import embed_pending

    try:
        if problem is None and embedded is None:
            embedded = embed_pending(palace, bars.of("Embedding"))
    except MempalaceError as error:
        problem = error
    mirrored = mirror(palace, bars)
    bars.close()
    if embedded:
        click.echo(f"Embedded {counted(embedded, 'text')}.")
    if mirrored:
        note(mirrored)
    if problem is not None:
        raise Failure(
            f"The texts are stored and found by their words, but not yet by their meaning: {problem} "
            f"Then run: datasette mempalace sync {palace.path}"
        )


def mirror(palace: Palace, bars: Steps) -> str | None:
    """Bring the mirror in step; returns what there is to say about it.

    The mirror only makes searching faster, so that its trouble is told and is no failure.
    """
    try:
        report = palace.mirror.sync(bars.of("Mirroring"))
    except MempalaceError as error:
        return f"The Chroma mirror was not brought in step ({error}); searches go on from SQLite."
    return report.skipped_reason
