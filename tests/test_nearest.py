"""Every engine gives the true nearest of every scope, whatever has changed since it was filled."""

import threading

import numpy as np
import pytest

from building import make_palace, one
from datasette_mempalace import nearest as module
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, delete_drawers, put_drawers
from datasette_mempalace.errors import MatrixUnavailable
from datasette_mempalace.nearest import nearest
from datasette_mempalace.rows import count_in_scope
from datasette_mempalace.scope import Scope
from datasette_mempalace.vectors import as_blob

SIZE, DIMENSION = 3000, 384
SCOPES = [
    Scope(),
    Scope(wings=("w0",)),
    Scope(wings=("w0", "w1", None)),
    Scope(rooms=("far",)),
    Scope(wings=("w2",), since="2026-01-10 00:00:00"),
    Scope(ids=(1, 5, 9, 40_000)),
    Scope(ids=()),
]


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def palace(tmp_path_factory):
    """Clustered vectors, one room far from the others, put straight into the table."""
    chance = np.random.default_rng(7)
    centres = unit(chance.normal(size=(12, DIMENSION)))
    drawers = [
        Drawer(
            f"text {n}",
            wing=None if n % 50 == 0 else f"w{n % 4}",
            room="far" if n % 100 == 1 else "near",
            filed_at=f"2026-01-{1 + n % 28:02d}",
        )
        for n in range(SIZE)
    ]
    with make_palace(tmp_path_factory.mktemp("nearest") / "p.db") as palace:
        put_drawers(palace, drawers)
        with palace.writer() as connection:
            for row_id, room in connection.execute("select id, room from drawers").fetchall():
                centre = centres[11] if room == "far" else centres[row_id % 11]
                vector = unit(centre + 0.03 * chance.normal(size=DIMENSION))
                connection.execute(
                    "insert into drawer_vectors values (?, ?, ?)", [row_id, as_blob(vector), str(row_id)]
                )
        palace.mirror.sync()
        palace.query = unit(centres[3] + 0.03 * chance.normal(size=DIMENSION))
        yield palace


def by_hand(palace, scope, limit):
    """The truth: every stored vector of the scope, compared in the plainest way."""
    where, parameters = scope.where()
    with palace.reader() as connection:
        rows = connection.execute(
            f"select id, vector from drawer_vectors where id in (select id from drawers where {where})",
            parameters,
        ).fetchall()
    found = {
        row_id: 1 - float(np.frombuffer(blob, "<f4").astype(float) @ palace.query.astype(float))
        for row_id, blob in rows
    }
    return sorted(found, key=lambda row_id: (round(found[row_id], 7), row_id))[:limit]


def ask(palace, scope, limit=20):
    with palace.reader() as connection:
        return nearest(
            palace, connection, "drawer", palace.query, scope, limit, count_in_scope(connection, scope)
        )


def only(monkeypatch, palace, engine):
    monkeypatch.setattr(module, "_engines", lambda *given: [engine])
    palace.matrices.drop()


@pytest.mark.parametrize("engine", ["exact", "matrix"])
@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_exact_engines_give_the_true_nearest(palace, monkeypatch, engine, scope):
    only(monkeypatch, palace, engine)
    found = ask(palace, scope)
    assert list(found.distances) == by_hand(palace, scope, 20)
    assert list(found.distances.values()) == sorted(found.distances.values())


def test_all_engines_give_the_same_numbers(palace, monkeypatch):
    answers = []
    for engine in ("exact", "matrix", "chroma"):
        only(monkeypatch, palace, engine)
        answers.append(ask(palace, Scope(wings=("w1",)), 10))
    assert [answer.engine for answer in answers] == ["exact", "matrix", "chroma"]
    assert answers[0].distances == answers[1].distances == answers[2].distances


def test_the_engine_is_chosen_by_the_scope(palace, monkeypatch):
    palace.matrices.drop()
    monkeypatch.setattr(palace, "settings", Settings(exact_limit=1000))
    assert ask(palace, Scope()).engine == "chroma"
    assert ask(palace, Scope(wings=("w0",))).engine == "exact"
    assert ask(palace, Scope(rooms=("near",))).engine == "matrix"
    assert ask(palace, Scope(wings=("w0",))).engine == "matrix", "it is there now"
    assert ask(palace, Scope(rooms=("far",))).engine == "exact"
    palace.matrices.drop()


