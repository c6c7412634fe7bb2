"""Calls into a library that may never come back: each in a thread of its own, waited for so long and no longer.

A call that is late cannot be stopped. While one is still under way no other is begun, so that threads do not pile up,
and so that what it does at last cannot undo what came after it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlines:
    """Runs calls with a deadline each; threads may share it."""

    def __init__(self) -> None:
        self._late: list[Future[Any]] = []

    @property
    def is_stuck(self) -> bool:
        """Whether a call that was given up is still under way."""
        self._late = [call for call in self._late if not call.done()]
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
        call: Future[T] = Future()
        # A daemon, which does not keep Python from ending.
        threading.Thread(target=_run, args=(call, function, args, kwargs), daemon=True).start()
        try:
            return call.result(seconds)
        except FutureTimeout:
            if call.done():
                return call.result()
            self._late.append(call)
            raise TimeoutError(f"no answer within {seconds:g} seconds") from None


def _run(call: Future[T], function: Callable[..., T], args: Any, kwargs: Any) -> None:
    try:
        call.set_result(function(*args, **kwargs))
    except BaseException as error:  # handed to whoever waits
        call.set_exception(error)
