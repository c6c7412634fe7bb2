"""NDJSON that `import` reads back to an equal palace. Its lines: `..interchange`."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any

from ..interchange import Header, as_json, as_line, metadata_as_json, vector_as_json
from ..vectors import KINDS
from . import related
from .selection import Row, View


def write(view: View, out: IO[str], progress: Callable[[int, int], None], vectors: bool) -> Header:
    """Write a header, then a line for each drawer and each closet, and of a whole palace what is filed beside them.

    Args:
        view: what is exported.
        out: a text stream.
        progress: called with (done, total).
        vectors: whether with the stored vectors.
    Returns:
        the header: what was written.
    """
    drawers, closets = view.count("drawer"), view.count("closet")
    beside = related.count(view.connection) if view.is_everything else 0
    header = Header(drawers, closets, vectors, view.model, view.dimension, beside)
    out.write(header.line())
    done, size = 0, 4 * (header.embedding_dimension or 0)
    for kind in KINDS:
        for row in view.rows(kind, vectors=vectors):
            out.write(as_line({"kind": kind, **_record(row, size)}))
            done += 1
            progress(done, drawers + closets)
    for line in related.lines(view.connection) if beside else ():
        out.write(as_line(line))
    return header


def _record(row: Row, size: int) -> dict[str, Any]:
    """A row as JSON; a vector that is none (another program can have left anything) is made anew by the import."""
    record = {
        name: metadata_as_json(value) if name == "metadata" else as_json(value) for name, value in row.items()
    }
    if "vector" in row:
        vector, text_hash = row["vector"], row["text_hash"]
        usable = isinstance(vector, bytes) and len(vector) == size and isinstance(text_hash, str)
        record["vector"] = vector_as_json(vector) if usable else None
        record["text_hash"] = text_hash if usable else None
    return record
