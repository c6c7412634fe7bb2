"""The checks of a palace's vectors: which are missing, of no use, of another text, without a drawer, of another model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import MempalaceError
from .finding import Finding
from .palace import Palace
from .structure import FIX
from .text import counted
from .vectors import KINDS, Kind, embedded_hash, is_vector_of, stored_dimension

FETCH = 1_000
SAME_TEXT = 0.98
SAMPLE = 5


@dataclass
class BadVectors:
    """Ids of vectors that are of no use: no vector of the model, or of another text than stands beside them."""

    unusable: list[int] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)


def vectors_missing(count: int) -> Finding:
    """Texts that wait for a vector."""
    return _counted("vectors missing", count, "text has no vector", "texts have no vector")


def vectors_unusable(bad: Iterable[BadVectors], looked_at: str) -> Finding:
    """Vectors of another size, with what is no number, or not of unit length."""
    count = sum(len(part.unusable) for part in bad)
    one, many = "vector is not as the model makes them", "vectors are not as the model makes them"
    return _counted("vectors unusable", count, one, many, looked_at)


def vectors_stale(bad: Iterable[BadVectors], looked_at: str) -> Finding:
    """Vectors of a text that has changed since."""
    count = sum(len(part.stale) for part in bad)
    return _counted(
        "vectors stale",
        count,
        "vector belongs to an earlier text",
        "vectors belong to earlier texts",
        looked_at,
    )


def vectors_orphaned(connection: Any) -> Finding:
    """Vectors without a drawer or closet."""
    count = sum(
        connection.execute(
            f"select count(*) from {kind}_vectors where id not in (select id from {kind}s)"
        ).fetchone()[0]
        for kind in KINDS
    )
    return _counted(
        "vectors orphaned",
        count,
        "vector belongs to no drawer or closet",
        "vectors belong to no drawer or closet",
    )


def bad_vectors(connection: Any, kind: Kind, most: int | None = None) -> BadVectors:
    """Look through stored vectors.

    Args:
        connection: an open connection to the palace.
        kind: "drawer" or "closet".
        most: how many are looked at, chosen by chance; None for all.
    Returns:
        the ids of those that are of no use; a vector of zeros is of use for a blank text alone.
    """
    found, dimension = BadVectors(), stored_dimension(connection)
    chosen = (
        ""
        if most is None
        else f"where v.id in (select id from {kind}_vectors order by random() limit {most:d})"
    )
    cursor = connection.execute(
        f"select v.id, v.vector, v.text_hash, cast(t.text as blob) from {kind}_vectors v join {kind}s t on t.id = v.id"
        f" {chosen}"
    )
    while rows := cursor.fetchmany(FETCH):
        for row_id, blob, text_hash, raw in rows:
            text = raw.decode("utf-8", "replace")
            if not is_vector_of(kind, text, blob, dimension):
                found.unusable.append(row_id)
            elif text_hash != embedded_hash(kind, text):
                found.stale.append(row_id)
    return found


def same_model(palace: Palace) -> Finding:
    """Whether stored vectors are what the model makes of their texts today, by a few of them; the model is loaded."""
    check = "vectors and model"
    with palace.reader() as connection:
        rows = connection.execute(
            "select d.text, v.vector from drawer_vectors v join drawers d on d.id = v.id"
            " where typeof(d.text) = 'text' and trim(d.text) <> ''"
            " and v.id in (select id from drawer_vectors where typeof(vector) = 'blob' and length(vector) = ?"
            " order by random() limit ?)",
            [4 * (stored_dimension(connection) or 0), SAMPLE],
        ).fetchall()
    try:
        if not rows or palace.embedder.missing() is not None:
            return Finding(check, True, "not compared: there are no vectors yet, or the model cannot be used")
        made = palace.embedder.embed([text for text, _ in rows], False)
    except MempalaceError as error:
        return Finding(check, False, "the model failed", "see what it says", error.message)
    stored = [np.frombuffer(vector, "<f4") for _, vector in rows]
    differ = sum(float(old @ new) < SAME_TEXT for old, new in zip(stored, made, strict=True))
    if not differ:
        return Finding(
            check,
            True,
            f"the model still makes the stored vector of each of {counted(len(rows), 'text')} taken at random",
        )
    return Finding(
        check,
        False,
        f"of {counted(len(rows), 'text')} taken at random, {differ} would get another vector: the stored ones come from another model",
        "set the embedder that the palace was filled with, or fill a new palace",
    )


def _counted(check: str, count: int, one: str, many: str, looked_at: str = "") -> Finding:
    if not count:
        return Finding(check, True, f"none{looked_at}")
    return Finding(check, False, f"{counted(count, one, many)}{looked_at}", f"{FIX}, or sync")
