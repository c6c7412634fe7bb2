"""A file of records as UTF-8 without a mark, whatever an editor, PowerShell or gzip has made of it.

What is no plain UTF-8 is translated as a whole, on disk where it is large, before its first byte is handed on: so a file
that breaks off has filed nothing.
"""

from __future__ import annotations

import codecs
import gzip
import io
import tempfile
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from typing import IO, Any

from ..errors import BadInput

READ = "JSON, NDJSON, CSV and TSV are read, in UTF-8, or in UTF-16 or UTF-32 with its mark, gzipped or not"
_GZIP = b"\x1f\x8b\x08"
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_BLOCK = 2**16
_IN_MEMORY = 2**24
_LAYERS = 4  # of gzip and encodings, one within another; a file may even unpack to itself
# What becomes longer than this, and so many times as long as it was, is no text that somebody wrote.
_LONG, _TIMES = 2**28, 100


class Peekable(io.RawIOBase):
    """A binary stream, pipes too, whose beginning can be looked at.

    Args:
        stream: what to read.
        is_own: whether to close that in the end.
    """

    def __init__(self, stream: IO[bytes], is_own: bool = False):
        self._stream, self._held, self._taken, self._is_own = stream, b"", 0, is_own

    def close(self) -> None:
        if self._is_own:
            self._stream.close()
        super().close()

    def readable(self) -> bool:
        return True

    def peek(self, size: int) -> bytes:
        while len(self._held) < size:
            more = self._stream.read(size - len(self._held))
            if not more:
                break
            self._held += more
            self._taken += len(more)
        return self._held

    @property
    def taken(self) -> int:
        """How many bytes were taken from the stream so far."""
        return self._taken

    def readinto(self, buffer: Any) -> int:
        if self._held:
            data, self._held = self._held[: len(buffer)], self._held[len(buffer) :]
        else:
            data = getattr(self._stream, "read1", self._stream.read)(len(buffer)) or b""
            self._taken += len(data)
        buffer[: len(data)] = data
        return len(data)


def as_utf8(stream: IO[bytes]) -> Peekable:
    """A stream as UTF-8 without a mark; plain UTF-8 is handed on as it is, good or bad.

    Args:
        stream: the file, binary; it is left open.
    Raises:
        BadInput: when it is not what it begins as.
    """
    return _decoded(Peekable(stream), _LAYERS)


def _decoded(found: Peekable, layers: int) -> Peekable:
    start = found.peek(4)
    if not layers:
        raise BadInput(f"The file is packed or encoded more than {_LAYERS - 1} times over; unpack it first.")
    if start.startswith(_GZIP):
        return _decoded(_stored(_unpacked(found)), layers - 1)
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return _decoded(_stored(_translated(found, encoding)), layers - 1)
    if b"\0" in start[:2]:
        raise BadInput(f"This is no text, or UTF-16 without its mark: a zero byte begins it; {READ}.")
    if start.startswith(codecs.BOM_UTF8):
        found.read(len(codecs.BOM_UTF8))
        return _decoded(Peekable(io.BufferedReader(found), is_own=True), layers - 1)
    return found


def _stored(blocks: Iterable[bytes]) -> Peekable:
    with ExitStack() as on_failure:
        store = on_failure.enter_context(tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))
        for block in blocks:
            store.write(block)
        on_failure.pop_all()
    store.seek(0)
    return Peekable(store, is_own=True)  # type: ignore[arg-type]


def _unpacked(packed: Peekable) -> Iterable[bytes]:
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BufferedReader(packed)) as unpacked:
            while block := unpacked.read(_BLOCK):
                size += len(block)
                if size > max(_LONG, _TIMES * packed.taken):
                    raise BadInput(
                        f"The file unpacks to more than {_TIMES} times its size, which no text does: {size:,} bytes so far."
                        " If you trust it, unpack it yourself and import what comes of it."
                    )
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"The file begins as gzip and cannot be unpacked: {error}.") from None


def _translated(stream: Peekable, encoding: str) -> Iterable[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while block := stream.read(_BLOCK):
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise BadInput(f"The file is not the {encoding} text that it begins as: {error}.") from None
