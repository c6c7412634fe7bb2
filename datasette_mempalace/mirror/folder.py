"""A mirror in a folder of this machine: one process owns it, by a lock; what cannot be trusted is thrown away.

Chroma waits a quarter of an hour for a locked database, in some calls with Python's own lock in its hands, so that no
thread goes on. So nothing is asked of it while another process has the database locked, and every call has a deadline.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MirrorOwned, MirrorUnavailable
from ..locks import DatabaseWatch, FolderLock
from ..logs import get_logger
from ..vectors import KINDS, Kind
from .check import LOCKS, is_locked, note_closed, note_opened, survives_probe
from .deadlines import Deadlines
from .recorded import recorded_state
from .state import HNSW, State

if TYPE_CHECKING:
    from ..palace import Palace

logger = get_logger(__name__)

DATABASE = "chroma.sqlite3"
NO_MIRROR = "A palace that can only be read has no mirror in a folder: its vectors are searched in memory or in its file."
ASK_SECONDS = 4.0
WRITE_SECONDS = 120.0
LOOK_SECONDS = 1.0
# chromadb's clients of a process share state by path, which two threads must not set up or take down at once.
_CLIENTS = threading.Lock()
# Whose database this process has open, by folder: nobody else here may open and close it, for that gives its locks back.
_OPEN: dict[Path, MirrorFolder] = {}


class MirrorFolder:
    """The folder of a palace's mirror."""

    is_shared = False

    def __init__(self, palace: Palace):
        self.path = palace.mirror_path
        self.place = f"in {self.path}"
        self.max_batch = 1000
        self._name = collection_name(palace.file)
        self._read_only = palace.read_only
        self._owner = FolderLock(self.path, "palace.lock")
        self._deadlines = Deadlines()
        self._client: Any = None
        self._old_clients: list[tuple[Any, DatabaseWatch | None]] = []
        self._collections: dict[Kind, Any] = {}
        self._folders: set[str] = set()
        self._watch: DatabaseWatch | None = None
        self._state = State()

    @property
    def is_open(self) -> bool:
        """Whether this process has it open."""
        return self._client is not None and bool(self._collections)

    @property
    def is_in_place(self) -> bool:
        """Whether the files that were opened are still there."""
        return not self.is_open or ((self.path / DATABASE).exists() and self._folders <= self._segments())

    def take(self) -> None:
        """Become its owner."""
        if self._read_only:
            raise MirrorUnavailable(NO_MIRROR)
        try:
            taken = self._owner.take()
        except OSError as error:
            raise MirrorUnavailable(f"The mirror's folder {self.path} cannot be used: {error}.") from error
        if not taken:
            raise MirrorOwned(f"Another process or server owns the mirror in {self.path}.")

    def open(self, make: bool = True) -> None:
        """Open it; what cannot be trusted is thrown away and made anew, empty."""
        self.take()
        self._close_old_clients()
        if is_locked(self.path / DATABASE):
            raise MirrorUnavailable(
                f"Another process holds the database of the mirror in {self.path} locked."
            )
        if not survives_probe(self.path):
            self.throw_away()
        note_opened(self.path)
        try:
            self._open_client()
        except TimeoutError:
            raise
        except Exception as error:  # chromadb raises many kinds; a mirror that it cannot open is of no use
            logger.warning("The mirror in %s cannot be opened and is made anew: %s", self.path, error)
            self.close(in_order=False)
            self._close_old_clients()
            self.throw_away()
            self._open_client()

    def state(self, fresh: bool = True) -> State:
        """How far it is; only this process writes it."""
        return self._state

    def set_state(self, state: State) -> None:
        """Write the position down. That changes are being applied only this process has to know."""
        if state.position != self._state.position or state.mirror_id != self._state.mirror_id:
            self.call("drawer", "modify", metadata=state.as_metadata)
        self._state = state

    def recorded(self) -> State | None:
        """How far it is, as its own files say, without Chroma; None when they cannot be read now."""
        if not _CLIENTS.acquire(timeout=LOOK_SECONDS):
            return None
        try:
            owner = _OPEN.get(self.path.resolve())
            return recorded_state(self.path / DATABASE, self._name) if owner is None else owner._state
        finally:
            _CLIENTS.release()

    def call(self, kind: Kind, name: str, /, **given: Any) -> Any:
        """Call a method of a collection; TimeoutError when it does not come back in time."""
        collection = self._collections.get(kind)
        if collection is None:
            raise MirrorUnavailable("The mirror is not open in this process.")
        seconds = ASK_SECONDS if name == "query" else WRITE_SECONDS
        answer = self._run(seconds, getattr(collection, name), **given)
        if name == "add":
            # Chroma makes a segment's folder when it writes it first, in the middle of anything.
            self._folders = self._segments()
        return answer

    def start_over(self) -> None:
        """Replace the collections by empty ones."""
        for kind in KINDS:
            self._run(WRITE_SECONDS, self._client.delete_collection, f"{self._name}_{kind}s")
        self._open_collections()

    def throw_away(self) -> None:
        """Take every file away but the locks."""
        for child in self.path.iterdir():
            if child.name not in LOCKS:
                shutil.rmtree(child) if child.is_dir() else child.unlink()

    def close(self, in_order: bool) -> None:
        """Close Chroma; in order, the files are remembered as they are, and trusted next time."""
        client, self._client, self._collections = self._client, None, {}
        self._state, self._folders = State(), set()
        if client is None:
            return
        self._old_clients.append((client, self._watch))
        self._watch = None
        self._close_old_clients()
        if in_order and not self._old_clients and self.path.is_dir():
            note_closed(self.path)

    def release(self) -> None:
        """Give the lock back."""
        self._owner.release()

    def _open_client(self) -> None:
        self._deadlines.run(WRITE_SECONDS, self._make_client)
        self._watch = DatabaseWatch(self.path / DATABASE)
        self._open_collections()

    def _run(self, seconds: float, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if self._watch is not None and self._watch.is_locked():
            raise TimeoutError("another process has its database locked")
        return self._deadlines.run(seconds, function, *args, **kwargs)

    def _make_client(self) -> None:
        import chromadb
        from chromadb.config import Settings as ChromaSettings

        with _CLIENTS:
            _OPEN[self.path.resolve()] = self
            self._client = chromadb.PersistentClient(
                str(self.path), settings=ChromaSettings(anonymized_telemetry=False)
            )
        self.max_batch = self._client.get_max_batch_size()

    def _open_collections(self) -> None:
        self._collections = {
            kind: self._run(
                WRITE_SECONDS,
                self._client.get_or_create_collection,
                f"{self._name}_{kind}s",
                configuration={"hnsw": HNSW},
                embedding_function=None,
            )
            for kind in KINDS
        }
        self._state = State.of(self._collections["drawer"].metadata)
        self._folders = self._segments()

    def _close_old_clients(self) -> None:
        """Close clients that were let go, unless a call to one has not come back yet.

        Raises nothing: a client that fails to close is forgotten.
        """
        while self._old_clients and not self._deadlines.is_stuck:
            client, watch = self._old_clients.pop()
            try:
                with _CLIENTS:
                    client.close()
                    _OPEN.pop(self.path.resolve(), None)
            except Exception as error:  # chromadb raises many kinds, of files that are gone
                logger.info("The mirror in %s did not close in order: %s", self.path, error)
            if watch is not None:
                watch.close()

    def _segments(self) -> set[str]:
        try:
            return {child.name for child in self.path.iterdir() if child.is_dir()}
        except OSError:
            return set()


def collection_name(path: str) -> str:
    """What a palace's collections are called, from its file's name; "_drawers" and "_closets" come after it."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", path.rsplit("/", 1)[-1].rsplit(".", 1)[0]).strip("-")
    return f"palace-{stem}"[:60].strip("-")
