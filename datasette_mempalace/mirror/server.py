"""A mirror on a Chroma server: any number of processes ask it, one writes. Every request has a short timeout.

The position stands in the collection's metadata and is read with every search; so an answer is used only as far as the
server really is, and a server that was emptied, restarted or filled anew by others is found out.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..chroma_setting import ChromaServer
from ..errors import MirrorOwned, MirrorUnavailable
from ..locks import FolderLock
from ..schema import get_setting, set_setting
from ..vectors import KINDS, Kind
from .deadlines import Deadlines
from .folder import collection_name
from .state import HNSW, State

if TYPE_CHECKING:
    from ..palace import Palace

CONNECT_SECONDS = 1.0
ASK_SECONDS = 2.0
WRITE_SECONDS = 60.0
# What a name server may add, for which httpx has no timeout.
SPARE_SECONDS = 2.0
# So old a position may be used as what the mirror holds at least: it only makes a few more rows be scored here.
FRESH_SECONDS = 2.0
# What changes nothing, and is not worth waiting for.
QUICK = frozenset({"query", "count", "get"})


@dataclass(frozen=True)
class _Held:
    """What was seen on the server last: the collections' models and the state, and when."""

    collections: dict[Kind, Any]
    state: State
    seen: float


class MirrorServer:
    """The collections of one palace on a Chroma server."""

    is_shared = True

    def __init__(self, palace: Palace, server: ChromaServer):
        self.palace, self.server = palace, server
        self.place = f"on the Chroma server {server.url}"
        self.max_batch = 1000
        # The lock stands beside the palace: one process of this machine writes, and no other machine can write there.
        self._owner = FolderLock(palace.mirror_path, "palace.lock")
        self._asking, self._writing = Deadlines(), Deadlines()
        self._asker: Any = None
        self._writer: Any = None
        self._retired: list[Any] = []
        self._name: str | None = None
        self._held: _Held | None = None

    @property
    def is_open(self) -> bool:
        """Whether the server has been reached and has the collections."""
        return self._held is not None

    @property
    def is_in_place(self) -> bool:
        """Whether the server still has what was seen there last; asks it when that is a while ago."""
        held = self._held
        if held is None:
            return True
        try:
            return self.state(fresh=False).mirror_id == held.state.mirror_id
        except (
            Exception
        ):  # chromadb and httpx raise many kinds; whoever asks opens it anew then, and hears why
            return False

    def take(self) -> None:
        """Become the process that writes."""
        if self.palace.read_only:
            raise MirrorUnavailable(
                f"This copy of the palace can only be read: the mirror {self.place} is written by the process that"
                " writes the palace."
            )
        try:
            taken = self._owner.take()
        except OSError as error:
            raise MirrorUnavailable(
                f"{self.palace.mirror_path} cannot be used for a lock: {error}."
            ) from error
        if not taken:
            raise MirrorOwned(f"Another process on this machine writes the mirror {self.place}.")

    def open(self, make: bool) -> None:
        """Reach the server and look the collections up."""
        if self._asker is None:
            self._asker = self._api(ASK_SECONDS)
        self._name = self._name or self._collections_name(make)
        if make:
            if self._writer is None:
                self._writer = self._api(WRITE_SECONDS)
                self.max_batch = self._write(self._writer.get_max_batch_size)
            for kind in KINDS:
                self._make(kind)
        self._look()

    def state(self, fresh: bool = True) -> State:
        """How far the mirror is, as the server says now or said a moment ago."""
        held = self._held
        if fresh or held is None or time.monotonic() - held.seen > FRESH_SECONDS:
            held = self._look()
        return held.state

    def recorded(self) -> State | None:
        """What was seen on the server last, which may be a while ago; None when it was not asked yet."""
        return None if self._held is None else self._held.state

    def set_state(self, state: State) -> None:
        """Write it into the metadata, where every reader looks."""
        self.call("drawer", "modify", metadata=state.as_metadata)
        if self._held is not None:
            self._held = _Held(self._held.collections, state, time.monotonic())

    def call(self, kind: Kind, name: str, /, **given: Any) -> Any:
        """Call a method of a collection."""
        held = self._held
        if held is None:
            raise MirrorUnavailable(f"The mirror {self.place} has not been reached.")
        if name in QUICK:
            collection = self._collection(self._asker, held.collections[kind])
            return self._ask(getattr(collection, name), **given)
        collection = self._collection(self._writer, held.collections[kind])
        return self._write(getattr(collection, name), **given)

    def start_over(self) -> None:
        """Replace the collections by empty ones; what is still on its way to the old ones is lost with them."""
        for kind in KINDS:
            self._write(self._writer.delete_collection, f"{self._name}_{kind}s", **self._where)
            self._make(kind)
        self._look()

    def throw_away(self) -> None:
        """Empty the collections; nothing of others on the server is touched."""
        self.open(make=True)
        self.start_over()

    def close(self, in_order: bool) -> None:
        """Forget the connections."""
        while self._retired:
            self._retired.pop().close()
        # Threads may still be asking by these, so that they are closed the next time, or now when all is over.
        self._retired = [api._session for api in (self._asker, self._writer) if api is not None]
        self._asker = self._writer = self._held = None
        while in_order and self._retired:
            self._retired.pop().close()

    def release(self) -> None:
        """Let another process write."""
        self._owner.release()

    @property
    def _where(self) -> dict[str, str]:
        return {"tenant": self.server.tenant, "database": self.server.database}

    def _ask(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return _in_time(self._asking, ASK_SECONDS, function, args, kwargs)

    def _write(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return _in_time(self._writing, WRITE_SECONDS, function, args, kwargs)

    def _api(self, seconds: float) -> Any:
        """Chroma's own HTTP client, with a timeout: its public constructor has none and asks before one can be set."""
        import httpx
        from chromadb.api.fastapi import FastAPI
        from chromadb.config import Settings as ChromaSettings
        from chromadb.config import System

        settings = ChromaSettings(
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host=self.server.host,
            chroma_server_http_port=self.server.port,
            chroma_server_ssl_enabled=self.server.ssl,
            chroma_server_headers=dict(self.server.headers),
            anonymized_telemetry=False,
        )
        api = FastAPI(System(settings))
        api._session.timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
        return api

    def _collection(self, api: Any, model: Any) -> Any:
        from chromadb.api.models.Collection import Collection

        return Collection(client=api, model=model, embedding_function=None, data_loader=None)

    def _make(self, kind: Kind) -> None:
        self._write(
            self._writer.get_or_create_collection,
            f"{self._name}_{kind}s",
            configuration={"hnsw": HNSW},
            **self._where,
        )

    def _look(self) -> _Held:
        """Look the collection of drawers up, which tells the state; the closets' too where the drawers' is another."""
        if self._asker is None or self._name is None:
            raise MirrorUnavailable(f"The mirror {self.place} has not been reached.")
        drawers, before = self._get("drawer"), self._held
        if before is not None and before.collections["drawer"].id == drawers.id:
            closets = before.collections["closet"]
        else:
            closets = self._get("closet")
        held = _Held({"drawer": drawers, "closet": closets}, State.of(drawers.metadata), time.monotonic())
        self._held = held
        return held

    def _get(self, kind: Kind) -> Any:
        name = f"{self._name}_{kind}s"
        return self._ask(self._asker.get_collection, name, **self._where)

    def _collections_name(self, make: bool) -> str:
        """The name that the palace has for its collections, so that two palaces of one name do not meet on a server."""
        with self.palace.reader() as connection:
            name = get_setting(connection, "mirror_collections")
        if name is None and not make:
            raise MirrorUnavailable(f"The mirror {self.place} has not been filled yet.")
        if name is None:
            name = f"{collection_name(self.palace.file)}-{uuid.uuid4().hex[:12]}"
            with self.palace.writer() as connection:
                set_setting(connection, "mirror_collections", name)
        return name


def _in_time(
    deadlines: Deadlines, seconds: float, function: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """A request's answer.

    Raises:
        TimeoutError: when there is none in time, whichever clock finds that out.
        RuntimeError: when it is refused by something else than Chroma, whose client would tell the body alone.
    """
    import httpx

    try:
        return deadlines.run(seconds + SPARE_SECONDS, function, *args, **kwargs)
    except httpx.TimeoutException:
        raise TimeoutError(f"it did not answer within {seconds:g} seconds") from None
    except Exception as error:
        refusal = error.__context__
        if type(error) is not Exception or not isinstance(refusal, httpx.HTTPStatusError):
            raise
        said = f"{refusal.response.status_code} {refusal.response.reason_phrase}"
        raise RuntimeError(f"it answered {said} {str(error)[:200]}".rstrip()) from error
