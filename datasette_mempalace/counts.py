"""In how many drawers words stand, remembered as long as the palace does not change. Pure."""

from __future__ import annotations

from .brief_lock import BriefLock

MOST = 50_000


class WordCounts:
    """Counts of words in one palace, for one state of it. Threads may share it."""

    def __init__(self) -> None:
        self._lock = BriefLock()
        self._position = -1
        self._counts: dict[str, int] = {}

    def at(self, position: int) -> dict[str, int]:
        """The counts known for a state of the palace, to be read and added to.

        Args:
            position: the last change of its log. An older state than the newest seen gets counts of its own.
        """
        with self._lock:
            if position < self._position:
                return {}
            if position > self._position or len(self._counts) > MOST:
                self._position, self._counts = position, {}
            return self._counts