def test_what_has_changed_since_the_matrix_was_loaded_is_seen(palace, monkeypatch):
    only(monkeypatch, palace, "matrix")
    best = by_hand(palace, Scope(), 1)[0]
    ask(palace, Scope())
    wing = one(palace, "select wing from drawers where id = ?", best)[0]
    with palace.writer() as connection:
        connection.execute("update drawers set wing = 'elsewhere' where id = ?", [best])
        connection.execute(
            "insert into drawers(id, drawer_id, text, wing) values (90000, 'new', 'new', 'elsewhere')"
        )
        connection.execute("insert into drawer_vectors values (90000, ?, 'x')", [as_blob(palace.query)])
    try:
        for scope in (Scope(), Scope(wings=("elsewhere",)), Scope(wings=(wing,))):
            assert list(ask(palace, scope).distances) == by_hand(palace, scope, 20)
        assert next(iter(ask(palace, Scope()).distances)) == 90000
        delete_drawers(palace, Scope(ids=(90000,)))
        assert 90000 not in ask(palace, Scope()).distances
    finally:
        with palace.writer() as connection:
            connection.execute("update drawers set wing = ? where id = ?", [wing, best])


def test_much_change_loads_it_anew(palace, monkeypatch):
    only(monkeypatch, palace, "matrix")
    monkeypatch.setattr("datasette_mempalace.matrix.RELOAD_AFTER", 3)
    ask(palace, Scope())
    with palace.reader() as connection:
        before, _ = palace.matrices.get(connection, "drawer", DIMENSION)
    with palace.writer() as connection:
        connection.execute("update drawers set hall = 'x' where id <= 10")
    with palace.reader() as connection:
        after, changed = palace.matrices.get(connection, "drawer", DIMENSION)
    assert after.position > before.position
    assert changed == []


def test_a_matrix_that_would_be_too_large_is_not_loaded(palace, monkeypatch):
    palace.matrices.drop()
    monkeypatch.setattr(palace.matrices, "most_bytes", 1000)
    with palace.reader() as connection, pytest.raises(MatrixUnavailable, match="3,000 vectors.*matrix_mb"):
        palace.matrices.get(connection, "drawer", DIMENSION)
    monkeypatch.setattr(palace, "settings", Settings(exact_limit=10))
    answer = ask(palace, Scope(ids=tuple(range(1, 1500))))
    assert answer.engine == "exact"
    assert list(answer.distances) == by_hand(palace, Scope(ids=tuple(range(1, 1500))), 20)


def test_threads_share_one_matrix(palace, monkeypatch):
    only(monkeypatch, palace, "matrix")
    loads, load = [], module_load()
    monkeypatch.setattr("datasette_mempalace.matrix.load", lambda *given: loads.append(1) or load(*given))
    expected, found = by_hand(palace, Scope(wings=("w3",)), 20), []
    threads = [
        threading.Thread(target=lambda: found.append(list(ask(palace, Scope(wings=("w3",))).distances)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8
    assert len(loads) == 1


def module_load():
    from datasette_mempalace.matrix import load

    return load


def test_vectors_of_another_length_are_passed_over(palace, monkeypatch):
    with palace.writer() as connection:
        connection.execute("insert into drawers(id, drawer_id, text) values (91000, 'odd', 'odd')")
        connection.execute("insert into drawer_vectors values (91000, ?, 'x')", [b"\0" * 40])
    try:
        for engine in ("exact", "matrix"):
            only(monkeypatch, palace, engine)
            assert list(ask(palace, Scope(), 5).distances) == by_hand_but(palace, 91000)
    finally:
        delete_drawers(palace, Scope(ids=(91000,)))


def by_hand_but(palace, row_id):
    everything = one(palace, "select json_group_array(id) from drawers where id <> ?", row_id)[0]
    import json

    return by_hand(palace, Scope(ids=tuple(json.loads(everything))), 5)
