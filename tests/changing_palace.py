"""A folder with a palace of MemPalace's that goes on being written between imports."""

import chromadb
import numpy as np
from chromadb.config import Settings as ChromaSettings

from datasette_mempalace.embedding import Embedder

ROWS = 1_200
TEXTS = 40


class ChangingPalace:
    """A palace as MemPalace keeps one, with the vectors that the model makes of its texts.

    Args:
        folder: where it is to lie.
        texts: texts that its drawers may have.
        choices: a random.Random that decides everything.

    Attributes:
        drawers: what it holds, drawer_id to text.
    """

    def __init__(self, folder, texts, choices):
        self.folder, self.random, self.drawers = folder, choices, {}
        self._texts = list(texts)
        self._vectors = Embedder().embed(self._texts)
        self.write(ROWS)

    def write(self, count):
        """Give so many of its drawers another text, or add them where they are not there yet."""
        names = self.random.sample([f"foreign-{number}" for number in range(ROWS)], count)
        chosen = [self.random.randrange(len(self._texts)) for _ in names]
        client = chromadb.PersistentClient(
            str(self.folder), settings=ChromaSettings(anonymized_telemetry=False)
        )
        collection = client.get_or_create_collection(
            "mempalace_drawers", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )
        for start in range(0, count, 1_000):
            part = slice(start, start + 1_000)
            collection.upsert(
                ids=names[part],
                documents=[self._texts[number] for number in chosen[part]],
                embeddings=np.stack([self._vectors[number] for number in chosen[part]]),
                metadatas=[{"wing": "foreign", "added_by": "mempalace"} for _ in names[part]],
            )
        client.close()
        self.drawers.update(zip(names, (self._texts[number] for number in chosen), strict=True))
