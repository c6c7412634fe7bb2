"""Palaces as MemPalace leaves them, made with the Chroma client in a process of its own, and ways to damage their files.

Run as a script it makes the palaces in a folder; tests copy them from there and change the copies with SQL.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SUBJECTS = (
    "The lighthouse keeper trims the lamp",
    "PostgreSQL was chosen for its partial indexes",
    "Bread dough rests overnight in the cold",
    "The login service signs a token",
)
WINGS = ("harbour", "acme-app", "café-notes", "日本語")


# Drawers of each palace: 60 and six odd ones, without two that were deleted and two of bookkeeping.
IMPORTED = 62


def build(folder):
    """Make every palace in a folder, in a child: Chroma must not have been opened where the import runs."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    subprocess.run([sys.executable, __file__, str(folder)], check=True, env=environment)


def rows(count):
    """Drawers as (id, text, metadata), with the keys that MemPalace's miner writes."""
    for number in range(count):
        text = f"{SUBJECTS[number % 4]}; note {number} says so."
        yield f"drawer_{number:03d}", text, {
            "wing": WINGS[number % 4],
            "room": f"room {number % 3}",
            "hall": "hall_facts",
            "source_file": f"/notes/{number % 4}.md" if number % 5 else "",
            "chunk_index": number // 4,
            "chunk_total": count // 4,
            "added_by": "mempalace",
            "filed_at": f"2026-03-{1 + number % 28:02d}T09:00:00.123456",
            "entities": "Lighthouse;PostgreSQL",
            "source_mtime": 1_700_000_000.25,
            "content_date": "2026-02-01",
            "is_draft": bool(number % 2),
        }  # fmt: skip


ODD = (
    ("_reg_0123", "[registry] /notes/talk.jsonl", {"room": "_registry", "ingest_mode": "registry"}),
    ("sentinel_w_0123", "[empty]", {"wing": "harbour", "chunk_index": -1, "is_sentinel": True}),
    ("diary_2026", "Wrote about the harbour today.", {"wing": "wing_sample", "room": "diary", "hall": "hall_diary",
     "type": "diary_entry", "agent": "sample", "date": "2026-03-14"}),
    ("no_metadata", "A text that nobody described.", None),
    ("no_text", None, {"wing": "harbour"}),
    ("a_list", "A text with a list of tags.", {"wing": "harbour", "tags": ["one", "two"]}),
)  # fmt: skip
CLOSETS = (
    ("closet_0", "lighthouse|Keeper;Lamp|→drawer_000,drawer_004", {"wing": "harbour", "source_file": "/notes/0.md"}),
    ("closet_1", "AAAK words without any pointer", {"wing": "acme-app", "source_file": "/notes/1.md"}),
)  # fmt: skip


def main(folder):
    """Make `queued` (all vectors in the queue), `synced` (most of them in index files) and `euclid` (no metric given)."""
    import chromadb
    from chromadb.config import Settings

    from datasette_mempalace.embedding import Embedder

    embedder, expected = Embedder(), {}
    quick = {"hnsw:space": "cosine", "hnsw:batch_size": 10, "hnsw:sync_threshold": 20}
    for name, metadata, scale in (
        ("queued", {"hnsw:space": "cosine"}, 1),
        ("synced", quick, 3),
        ("euclid", {"hnsw:batch_size": 10, "hnsw:sync_threshold": 20}, 2),
    ):
        client = chromadb.PersistentClient(
            f"{folder}/{name}/palace", settings=Settings(anonymized_telemetry=False)
        )
        drawers = client.create_collection("mempalace_drawers", metadata=metadata, embedding_function=None)
        everything = [*rows(60), *ODD]
        vectors = embedder.embed([text or "nothing" for _, text, _ in everything]) * np.float32(scale)
        if name == "euclid":
            vectors[7] = 0
        for start in range(0, len(everything), 6):
            part = slice(start, start + 6)
            _add(drawers, everything[part], vectors[part])
        drawers.update(
            ids=["drawer_004"],
            documents=["The keeper sleeps."],
            embeddings=embedder.embed(["The keeper sleeps."]),
        )
        drawers.upsert(
            ids=["drawer_008"], documents=["Harbour seals."], embeddings=embedder.embed(["Harbour seals."])
        )
        drawers.add(ids=["drawer_009"], documents=["ignored"], embeddings=embedder.embed(["ignored"]))
        drawers.delete(ids=["drawer_010", "drawer_011"])
        closets = client.create_collection("mempalace_closets", metadata=metadata, embedding_function=None)
        _add(closets, CLOSETS, embedder.embed([text for _, text, _ in CLOSETS]))
        found = drawers.get(include=["embeddings", "documents", "metadatas"])
        client.close()
        expected[name] = {
            key: {"vector": np.asarray(vector, dtype=float).tolist(), "text": text, "metadata": keys}
            for key, vector, text, keys in zip(
                found["ids"], found["embeddings"], found["documents"], found["metadatas"], strict=True
            )
        }
    Path(folder, "expected.json").write_text(json.dumps(expected))


def _add(collection, part, vectors):
    """Add rows together where Chroma takes them so: it takes no None in a list."""
    whole = all(text is not None and metadata is not None for _, text, metadata in part)
    for group in [slice(None)] if whole else [slice(number, number + 1) for number in range(len(part))]:
        keys, found, described = zip(*part[group], strict=True)
        collection.add(
            ids=list(keys),
            embeddings=vectors[group],
            documents=None if None in found else list(found),
            metadatas=None if None in described else list(described),
        )


def state(folder):
    """Everything below a folder, byte by byte, with times."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def edit(palace, *statements):
    """Run SQL on a foreign palace's database, as MemPalace might have changed it."""
    connection = sqlite3.connect(palace / "chroma.sqlite3")
    for statement in statements:
        connection.execute(*(statement if isinstance(statement, tuple) else (statement,)))
    connection.commit()
    connection.close()


def ask(palace, query):
    """The rows of a query to a foreign palace's database."""
    connection = sqlite3.connect(palace / "chroma.sqlite3")
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def index_folder(palace):
    """The folder of the drawers' vector index."""
    [(segment,)] = ask(
        palace,
        "select s.id from segments s join collections c on c.id = s.collection"
        " where s.scope = 'VECTOR' and c.name = 'mempalace_drawers'",
    )
    return palace / segment


def copy_palace(made, name, target):
    """A copy of a palace that was made; `target` is the folder that holds the palace's folder."""
    shutil.copytree(made / name, target)
    return target / "palace"


if __name__ == "__main__":
    main(sys.argv[1])
