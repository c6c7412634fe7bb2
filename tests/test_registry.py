"""Palaces inside a Datasette: one for each file, searched in threads of their own, closed at the end."""

import asyncio
import gc
import os
import shutil
import threading
import time
import weakref

import pytest

from datasette_mempalace import registry
from datasette_mempalace.compat import settings_error
from datasette_mempalace.config import Settings
from datasette_mempalace.errors import MempalaceError
from datasette_mempalace.palace import Palace
from datasette_mempalace.schema import INNER_TABLES

PALACE = "/palace/-/mempalace"


async def test_one_palace_for_one_file(make_datasette, palace_path, tmp_path):
    linked = tmp_path / "linked.db"
    linked.symlink_to(palace_path)
    datasette = make_datasette(palace_path, linked)
    first, second = [await registry.open_palace(datasette, name) for name in ("palace", "linked")]
    assert first is second


async def test_many_threads_open_one_palace(make_datasette, palace_path):
    datasette = make_datasette(palace_path)
    palaces = await asyncio.gather(*(registry.open_palace(datasette, "palace") for _ in range(20)))
    assert len(set(map(id, palaces))) == 1


async def test_an_immutable_database_is_only_read(make_datasette, palace_named):
    datasette = make_datasette(immutables=[str(palace_named("fixed.db"))])
    assert (await registry.open_palace(datasette, "fixed")).read_only


@pytest.mark.parametrize("mark", ["?", "#"])
async def test_a_file_that_datasette_cannot_open_is_told(make_datasette, palace_path, tmp_path, mark):
    file = tmp_path / f"letters{mark}2026.db"
    shutil.copy(palace_path, file)
    response = await make_datasette(file).client.get(f"/letters~{ord(mark):X}2026/-/mempalace.json?q=token")
    assert response.status_code == 404
    assert f"the path of its file has a {mark}" in response.json()["error"]
    assert "Rename the file" in response.json()["error"]


async def test_a_database_that_becomes_a_palace_is_noticed(make_datasette, tmp_path, monkeypatch):
    import sqlite3

    from datasette_mempalace.palace import Palace

    path = tmp_path / "later.db"
    sqlite3.connect(path).execute("create table t(x)").connection.close()
    datasette = make_datasette(path)
    assert await registry.palace_databases(datasette) == []
    Palace.create(path).close()
    monkeypatch.setattr(registry, "LOOK_AGAIN", 0.0)
    assert await registry.palace_databases(datasette) == ["later"]


@pytest.mark.parametrize("extension", ["", ".json", ".csv"])
async def test_searching_takes_neither_the_loop_nor_datasettes_threads(served, monkeypatch, extension):
    from datasette_mempalace.searcher import run_search
    from datasette_mempalace.views import api, pages

    seen = []

    def watched(*arguments):
        seen.append(threading.current_thread().name)
        return run_search(*arguments)

    for module in (api, pages):
        monkeypatch.setattr(module, "run_search", watched)
    assert (await served.client.get(f"{PALACE}{extension}?q=token")).status_code == 200
    assert [name.startswith("mempalace") for name in seen] == [True]


async def test_the_servers_end_closes_the_palaces(make_datasette, palace_path):
    datasette = make_datasette(palace_path)
    await datasette.invoke_startup()
    assert (await datasette.client.get(f"{PALACE}.json?q=token")).status_code == 200
    opened = registry.registry_of(datasette).opened()
    assert opened
    messages, sent = iter(["lifespan.startup", "lifespan.shutdown"]), []

    async def receive():
        return {"type": next(messages)}

    async def send(message):
        sent.append(message["type"])

    await datasette.app()({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert registry.registry_of(datasette).opened() == []
    with pytest.raises(MempalaceError, match="shutting down"):
        registry.registry_of(datasette).palace(str(palace_path), opened[0].settings, False)


class StandIn:
    """In place of a Datasette that is to be collected: a real one stays referred to by its own threads for a while."""


def test_nothing_is_kept_of_a_datasette_that_is_gone(palace_path):
    datasette = StandIn()
    kept = registry.registry_of(datasette)
    palace = kept.palace(str(palace_path), Settings(), True)
    assert kept.opened() == [palace]
    alive = weakref.ref(datasette)
    del datasette
    gc.collect()
    assert alive() is None
    deadline = time.monotonic() + 20
    while kept.opened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def test_inner_tables_are_hidden_unless_the_configuration_shows_them(make_datasette, palace_path):
    datasette = make_datasette(palace_path)
    await datasette.invoke_startup()
    hidden = set(await datasette.get_database("palace").hidden_table_names())
    assert set(INNER_TABLES) - {"sqlite_sequence"} <= hidden
    assert not {"drawers", "closets"} & hidden
    config = {"databases": {"palace": {"tables": {"drawer_changes": {"hidden": False}}}}}
    showing = make_datasette(palace_path, config=config)
    await showing.invoke_startup()
    assert "drawer_changes" not in await showing.get_database("palace").hidden_table_names()


def test_collecting_a_datasette_waits_for_nothing(palace_path):
    """Garbage is collected in the middle of anything: who waits there may wait for itself."""
    datasette = StandIn()
    palace = registry.registry_of(datasette).palace(str(palace_path), Settings(), True)
    gone, held, leave = weakref.ref(datasette), threading.Event(), threading.Event()

    def holds_what_closing_needs():
        with palace.mirror._lock:
            held.set()
            leave.wait(20)

    thread = threading.Thread(target=holds_what_closing_needs)
    thread.start()
    held.wait(5)
    try:
        started = time.monotonic()
        del datasette
        gc.collect()
        assert time.monotonic() - started < 10
        assert gone() is None
    finally:
        leave.set()
        thread.join()


async def test_one_palace_under_two_names_is_refused_by_hard_links_alone(make_datasette, tmp_path):
    palace, hard, soft = (tmp_path / name for name in ("palace.db", "hard.db", "soft.db"))
    Palace.create(palace).close()
    os.link(palace, hard)
    soft.symlink_to(palace)
    with pytest.raises(
        type(settings_error("")), match=r"palace\.db and .*hard\.db are one palace under two names"
    ):
        await make_datasette(palace, hard).invoke_startup()
    await make_datasette(palace, soft).invoke_startup()
    await make_datasette(immutables=[str(palace), str(hard)]).invoke_startup()
