"""What was edited in an export comes back as it stands, or, where it is no vector of a model, is counted and made anew."""

import base64
import json

import numpy as np
import pytest

from building import make_palace
from datasette_mempalace.drawers import Drawer
from datasette_mempalace.palace import Palace
from datasette_mempalace.vectors import embed_pending
from test_exporting import contents, exported, restored, run


def as_vector(*numbers):
    return base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()


NO_VECTORS = {
    "not a number": as_vector(*[float("nan")] * 384),
    "infinite": as_vector(float("inf"), *[0] * 383),
    "zero": as_vector(*[0] * 384),
    "short": as_vector(1, *[0] * 382),
    "long": as_vector(1, *[0] * 384),
    "of length two": as_vector(2, *[0] * 383),
    "empty": "",
    "not base64": "%%%",
    "a number": 7,
    "numbers": [1, 0, 0],
}


@pytest.mark.parametrize("vector", NO_VECTORS)
def test_what_no_model_makes_is_counted_and_made_anew_and_its_drawer_is_kept(tmp_path, vector):
    with make_palace(tmp_path / "a.db", [("one", "w"), ("two", "w"), ("three", "w")]) as palace:
        good = contents(palace.path)
        header, *lines = exported(palace).splitlines()
    lines[:2] = [json.dumps({**json.loads(line), "vector": NO_VECTORS[vector]}) for line in lines[:2]]
    (tmp_path / "a.ndjson").write_text("\n".join([header, *lines]))
    done = run("import", tmp_path / "b.db", tmp_path / "a.ndjson")
    assert done.exit_code == 0
    assert "2 vectors were not usable" in done.stderr
    assert "will be made anew" in done.stderr
    assert "Vectors taken: 1." in done.stdout
    assert "Embedded 2 texts." in done.stdout
    assert contents(tmp_path / "b.db") == good


def test_a_dimension_in_the_first_line_that_is_not_the_models_does_not_bind_the_palace(tmp_path):
    with make_palace(tmp_path / "a.db", [("one", "w")]) as palace:
        good = contents(palace.path)
        text = exported(palace).replace('"embedding_dimension": 384', '"embedding_dimension": 5')
    (tmp_path / "a.ndjson").write_text(text)
    done = run("import", tmp_path / "b.db", tmp_path / "a.ndjson")
    assert (done.exit_code, "not usable" in done.stderr) == (0, False)
    assert "Vectors taken: 1." in done.stdout
    assert contents(tmp_path / "b.db") == good


def test_a_vector_that_another_program_has_spoilt_is_not_handed_on_to_equal_texts(tmp_path):
    with make_palace(tmp_path / "a.db", [("one", "w")]) as palace:
        good = contents(palace.path)["drawer_vectors"]
        with palace.writer() as connection:
            connection.execute("update drawer_vectors set vector = zeroblob(1536)")
            connection.execute("insert into drawers (text) values ('one')")
        assert embed_pending(palace) == 1
        with palace.reader() as connection:
            made = connection.execute("select vector from drawer_vectors where id = 2").fetchone()
    assert made[0] in good[0]


def test_a_date_that_was_edited_to_the_present_comes_back_as_it_is(tmp_path):
    with make_palace(tmp_path / "a.db", [Drawer("one", filed_at="2026-03-04"), ("two", "w")]) as palace:
        text = exported(palace).replace('"2026-03-04"', '"now"')
    with Palace.create(tmp_path / "b.db") as back:
        done, bad = restored(back, text)
        assert (done.drawers.added, done.bad_rows, bad) == (2, 0, [])
        assert exported(back) == text
