"""Calls into a library that may never come back: each in a thread of its own, waited for so long and no longer.

A call that is late cannot be stopped. While one is still under way no other is begun, so that threads do not pile up,
and so that what it does at last cannot undo what came after it.

No thread waits here for another without end, not even for its start, as `threading` does: the garbage collector, in the
new thread, may come upon a cursor of the connection whose statement waits for it, and then each waits for the other.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _Call:
    """A call under way in a thread of its own, which does not keep Python from ending."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any):
        self._result: Any = None
        self._error: BaseException | None = None
        self._under_way = _thread.allocate_lock()
        self._under_way.acquire()
        _thread.start_new_thread(self._run, (function, args, kwargs))

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        try:
            self._result = function(*args, **kwargs)
        except BaseException as error:  # handed to whoever waits
            self._error = error
        self._under_way.release()

    @property
    def is_done(self) -> bool:
        return not self._under_way.locked()

    def wait(self, seconds: float) -> bool:
        """Whether the call came back in time."""
        return self._under_way.acquire(timeout=max(0.0, seconds))

    def outcome(self) -> Any:
        """What a call that has come back returned or raised."""
        if self._error is not None:
            raise self._error
        return self._result


class Deadlines:
    """Runs calls with a deadline each; threads may share it."""

    def __init__(self) -> None:
        self._late: list[_Call] = []

    @property
    def is_stuck(self) -> bool:
        """Whether a call that was given up is still under way."""
        self._late = [call for call in self._late if not call.is_done]
        return bool(self._late)

    def run(self, seconds: float, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """The result of a call.

        Args:
            seconds: how long to wait for it.
            function, args, kwargs: the call.
        Raises:
            TimeoutError: when it takes longer, or an earlier one that did is still under way.
            Exception: whatever the call raises.
        """
        if self.is_stuck:
            raise TimeoutError("an earlier call has not come back yet")
        call = _Call(function, args, kwargs)
        if not call.wait(seconds):
            self._late.append(call)
            raise TimeoutError(f"no answer within {seconds:g} seconds")
        outcome: T = call.outcome()
        return outcome
