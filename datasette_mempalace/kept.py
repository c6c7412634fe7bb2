"""Answers kept as long as the palace does not change, a bounded number of them. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from .brief_lock import BriefLock

MOST = 100

Answer = TypeVar("Answer")


class KeptAnswers:
    """What was read from one palace, for its newest state that was seen. Threads may share it.

    What is kept is handed out again and again: nobody may change it.
    """

    def __init__(self) -> None:
        self._lock = BriefLock()
        self._position: int | None = None
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()

    def get(
        self, position: int, key: Hashable, make: Callable[[], Answer], same_since: Callable[[int], bool]
    ) -> Answer:
        """An answer, made when it is not there yet.

        Args:
            position: the last change of the palace's log, in the same view of the data that `make` reads.
            key: what the answer is to.
            make: makes it.
            same_since: whether nothing that answers depend on has changed since an earlier position.
        """
        known = self._position
        still = known is not None and known < position and same_since(known)
        with self._lock:
            if still and self._position == known:
                self._position = position
            if position == self._position and key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]  # type: ignore[no-any-return]
        made = make()
        with self._lock:
            # An older view than the newest seen keeps nothing: it would push out what the others need.
            if self._position is None or position >= self._position:
                if position != self._position:
                    self._position = position
                    self._answers.clear()
                self._answers[key] = made
                while len(self._answers) > MOST:
                    self._answers.popitem(last=False)
        return made
