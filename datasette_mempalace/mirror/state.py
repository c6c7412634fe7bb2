"""How far a mirror is, as it stands in the metadata of its collection of drawers; and what a mirror may be made in.

A position is compared with the palace's own record of it before an answer of the mirror counts for anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..change_log import last_change
from ..errors import MirrorUnavailable
from ..schema import get_number, get_setting, set_setting
from ..vectors import Kind

HNSW = {"space": "cosine", "ef_construction": 200, "ef_search": 200, "max_neighbors": 16}


@dataclass(frozen=True)
class State:
    """How far a mirror is.

    Attributes:
        mirror_id: which filling of which palace it is; None for one that was never filled.
        position: the last change of the log that it holds for certain; -1 when it was never filled.
        reached: the last change that it may hold, greater than `position` while changes are being applied.
    """

    mirror_id: str | None = None
    position: int = -1
    reached: int = -1

    @classmethod
    def of(cls, metadata: Mapping[str, Any] | None) -> State:
        """The state in the metadata of a collection of drawers."""
        held = metadata or {}
        position = int(held.get("position", -1))
        return cls(held.get("mirror_id"), position, max(position, int(held.get("reached", -1))))

    @property
    def as_metadata(self) -> dict[str, Any]:
        """The state as metadata of a collection."""
        return {"mirror_id": self.mirror_id or "", "position": self.position, "reached": self.reached}


class Store(Protocol):
    """Where a mirror's collections are: a folder, or a server. Its methods raise MirrorUnavailable, or what Chroma raises."""

    is_shared: bool

    @property
    def place(self) -> str:
        """Where it is, as words in a sentence."""

    @property
    def max_batch(self) -> int:
        """How many rows Chroma takes at once."""

    @property
    def is_open(self) -> bool:
        """Whether it can be asked at once."""

    @property
    def is_in_place(self) -> bool:
        """Whether what was opened is still there."""

    def take(self) -> None:
        """Become the one process that writes there."""

    def open(self, make: bool) -> None:
        """Open the collections, made where there are none and `make` is set."""

    def state(self, fresh: bool = True) -> State:
        """How far the mirror is; where it is not fresh, it may have gone on since."""

    def recorded(self) -> State | None:
        """How far the mirror is as far as that is known without opening or asking it; None when it is not."""

    def set_state(self, state: State) -> None:
        """Write down how far it is."""

    def call(self, kind: Kind, name: str, /, **given: Any) -> Any:
        """Call a method of a collection."""

    def start_over(self) -> None:
        """Replace the collections by empty ones."""

    def throw_away(self) -> None:
        """Take away whatever is there; it is opened anew afterwards."""

    def close(self, in_order: bool) -> None:
        """Let go of the collections."""

    def release(self) -> None:
        """Stop being the one that writes."""


def read_position(connection: Any) -> int:
    """The mirror's position as the palace records it; -1 when it was never filled or nothing readable stands there."""
    recorded = get_number(connection, "mirror_position")
    return -1 if recorded is None else recorded


def record(connection: Any, state: State) -> None:
    """Let the palace record which filling its mirror is and how far; of one that was never filled, nothing."""
    known = state.position >= 0
    set_setting(connection, "mirror_id", state.mirror_id if known else None)
    set_setting(connection, "mirror_position", str(state.position) if known else None)


def refuse_stranger(connection: Any, state: State) -> None:
    """Refuse a mirror that this palace, or this copy of it, does not know.

    Args:
        connection: an open connection to the palace, begun after the state was read.
        state: the mirror's.
    Raises:
        MirrorUnavailable: when it was never filled, belongs to another filling, or holds changes that the palace lacks.
    """
    if state.position < 0:
        raise MirrorUnavailable("The mirror has not been filled yet.")
    if get_setting(connection, "mirror_id") != state.mirror_id:
        raise MirrorUnavailable(
            "The mirror was filled from another palace, or anew, and this copy of the palace does not know it yet."
        )
    if state.position > read_position(connection) or state.reached > last_change(connection):
        raise MirrorUnavailable("The mirror holds changes that this copy of the palace does not have yet.")
