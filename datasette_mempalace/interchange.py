"""The lines of an NDJSON export: a header, then drawers and closets, every value so that it comes back as it was.

What JSON cannot hold is an object with one key that begins with "$". Pure: it reads and writes values, no files.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from .errors import BadInput

MARK = "mempalace_export"
VERSION = 1
# What a byte that is no UTF-8 becomes when it is read with `surrogateescape`.
ESCAPED = re.compile("[\udc80-\udcff]")
# What `import-palace` files beside drawers, as lines: where it came from, which drawers and closets, and tables in the
# order in which they refer to each other.
ORIGIN = "origin"
ORIGIN_IDS = {"drawer": "origin_drawers", "closet": "origin_closets"}
RELATED = ("hallways", "tunnels", "kg_entities", "kg_triples")
BYTES, TEXT_BYTES, REAL = "$base64", "$text_base64", "$real"


# The last line of hits that were exported over HTTP, which is no hit.
END_OF_HITS = frozenset({"ok", "hits", "complete", "limit", "fallback_reason", "message"})


class RawText(bytes):
    """The bytes of a text that is not UTF-8, as another program may have stored it."""


class BadValue(ValueError):
    """A value or a line that is none of an export's; its text says why."""


@dataclass(frozen=True)
class Header:
    """The first line of an export.

    Attributes:
        drawers, closets: how many lines of each follow.
        vectors: whether they have their vectors.
        embedding_model: the model that made them.
        embedding_dimension: how many numbers a vector has; None when there is none.
        related: how many lines follow of what `import-palace` files beside drawers.
    """

    drawers: int
    closets: int
    vectors: bool
    embedding_model: str | None
    embedding_dimension: int | None
    related: int = 0

    def line(self) -> str:
        """The header as the export's first line."""
        return as_line({MARK: VERSION, **asdict(self)})

    @classmethod
    def of(cls, value: Any) -> Header | None:
        """The header that a line's JSON value is, or None when it is another file's line.

        Raises:
            BadInput: when a newer version wrote it, or what it says cannot be read.
        """
        if not isinstance(value, dict) or MARK not in value:
            return None
        if value[MARK] != VERSION:
            raise BadInput(
                f"The export's format is {repr(value[MARK])[:40]}, and this version reads {VERSION}; upgrade with: "
                "pip install --upgrade datasette-mempalace"
            )
        kinds: dict[str, Any] = {
            "drawers": int, "closets": int, "vectors": bool, "embedding_model": (str, type(None)),
            "embedding_dimension": (int, type(None)), "related": int,
        }  # fmt: skip
        value = {"related": 0, **value}
        for name, kind in kinds.items():
            if not isinstance(value.get(name), kind):
                raise BadInput(
                    f"The export's first line cannot be read: {name} is {repr(value.get(name))[:40]}."
                )
        return cls(**{field.name: value[field.name] for field in fields(cls)})


def is_line_of_export(value: Any) -> bool:
    """Whether a line's JSON value is an export's header, or a drawer or closet as it stands behind one."""
    return isinstance(value, dict) and (
        MARK in value or any(value.get("kind") == kind and f"{kind}_id" in value for kind in ORIGIN_IDS)
    )


def is_end_of_hits(value: Any) -> bool:
    """Whether a line's JSON value is the last one of hits exported over HTTP: it has a message, and is no record."""
    return isinstance(value, dict) and value.keys() == END_OF_HITS


def as_line(value: Mapping[str, Any]) -> str:
    """A JSON object as a line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": ")) + "\n"


def as_json(value: Any) -> Any:
    """A value out of SQLite as JSON.

    Args:
        value: None, a number, a text in which `surrogateescape` stands for bytes that are not UTF-8, or bytes.
    """
    if isinstance(value, str):
        if not ESCAPED.search(value):
            return value
        return {TEXT_BYTES: _encoded(value.encode("utf-8", "surrogateescape"))}
    if isinstance(value, bytes):
        return {BYTES: _encoded(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {REAL: str(value)}
    return value


def from_json(value: Any) -> Any:
    """The value that `as_json` was given; a text that is not UTF-8 as `RawText`.

    Raises:
        BadValue: when it is none.
    """
    if isinstance(value, dict):
        return _from_object(value)
    if isinstance(value, (bool, list)):
        raise BadValue(f"{json.dumps(value)[:40]} is no value of a column")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise BadValue(f"{str(value)[:40]} has more than 64 bits")
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise BadValue("a text has half of a surrogate pair") from None
    return value


def metadata_as_json(value: Any) -> Any:
    """Metadata as an object where that comes back as the same text, else as `as_json`."""
    try:
        opened = json.loads(value)
        if isinstance(opened, dict) and not _is_odd(opened) and metadata_text(opened) == value:
            return opened
    except (TypeError, ValueError, RecursionError):
        pass
    return as_json(value)


def metadata_from_json(value: Any) -> Any:
    """The value that `metadata_as_json` was given.

    Raises:
        BadValue: when it is none.
    """
    if isinstance(value, dict) and not _is_odd(value):
        try:
            return from_json(metadata_text(value))
        except (ValueError, RecursionError):
            raise BadValue("metadata cannot be written as JSON") from None
    return from_json(value)


def metadata_text(value: dict[str, Any]) -> str:
    """Metadata as this package stores it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def vector_as_json(vector: bytes) -> str:
    """A stored vector, little-endian float32, as text."""
    return _encoded(vector)


def vector_from_json(value: Any) -> bytes:
    """The vector that `vector_as_json` was given.

    Raises:
        BadValue: when it is none.
    """
    return _decoded(value)


def read_columns(value: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The columns of a line; one that is not there is null.

    Raises:
        BadValue: naming the column that cannot be read.
    """
    found = {}
    for name in names:
        read = metadata_from_json if name == "metadata" else from_json
        try:
            found[name] = read(value.get(name))
        except BadValue as error:
            raise BadValue(f"{name}: {error}") from None
    return found


def _is_odd(value: dict[str, Any]) -> bool:
    return not value.keys().isdisjoint({BYTES, TEXT_BYTES, REAL})


def _from_object(value: dict[str, Any]) -> Any:
    if len(value) == 1:
        ((kind, inner),) = value.items()
        if kind == BYTES:
            return _decoded(inner)
        if kind == TEXT_BYTES:
            return RawText(_decoded(inner))
        if kind == REAL and inner in ("inf", "-inf"):
            return float(inner)
    raise BadValue("an object is no value of a column")


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise BadValue("what should be base64 is none") from None
