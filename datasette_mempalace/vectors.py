"""The palace's stored vectors: which are missing, making them, reading them. One float32 BLOB a drawer or closet.

A vector always belongs to the text that stands beside it: triggers remove it when the text changes, and it is only
written while the text is still the one that was embedded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from .closets import closet_words
from .errors import EmbedderMismatch
from .minilm import Vectors
from .palace import Palace
from .schema import get_number, set_setting
from .text import counted, text_hash

Kind = Literal["drawer", "closet"]
KINDS: tuple[Kind, ...] = ("drawer", "closet")
Progress = Callable[[int, int], None]
FETCH = 512
COMMIT = 32
# Products in single precision are off by some 1e-7; another model is off by far more than quantization.
UNIT = 1e-3

# Texts are read and compared as bytes, so that a row which another program left as a BLOB or in a broken encoding
# still gets its vector and holds up no other.
_PENDING = """
    select {kind}s.id, cast({kind}s.text as blob) from {kind}s left join {kind}_vectors on {kind}_vectors.id = {kind}s.id
    where {kind}_vectors.id is null and {kind}s.id > ? order by {kind}s.id limit ?
"""
_COUNT_PENDING = """
    select count(*) from {kind}s left join {kind}_vectors on {kind}_vectors.id = {kind}s.id
    where {kind}_vectors.id is null
"""
_STORE = """
    insert into {kind}_vectors(id, vector, text_hash)
    select id, :vector, :text_hash from {kind}s where id = :id and cast(text as blob) = :raw
    on conflict(id) do nothing
