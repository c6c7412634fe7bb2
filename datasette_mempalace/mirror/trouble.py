"""What is wrong with a mirror, as a sentence, and when it is asked again: never by everybody at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import MirrorUnavailable
from ..logs import get_logger

if TYPE_CHECKING:
    from ..chroma_setting import ChromaServer

logger = get_logger(__name__)

# After a failure searches go on without the mirror for so long, before one of them tries it again.
PAUSE_SECONDS = 5.0


class MirrorTrouble:
    """The last failure of one mirror, if it has not worked since. Threads may share it.

    Args:
        place: where the mirror is, as words in a sentence.
        server: the Chroma server that it is on, whose secrets are shown nowhere; None for a folder.

    Attributes:
        error: why it could not be used when it was last tried; None when it could.
        is_suspect: whether a failure since `forget_suspicion` leaves open what is stored there.
    """

    def __init__(self, place: str, server: ChromaServer | None):
        self.error: MirrorUnavailable | None = None
        self.is_suspect = False
        self._place, self._server = place, server
        self._trial = threading.Lock()
        self._try_again = 0.0

    @property
    def told(self) -> str | None:
        """The same as a sentence."""
        return None if self.error is None else self.error.message

    @contextmanager
    def asking(self, by_filter: bool = False) -> Iterator[None]:
        """Ask Chroma; what it raises becomes one kind of error, and for a while nobody asks again.

        When that is over one search tries and the others go on without, so that a server which takes a connection and
        never answers holds up one thread at a time.

        Args:
            by_filter: whether the question has a filter: what that causes is no trouble of the mirror's.
        Raises:
            MirrorUnavailable: when it fails, or has failed a moment ago.
        """
        known = self.error
        trial = known is not None
        if known and (time.monotonic() < self._try_again or not self._trial.acquire(blocking=False)):
            raise type(known)(known.message)
        try:
            yield
            if trial:
                self.error = None
        except (
            Exception
        ) as error:  # chromadb and httpx raise many kinds; the vectors in SQLite serve meanwhile
            blamed = not by_filter or isinstance(error, (TimeoutError, MirrorUnavailable))
            raise (self.failed(error) if blamed else self._as_told(error)) from error
        finally:
            if trial:
                self._trial.release()

    def failed(self, error: Exception) -> MirrorUnavailable:
        """Remember a failure; returns it as a sentence, to be raised."""
        told = self._as_told(error)
        # A call that is late has shown nothing wrong with what is stored.
        self.is_suspect = self.is_suspect or not isinstance(error, (MirrorUnavailable, TimeoutError))
        if self.told != told.message:
            logger.log(logging.INFO if told is error else logging.WARNING, "%s", told.message)
        self.error, self._try_again = told, time.monotonic() + PAUSE_SECONDS
        return told

    def is_over(self) -> None:
        """Remember that the mirror works."""
        self.error = None

    def forget_suspicion(self) -> None:
        """The mirror is opened anew, which finds out what is stored there."""
        self.is_suspect = False

    def _as_told(self, error: Exception) -> MirrorUnavailable:
        if isinstance(error, MirrorUnavailable):
            return error
        cause = str(error) or type(error).__name__
        if self._server is not None:
            cause = self._server.without_secrets(cause)
        return MirrorUnavailable(f"The Chroma mirror {self._place} cannot be used: {cause}")
