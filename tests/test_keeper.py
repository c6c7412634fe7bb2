"""A running server keeps its palaces in step: what others write is embedded and mirrored within seconds."""

import asyncio
import shutil
import time

import pytest
from datasette.utils.sqlite import sqlite3

from building import find, make_palace, texts
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.errors import EmbedderUnavailable
from datasette_mempalace.keeper import Keeper, keep_in_step
from datasette_mempalace.palace import Palace
from datasette_mempalace.status import palace_status


@pytest.fixture
def palace(tmp_path):
    with make_palace(
        tmp_path / "p.db", [("the red fox", "w")], settings=Settings(sync_seconds=0.1)
    ) as palace:
        yield palace


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def insert(path, text):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("insert into drawers(drawer_id, text) values (?, ?)", [text, text])
    connection.close()


def test_what_plain_sql_writes_is_embedded_and_mirrored(palace):
    keeper = Keeper(lambda: [palace])
    keeper.start()
    try:
        wait_for(lambda: palace_status(palace)["mirror"]["state"] == "in step")
        insert(palace.path, "a canary sings")
        wait_for(lambda: palace_status(palace)["pending_vectors"] == 0)
        wait_for(lambda: palace_status(palace)["mirror"]["state"] == "in step")
    finally:
        keeper.stop()
    answer = find(palace, "bird song", n_results=1)
    assert texts(answer) == ["a canary sings"]
    assert answer["results"][0]["found_by"] == ["vector"]


def test_sync_seconds_is_kept_to(tmp_path, monkeypatch):
    turns = []
    monkeypatch.setattr("datasette_mempalace.keeper.LOOK_SECONDS", 0.05)
    monkeypatch.setattr("datasette_mempalace.keeper.keep_in_step", lambda palace, *rest: turns.append(palace))
    with make_palace(tmp_path / "p.db", settings=Settings(sync_seconds=60)) as palace:
        keeper = Keeper(lambda: [palace])
        keeper.start()
        wait_for(lambda: palace in turns)
        time.sleep(0.3)
        keeper.stop()
    assert turns.count(palace) == 1, "keepers of other tests may still run"


def test_it_stops_in_the_middle_of_much_work(tmp_path, monkeypatch):
    with make_palace(tmp_path / "p.db", settings=Settings(sync_seconds=0.1)) as palace:
        put_drawers(palace, [Drawer(f"text number {number} to embed " * 4) for number in range(2000)])
        keeper = Keeper(lambda: [palace])
        keeper.start()
        wait_for(lambda: palace_status(palace)["pending_vectors"] < 2000)
        started = time.monotonic()
        keeper.stop()
        assert time.monotonic() - started < 20
        left = palace_status(palace)["pending_vectors"]
        assert left > 0
        time.sleep(0.5)
        assert palace_status(palace)["pending_vectors"] == left


def test_a_mirror_whose_folder_was_deleted_comes_back(palace):
    keeper = Keeper(lambda: [palace])
    keeper.start()
    try:
        wait_for(lambda: palace_status(palace)["mirror"]["state"] == "in step")
        shutil.rmtree(palace.mirror_path)
        wait_for(
            lambda: (palace.mirror_path / "chroma.sqlite3").exists() and palace.mirror.state().position >= 0
        )
        assert [
            row_id for row_id, _ in palace.mirror.nearest("drawer", palace.embedder.embed_query("fox"), 5)
        ] == [1]
    finally:
        keeper.stop()


def test_a_round_without_changes_does_nothing(palace, monkeypatch):
    seen = {}
    keep_in_step(palace, seen)
    keep_in_step(palace, seen)
    monkeypatch.setattr(palace.mirror, "sync", lambda *given, **options: pytest.fail("synced again"))
    keep_in_step(palace, seen)


def test_one_palace_that_fails_does_not_stop_the_others(palace, tmp_path, monkeypatch, caplog):
    def fails(*arguments, **options):
        raise EmbedderUnavailable("the model is on holiday")

    with make_palace(
        tmp_path / "second.db", [("a whale", "w")], settings=Settings(sync_seconds=0.1)
    ) as second:
        insert(palace.path, "not embedded")
        monkeypatch.setattr(palace.embedder, "embed", fails)
        keeper = Keeper(lambda: [palace, second])
        keeper.start()
        try:
            wait_for(lambda: palace_status(second)["mirror"]["state"] == "in step")
        finally:
            keeper.stop()
    assert "the model is on holiday" in caplog.text


def test_a_round_that_cannot_tell_which_palaces_are_open_is_not_the_last(palace, caplog):
    rounds = iter([PermissionError(13, "Permission denied")])

    def palaces():
        for error in rounds:
            raise error
        return [palace]

    keeper = Keeper(palaces)
    keeper.start()
    try:
        wait_for(lambda: palace_status(palace)["mirror"]["state"] == "in step")
    finally:
        keeper.stop()
    assert "which palaces are open cannot be told" in caplog.text


def test_a_missing_model_is_not_downloaded_by_a_server(palace, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "datasette_mempalace.embedding.download_minilm", lambda: pytest.fail("a download was begun")
    )
    insert(palace.path, "waits for its vector")
    settings = Settings(embedder={"name": "all-MiniLM-L6-v2", "config": {"path": str(tmp_path / "nowhere")}})
    with Palace.open(palace.path, settings) as opened:
        keep_in_step(opened, {})
        assert palace_status(opened)["pending_vectors"] == 1


async def until_in_step(path):
    with Palace.open(path) as looking:
        deadline = time.monotonic() + 20
        while (
            palace_status(looking)["pending_vectors"]
            or palace_status(looking)["mirror"]["state"] != "in step"
        ):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)


async def test_it_starts_with_a_server_that_nobody_asks_anything(make_datasette, tmp_path):
    path = tmp_path / "palace.db"
    with make_palace(path, [("the red fox", "w")]):
        insert(path, "written before the server came")
    datasette = make_datasette(path, config={"plugins": {"datasette-mempalace": {"sync_seconds": 0.1}}})
    await datasette.invoke_startup()
    messages: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    answered = []
    messages.put_nowait({"type": "lifespan.startup"})

    async def send(message):
        answered.append(message["type"])

    serving = asyncio.create_task(datasette.app()({"type": "lifespan"}, messages.get, send))
    await until_in_step(path)
    messages.put_nowait({"type": "lifespan.shutdown"})
    await asyncio.wait_for(serving, 20)
    assert answered == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_the_first_request_starts_it_where_no_server_does(make_datasette, tmp_path):
    path = tmp_path / "palace.db"
    with make_palace(path, [("the red fox", "w")]):
        insert(path, "written before the server came")
    settings = {"datasette-mempalace": {"warm_up": True, "sync_seconds": 0.1}}
    datasette = make_datasette(path, config={"plugins": settings})
    await datasette.client.get("/palace/-/mempalace")
    await until_in_step(path)
    response = await datasette.client.get("/palace/-/mempalace.json?q=fox")
    assert response.json()["engine"] == "chroma"