"""


def count_pending(connection: Any) -> int:
    """How many drawers and closets have no vector yet."""
    return sum(connection.execute(_COUNT_PENDING.format(kind=kind)).fetchone()[0] for kind in KINDS)


def told_pending(connection: Any) -> str | None:
    """What a reader should know of drawers that no search by meaning can find yet, or None.

    Quick, unlike `count_pending`: SQLite counts rows by their indexes. A vector whose drawer is gone hides one that waits.
    """
    query = "select (select count(*) from drawers) - (select count(*) from drawer_vectors)"
    pending = connection.execute(query).fetchone()[0]
    if pending <= 0:
        return None
    told = counted(pending, "drawer of this palace has", "drawers of this palace have")
    return (
        f"{told} no vector yet; words alone find them until a server or datasette mempalace sync has made it."
    )


def embed_pending(
    palace: Palace,
    progress: Progress | None = None,
    download: bool = True,
    stop: Callable[[], bool] = lambda: False,
    wait: bool = True,
) -> int:
    """Give a vector to every drawer and closet that has none.

    Args:
        palace: the palace.
        progress: called with (done, total) after every commit.
        download: whether a missing default model may be fetched.
        stop: asked before every commit's work whether to leave the rest for later.
        wait: whether to wait while another process embeds in this palace; else nothing is done then.
    Returns:
        how many texts were really embedded; equal texts share one vector and are embedded once.
    Raises:
        EmbedderUnavailable: when the model cannot be used; what was embedded before stays.
        EmbedderMismatch: when the model answers with vectors of another length than the palace's.
    """
    with palace.embedding_lock(wait) as mine:
        return sum(_embed_kinds(palace, progress, download, stop)) if mine else 0


def _embed_kinds(
    palace: Palace, progress: Progress | None, download: bool, stop: Callable[[], bool]
) -> Iterator[int]:
    with palace.reader() as connection:
        total = count_pending(connection)
        spare = connection.execute("select 1 from spare_vectors limit 1").fetchone()
    done = 0
    for kind in KINDS:
        for rows, known in _pending(palace, kind) if total else ():
            if stop():
                return
            yield _embed_missing(palace, kind, [text for _, text, _ in rows], known, download)
            _store(palace, kind, rows, known)
            done += len(rows)
            if progress:
                progress(min(done, total), total)
    if spare:
        with palace.writer() as connection:
            connection.execute("delete from spare_vectors")


def _pending(palace: Palace, kind: Kind) -> Iterator[tuple[list[tuple[int, str, bytes]], dict[str, bytes]]]:
    """Rows without a vector in parts to be committed together: (id, text, text as bytes), and vectors known for them."""
    last = -1
    while True:
        with palace.reader() as connection:
            found = connection.execute(_PENDING.format(kind=kind), [last, FETCH]).fetchall()
            rows = [(row_id, raw.decode("utf-8", "replace"), raw) for row_id, raw in found]
            known = _known_vectors(connection, [embedded_hash(kind, text) for _, text, _ in rows])
        if not rows:
            return
        last = max(row[0] for row in rows)
        rows.sort(key=lambda row: (embedded_hash(kind, row[1]) not in known, len(row[1])))
        for start in range(0, len(rows), COMMIT):
            yield rows[start : start + COMMIT], known


def remove_orphans(palace: Palace) -> int:
    """Delete vectors whose drawer or closet is gone, as `insert or replace` can leave them; returns how many."""
    removed = 0
    with palace.writer() as connection:
        for kind in KINDS:
            removed += connection.execute(
                f"delete from {kind}_vectors where id not in (select id from {kind}s)"
            ).rowcount
    return removed


def read_vectors(
    connection: Any, kind: Kind, ids: Iterable[int], dimension: int
) -> tuple[list[int], Vectors]:
    """Stored vectors of some drawers or closets.

    Args:
        connection: an open connection.
        kind: "drawer" or "closet".
        ids: their integer ids.
        dimension: how many numbers a usable vector has.
    Returns:
        the ids that have a usable vector and a (n, dimension) array of float32 in the same order.
    """
    rows = connection.execute(
        f"select id, vector from {kind}_vectors where id in (select value from json_each(?))",
        [json.dumps(list(ids))],
    ).fetchall()
    return as_matrix(rows, dimension)


def as_matrix(rows: Sequence[tuple[int, bytes]], dimension: int) -> tuple[list[int], Vectors]:
    """Rows of (id, BLOB) as ids and one matrix; what is no vector of finite numbers of this dimension is left out."""
    kept = [row for row in rows if isinstance(row[1], bytes) and len(row[1]) == 4 * dimension]
    matrix = np.frombuffer(b"".join(row[1] for row in kept), dtype="<f4").reshape(len(kept), dimension)
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        kept = [row for row, usable in zip(kept, finite, strict=True) if usable]
        matrix = matrix[finite]
    return [row[0] for row in kept], matrix


def is_vector_of(kind: Kind, text: str, vector: Any, dimension: int | None) -> bool:
    """Whether a value can be what a model made of a text: finite numbers of unit length, zeros for a blank text alone.

    Args:
        kind: "drawer" or "closet".
        text: the drawer's or closet's text.
        vector: what is stored for it, or should be.
        dimension: how many numbers the model's vectors have.
    """
    length = _length(vector, dimension)
    return abs(length - 1) < UNIT or (length == 0 and not _words(kind, text).strip())


def as_blob(vector: Vectors) -> bytes:
    """A vector as it is stored: little-endian float32."""
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def embedded_hash(kind: Kind, text: str) -> str:
    """The identity of what is embedded for a text, `text_hash` beside its vector."""
    return text_hash(_words(kind, text))


def _length(vector: Any, dimension: int | None) -> float:
    """The length of a stored vector; no number (which equals and nears nothing) for what is none of this dimension."""
    if not dimension or not isinstance(vector, bytes) or len(vector) != 4 * dimension:
        return math.nan
    return float(np.linalg.norm(np.frombuffer(vector, "<f4").astype(np.float64)))


def _words(kind: Kind, text: str) -> str:
    return closet_words(text) if kind == "closet" else text


def _known_vectors(connection: Any, hashes: Sequence[str]) -> dict[str, bytes]:
    """Vectors already stored for equal texts, wherever they are filed; what another program has spoilt is not handed on."""
    wanted, dimension = json.dumps(hashes), stored_dimension(connection)
    rows = []
    for table in ("spare_vectors", *(f"{kind}_vectors" for kind in KINDS)):
        rows += connection.execute(
            f"select text_hash, vector from {table} where text_hash in (select value from json_each(?))",
            [wanted],
        ).fetchall()
    return {key: vector for key, vector in rows if abs(_length(vector, dimension) - 1) < UNIT}


def _embed_missing(
    palace: Palace, kind: Kind, texts: list[str], known: dict[str, bytes], download: bool
) -> int:
    new: dict[str, str] = {}
    for text in texts:
        words = _words(kind, text)
        if text_hash(words) not in known:
            new[text_hash(words)] = words
    full = {key: words for key, words in new.items() if words.strip()}
    if full:
        vectors = palace.embedder.embed(list(full.values()), download)
        _check_dimension(palace, vectors.shape[1])
        known.update({key: as_blob(vector) for key, vector in zip(full, vectors, strict=True)})
    blank = new.keys() - full.keys()
    if blank:
        # A blank text means nothing: a vector of zeros is as far from every query as from its opposite.
        known.update(dict.fromkeys(blank, as_blob(np.zeros(_dimension(palace), dtype=np.float32))))
    return len(full)


def _store(
    palace: Palace, kind: Kind, rows: Sequence[tuple[int, str, bytes]], known: dict[str, bytes]
) -> None:
    with palace.writer() as connection:
        for row_id, text, raw in rows:
            key = embedded_hash(kind, text)
            values = {"id": row_id, "raw": raw, "text_hash": key, "vector": known[key]}
            connection.execute(_STORE.format(kind=kind), values)


def stored_dimension(connection: Any) -> int | None:
    """How many numbers the palace's vectors have; None when nothing readable is recorded."""
    return get_number(connection, "embedding_dimension")


def record_dimension(connection: Any) -> None:
    """Record the dimension that most of the stored vectors have, where settings were lost; nothing when there are none."""
    lengths = " union all ".join(f"select length(vector) as bytes from {kind}_vectors" for kind in KINDS)
    most = connection.execute(
        f"select bytes from ({lengths}) group by bytes order by count(*) desc limit 1"
    ).fetchone()
    if most is not None:
        set_setting(connection, "embedding_dimension", str(most[0] // 4))


def _dimension(palace: Palace) -> int:
    with palace.reader() as connection:
        recorded = stored_dimension(connection)
    if recorded is None:
        recorded = palace.embedder.embed(["dimension"]).shape[1]
        _check_dimension(palace, recorded)
    return recorded


def _check_dimension(palace: Palace, dimension: int) -> None:
    with palace.reader() as connection:
        recorded = stored_dimension(connection)
    if recorded is None:
        with palace.writer() as connection:
            set_setting(connection, "embedding_dimension", str(dimension))
    elif recorded != dimension:
        raise EmbedderMismatch(
            f"This palace's vectors have {recorded} dimensions, those of the embedding model {palace.embedder.model} have "
            f"{dimension}: it is another model. Set the embedder the palace was made with, or make a new palace."
        )
