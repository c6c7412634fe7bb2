"""What must be true of a palace whenever a process that worked on it was killed."""

import json
from contextlib import closing
from pathlib import Path

import chromadb
import numpy as np
from chromadb.config import Settings as ChromaSettings
from datasette.utils.sqlite import sqlite3

from datasette_mempalace.closets import closet_words
from datasette_mempalace.text import text_hash


class KilledPalace:
    """The checks of a `killing.World`, which has the palace and knows what was acknowledged."""

    def check(self):
        """All that must be true after a kill, and after one sync that follows it."""
        with closing(sqlite3.connect(self.palace, timeout=30)) as connection:
            assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
            self._check_full_text(connection)
            self._check_acknowledged(connection)
            missing = self._texts_to_embed(connection)
        said = self.run("sync")
        assert f"Embedded {missing:,} text" in said, (missing, said)
        with closing(sqlite3.connect(self.palace, timeout=30)) as connection:
            self._check_full_text(connection)
            self._check_acknowledged(connection)
            assert self._texts_to_embed(connection) == 0
            self.check_mirror(connection)

    def check_end(self):
        """Once mining, importing and purging have come to their end, the palace says what their files say, once."""
        self.run("mine", str(self.notes), "--wing", "notes")
        self.run("import-palace", str(self.foreign.folder))
        self.run("import", str(self.write_records()), "--wing", "records")
        with closing(sqlite3.connect(self.palace, timeout=30)) as connection:
            drawers = connection.execute(
                "select drawer_id, text, added_by, source_file, metadata from drawers"
            ).fetchall()
        assert {name: text for name, text, by, _, _ in drawers if by == "import"} == self.records
        imported = {name: text for name, text, by, _, _ in drawers if by == "mempalace"}
        assert imported == self.foreign.drawers
        written = {name: text for name, text, by, _, _ in drawers if by in ("sql", "api")}
        # One that was sent and stored, but whose answer the kill has swallowed, may be there as well.
        assert written.items() >= self.acknowledged.items()
        texts = {}
        for _, text, by, source, metadata in drawers:
            if by == "mine":
                texts.setdefault(source, []).append((json.loads(metadata)["char_start"], text))
        assert set(texts) == {str(file) for file in self.notes.iterdir()}
        for source, pieces in texts.items():
            assert put_together(pieces) == Path(source).read_text()
        self.run("purge")
        files = [self.palace, *Path(f"{self.palace}.chroma").rglob("*")]
        content = b"".join(file.read_bytes() for file in files if file.is_file())
        assert not [text for text in self.deleted if text.encode() in content]

    def _check_full_text(self, connection):
        for table in ("drawers_fts", "closets_fts"):
            with connection:
                connection.execute(f"insert into {table}({table}, rank) values ('integrity-check', 1)")

    def _check_acknowledged(self, connection):
        stored = dict(connection.execute("select drawer_id, text from drawers"))
        lost = {name for name, text in self.acknowledged.items() if stored.get(name) != text}
        assert not lost, f"acknowledged and lost: {sorted(lost)[:5]}"
        lost = {name for name, text in self.seen if stored.get(name) != text}
        assert not lost, f"seen and lost: {sorted(lost)[:5]}"
        vectors = dict(connection.execute("select text_hash, vector from drawer_vectors"))
        for key, vector in self.seen_vectors.items():
            assert vectors.get(key, vector) == vector, "a vector that was stored has been made again"

    def _texts_to_embed(self, connection):
        """How many different texts have no vector anywhere; all that a sync may embed."""
        known = set()
        for table in ("drawer_vectors", "closet_vectors", "spare_vectors"):
            known |= {row[0] for row in connection.execute(f"select text_hash from {table}")}
        drawers = connection.execute(
            "select text from drawers where id not in (select id from drawer_vectors)"
        ).fetchall()
        closets = connection.execute(
            "select text from closets where id not in (select id from closet_vectors)"
        ).fetchall()
        wanted = {text_hash(text) for (text,) in drawers} | {
            text_hash(closet_words(text)) for (text,) in closets
        }
        return len(wanted - known)

    def check_mirror(self, connection):
        """The mirror holds each vector once, with its wing and room, and finds it."""
        client = chromadb.PersistentClient(
            f"{self.palace}.chroma", settings=ChromaSettings(anonymized_telemetry=False)
        )
        try:
            for kind in ("drawer", "closet"):
                collection = client.get_collection(f"palace-palace_{kind}s", embedding_function=None)
                self._check_collection(connection, kind, collection)
            position = client.get_collection("palace-palace_drawers", embedding_function=None).metadata[
                "position"
            ]
            assert position == connection.execute("select max(seq) from drawer_changes").fetchone()[0]
        finally:
            client.close()

    def _check_collection(self, connection, kind, collection):
        truth = {
            str(row_id): (np.frombuffer(vector, "<f4"), {"wing": wing, "room": room})
            for row_id, vector, wing, room in connection.execute(
                f"select v.id, vector, wing, room from {kind}_vectors v join {kind}s t on t.id = v.id"
            )
        }
        held = collection.get(include=["embeddings", "metadatas"])
        assert sorted(held["ids"]) == sorted(truth)
        for name, vector, keys in zip(held["ids"], held["embeddings"], held["metadatas"], strict=True):
            assert np.allclose(vector, truth[name][0], atol=1e-5)
            assert {key: keys.get(key) for key in ("wing", "room")} == truth[name][1]
        for name in self.random.sample(sorted(truth), min(30, len(truth))):
            found = collection.query(query_embeddings=[truth[name][0]], n_results=1)
            assert found["distances"][0][0] < 1e-4, f"{kind} {name} does not find itself"


def put_together(pieces):
    """The text that overlapping pieces, given as (start, text), were cut from."""
    whole = ""
    for start, text in sorted(pieces):
        assert start <= len(whole), "a part is missing"
        whole = whole[:start] + text
    return whole
