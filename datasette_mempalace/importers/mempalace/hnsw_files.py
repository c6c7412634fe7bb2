"""The vectors in the files of Chroma's HNSW index, read without Chroma: a damaged index can crash the process that opens it.

A segment's folder holds header.bin, data_level0.bin and, after the first sync, index_metadata.pickle. Each element of
data_level0.bin is its links, its vector as float32 and its label; the pickle says which id has which label.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ...pickles import Untrusted, read_record

Vector = NDArray[np.float32]
_HEADER = struct.Struct("<i6Q")
_VERSION = 1
_CHUNK = 4_096
_LARGEST = 1e6


class Unreadable(Exception):
    """The files are there and cannot be read; the message is the end of a sentence."""


@dataclass(frozen=True)
class _Layout:
    elements: int
    size: int
    label_at: int
    vector_at: int

    @property
    def dimension(self) -> int:
        return (self.label_at - self.vector_at) // 4


class HnswFiles:
    """One segment's vectors by id.

    Args:
        folder: the copied segment folder.
        unit: whether the index keeps vectors of unit length, as cosine does; others are damaged then.
    Attributes:
        problem: why not every vector can be read, or None.
    Raises:
        Unreadable: when the files are of a form that is not known here.
    """

    def __init__(self, folder: Path, unit: bool):
        self.problem: str | None = None
        self._unit = unit
        self._file: IO[bytes] | None = None
        self._labels: dict[str, int] = {}
        self._places: dict[int, int] = {}
        names = ("header.bin", "data_level0.bin", "index_metadata.pickle")
        header, data, record = (folder / name for name in names)
        missing = [file.name for file in (header, data, record) if not file.is_file()]
        if missing:
            self.problem = (
                f"{', '.join(missing)} of the index is missing"
                if folder.is_dir()
                else "the index's folder is missing"
            )
            return
        self._layout = _read_header(header)
        self._labels = _read_labels(record)
        self._file = data.open("rb")
        self._find_places(data)

    def read(self, keys: Iterable[str]) -> dict[str, Vector]:
        """The vectors of some ids; those that are not there or not sound are left out."""
        found: dict[str, Vector] = {}
        if self._file is None:
            return found
        places = ((self._places.get(self._labels.get(key, -1), -1), key) for key in keys)
        for place, key in sorted(pair for pair in places if pair[0] >= 0):
            vector = self._read_one(self._file, place)
            if self._is_sound(vector):
                found[key] = vector
        return found

    def close(self) -> None:
        """Close the files."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read_one(self, file: IO[bytes], place: int) -> Vector:
        file.seek(place * self._layout.size + self._layout.vector_at)
        return np.frombuffer(file.read(self._layout.dimension * 4), dtype="<f4")

    def _is_sound(self, vector: Vector) -> bool:
        if len(vector) != self._layout.dimension or not np.isfinite(vector).all():
            return False
        length = float(np.linalg.norm(vector.astype(np.float64)))
        # Chroma scales a vector of zeros to zeros again.
        return abs(length - 1) < 0.01 or length == 0 if self._unit else length < _LARGEST

    def _find_places(self, data: Path) -> None:
        """Which element has which label; says in `problem` what does not agree."""
        assert self._file is not None
        layout, wanted = self._layout, set(self._labels.values())
        whole = data.stat().st_size // layout.size
        readable = min(whole, layout.elements)
        for start in range(0, readable, _CHUNK):
            count = min(_CHUNK, readable - start)
            self._file.seek(start * layout.size)
            block = np.frombuffer(self._file.read(count * layout.size), dtype=np.uint8).reshape(count, -1)
            labels = block[:, layout.label_at : layout.label_at + 8].copy().view("<u8")[:, 0]
            for offset, label in enumerate(labels.tolist()):
                if label in wanted:
                    self._places[label] = start + offset
        if whole < layout.elements:
            self.problem = f"data_level0.bin ends after {whole:,} of {layout.elements:,} vectors"
        elif len(self._places) < len(wanted):
            self.problem = f"the index knows {len(wanted):,} ids, and {len(self._places):,} of them have a vector in its files"


def _read_header(file: Path) -> _Layout:
    content = file.read_bytes()
    if len(content) < _HEADER.size:
        raise Unreadable(f"header.bin has {len(content)} bytes, which is too few")
    version, links, _most, elements, size, label_at, vector_at = _HEADER.unpack(content[: _HEADER.size])
    layout = _Layout(elements, size, label_at, vector_at)
    if version != _VERSION:
        raise Unreadable(f"header.bin is of version {version}, and {_VERSION} is known here")
    if not (links <= vector_at < label_at <= size - 8 and size < 2**24 and (label_at - vector_at) % 4 == 0):
        raise Unreadable("header.bin does not describe an index")
    return layout


def _read_labels(file: Path) -> dict[str, int]:
    try:
        content = read_record(file)
    except Untrusted as error:
        raise Unreadable(str(error)) from error
    by_label = content.get("label_to_id")
    if not isinstance(by_label, dict):
        raise Unreadable("index_metadata.pickle has no list of labels")
    return {str(key): label for label, key in by_label.items() if isinstance(label, int)}
