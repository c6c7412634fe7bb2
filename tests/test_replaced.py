"""A palace whose file is replaced or deleted while a server has it open: nothing is mixed, the new file is served."""

import asyncio
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from datasette import hookimpl
from datasette.plugins import pm
from datasette.utils.sqlite import sqlite3

from building import add, make_palace
from datasette_mempalace import registry, replaced
from datasette_mempalace.compat import IS_ONE
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.errors import PalaceReplaced
from datasette_mempalace.palace import Palace
from datasette_mempalace.status import palace_status

SETTINGS = {"plugins": {"datasette-mempalace": {"sync_seconds": 0.1, "warm_up": False}}}


@pytest.fixture
def files(tmp_path):
    """A palace to be served, and one of many more pages to take its place."""
    old, new = tmp_path / "palace.db", tmp_path / "new.db"
    with make_palace(old, [("the red fox", "old"), ("the blue whale", "old")], mirror=True):
        pass
    with make_palace(new) as palace:
        put_drawers(
            palace, [Drawer("a badger digs " * 80, wing="new", chunk_index=number) for number in range(60)]
        )
        add(palace, ("a green heron", "new"), mirror=True)
    return old, new


@pytest.fixture
def serve(make_datasette):
    opened = []

    def made(*paths):
        config = {**SETTINGS, "permissions": {"insert-row": True}} if IS_ONE else SETTINGS
        opened.append(make_datasette(*paths, config=config))
        return opened[-1]

    yield made
    for datasette in opened:
        registry.registry_of(datasette).close()


def insert(path, text):
    with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
        connection.execute("insert into drawers(text) values (?)", [text])


def assert_whole(path, drawers):
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert connection.execute("select count(*) from drawers").fetchone() == (drawers,)
        with connection:
            connection.execute("insert into drawers_fts(drawers_fts, rank) values ('integrity-check', 1)")


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


async def found(datasette, query):
    response = await datasette.client.get(f"/palace/-/mempalace.json?q={query}&n_results=1")
    assert response.status_code == 200, response.text
    return [hit["text"] for hit in response.json()["results"]]


async def count(datasette):
    response = await datasette.client.get("/palace/drawers.json?_shape=array&_size=max")
    assert response.status_code == 200, response.text
    return len(response.json())


async def test_a_file_moved_over_a_served_palace_is_served_whole(files, serve, caplog):
    old, new = files
    datasette = serve(old)
    assert await found(datasette, "fox") == ["the red fox"]
    assert await count(datasette) == 2
    insert(old, "a canary, in the write-ahead log")
    palace = await registry.open_palace(datasette, "palace")
    wait_for(lambda: palace_status(palace)["pending_vectors"] == 0)
    kept = old.with_name("kept.db")
    os.link(old, kept)
    os.replace(new, old)
    assert await found(datasette, "heron") == ["a green heron"]
    assert await count(datasette) == 61
    response = await datasette.client.get(
        "/palace.json?sql=select+text+from+mempalace_search+where+query='heron'+limit+1&_shape=arrays"
        if not IS_ONE
        else "/palace/-/query.json?sql=select+text+from+mempalace_search+where+query='heron'+limit+1&_shape=arrays"
    )
    assert response.json()["rows"] == [["a green heron"]], response.text
    palace = await registry.open_palace(datasette, "palace")
    wait_for(lambda: palace.mirror.is_open and palace_status(palace)["mirror"]["state"] == "in step")
    assert palace.mirror.store.call("drawer", "count") == 61
    assert [line.partition(" was ")[2] for line in caplog.messages if line.startswith(str(old))] == [
        "replaced by another file, which is served from now on."
    ]
    insert(old, "a mole, stored after the change")
    wait_for(lambda: palace_status(palace)["pending_vectors"] == 0)
    assert await found(datasette, "mole") == ["a mole, stored after the change"]
    registry.registry_of(datasette).close()
    assert_whole(old, 62)
    # The old file lives on under another name, with all that was in its log.
    assert_whole(kept, 3)


def files_open(folder):
    """How many of this process's open files lie, or have lain, directly in a folder."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += os.path.dirname(os.readlink(f"/proc/self/fd/{number}")) == str(folder)
        except FileNotFoundError:  # the listing's own
            continue
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="open files are counted in /proc")
async def test_open_files_stay_as_many_however_often_a_file_is_replaced(files, serve):
    palace, new = files
    other = palace.with_name("other.db")
    shutil.copy(palace, other)
    datasette = serve(palace, other)
    asked = ["/palace/drawers.json", "/other/drawers.json", "/palace/-/mempalace.json?q=fox"]

    async def ask():
        for response in await asyncio.gather(*(datasette.client.get(address) for address in asked * 4)):
            assert response.status_code == 200, response.text

    await ask()
    threads = datasette.setting("num_sql_threads")
    for number in range(12):
        copy = palace.with_name("copy.db")
        shutil.copy(new, copy)
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute("delete from drawers where id > ?", [number + 1])
        os.replace(copy, palace)
        assert await count(datasette) == number + 1
        await ask()
    # A thread has each file and its log; beside them there are the palaces' own, and the indexes of the logs.
    wait_for(lambda: files_open(palace.parent) <= 2 * (2 * threads) + 2 * 12)


async def test_what_is_under_way_goes_on_with_the_new_file(files, serve):
    old, new = files
    datasette = serve(old)
    assert await count(datasette) == 2
    held = datasette.get_database("palace")
    await held.execute_write_fn(lambda connection: connection.execute("select 1").fetchone())
    os.replace(new, old)
    assert await count(datasette) == 61
    assert (await held.execute("select count(*) from drawers")).first()[0] == 61
    read = "select count(*) from drawers"
    assert await held.execute_write_fn(lambda connection: connection.execute(read).fetchone()[0]) == 61


@pytest.mark.parametrize(("address", "status"), [("/", 200), ("/palace", 503), ("/palace/drawers", 503)])
async def test_what_is_under_way_when_its_file_goes_is_no_fault(files, serve, address, status):
    old, new = files
    datasette = serve(old, new)
    assert await count(datasette) == 2
    begun, gone = asyncio.Event(), asyncio.Event()

    class Waits:
        __name__ = "waits"  # Datasette 0.65 asks for it

        @hookimpl
        def extra_template_vars(self):
            async def wait():
                begun.set()
                await gone.wait()
                return {}

            return wait

    plugin = Waits()
    pm.register(plugin)
    try:
        asked = asyncio.create_task(datasette.client.get(address))
        await asyncio.wait_for(begun.wait(), 30)
        os.replace(old, old.with_name("away.db"))
        assert (await datasette.client.get("/palace/drawers.json")).status_code == 503
        gone.set()
        answer = await asked
    finally:
        pm.unregister(plugin)
    assert answer.status_code == status, answer.text
    assert ("The file of palace was deleted or moved away" in answer.text) == (status == 503)
    os.replace(old.with_name("away.db"), old)
    assert await found(datasette, "fox") == ["the red fox"]


def lead(link, file):
    """Let a link lead to a file, in one step, as `mv -T` does."""
    made = link.with_name("link")
    os.symlink(file, made)
    os.replace(made, link)


@pytest.mark.parametrize("threads", [0, 1, 3])
async def test_crossdb_attaches_what_is_there_now(files, make_datasette, threads):
    old, new = files
    datasette = make_datasette(old, config=SETTINGS, crossdb=True, settings={"num_sql_threads": threads})
    await datasette.invoke_startup()
    asked = (
        f"/_memory{'/-/query' if IS_ONE else ''}.json?_shape=arrays&sql=select+count(*)+from+palace.drawers"
    )

    async def crossed():
        answers = await asyncio.gather(*(datasette.client.get(asked) for _ in range(6)))
        return {(answer.status_code, str(answer.json().get("rows"))) for answer in answers}

    try:
        assert await crossed() == {(200, "[[2]]")}
        away = old.with_name("away.db")
        os.replace(old, away)
        assert await crossed() == {(400, "[]")}
        assert (await datasette.client.get("/_memory")).status_code == 200
        os.replace(new, old)
        assert await crossed() == {(200, "[[61]]")}
        os.replace(away, old)
        assert await crossed() == {(200, "[[2]]")}
    finally:
        registry.registry_of(datasette).close()


async def test_a_link_that_leads_elsewhere_is_followed_by_every_page(files, serve):
    link, (old, new) = files[0].with_name("served") / "palace.db", files
    link.parent.mkdir()
    lead(link, old)
    datasette = serve(link)
    assert await found(datasette, "fox") == ["the red fox"]
    assert await count(datasette) == 2
    opened = registry.registry_of(datasette).opened
    lead(link, new)
    assert await count(datasette) == 61
    assert await found(datasette, "heron") == ["a green heron"]
    assert [palace.path for palace in opened()] == [str(new)]
    lead(link, old)  # the keeper's turn comes before a request's
    wait_for(lambda: [palace.path for palace in opened()] == [str(old)])
    assert await found(datasette, "fox") == ["the red fox"]
    assert await count(datasette) == 2
    registry.registry_of(datasette).close()
    assert_whole(old, 2)
    assert_whole(new, 61)


async def test_a_file_in_place_of_a_link_and_a_link_in_place_of_a_file(files, serve):
    old, new = files
    link, kept = old.with_name("served") / "palace.db", old.with_name("kept.db")
    link.parent.mkdir()
    os.symlink(old, link)
    datasette = serve(link)
    assert await count(datasette) == 2
    os.replace(new, link)
    assert await count(datasette) == 61
    assert await found(datasette, "heron") == ["a green heron"]
    os.link(link, kept)
    insert(link, "a canary, in the write-ahead log")
    palace = await registry.open_palace(datasette, "palace")
    wait_for(lambda: palace_status(palace)["pending_vectors"] == 0)
    lead(link, old)
    assert await count(datasette) == 2
    assert await found(datasette, "fox") == ["the red fox"]
    registry.registry_of(datasette).close()
    assert_whole(old, 2)
    assert_whole(kept, 62)


async def test_the_keeper_notices_without_a_request(files, serve):
    old, new = files
    datasette = serve(old)
    await found(datasette, "fox")
    opened = registry.registry_of(datasette).opened
    before = opened()[0]
    os.replace(new, old)
    wait_for(lambda: opened() and opened()[0] is not before)
    palace = opened()[0]
    wait_for(lambda: palace.mirror.is_open and palace_status(palace)["mirror"]["state"] == "in step")
    assert await count(datasette) == 61
    registry.registry_of(datasette).close()
    assert_whole(old, 61)


async def test_a_backup_of_the_same_palace_takes_its_place(files, serve):
    old, backup = files[0], files[0].with_name("backup.db")
    datasette = serve(old)
    await found(datasette, "fox")
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("vacuum into ?", [str(backup)])
    insert(old, "lost with the restored backup")
    palace = await registry.open_palace(datasette, "palace")
    wait_for(lambda: palace_status(palace)["pending_vectors"] == 0)
    os.replace(backup, old)
    assert await found(datasette, "lost") != ["lost with the restored backup"]
    palace = await registry.open_palace(datasette, "palace")
    wait_for(lambda: palace.mirror.is_open and palace_status(palace)["mirror"]["state"] == "in step")
    assert palace.mirror.store.call("drawer", "count") == 2
    registry.registry_of(datasette).close()
    assert_whole(old, 2)


@pytest.mark.skipif(not IS_ONE, reason="0.65 has no API to write rows")
async def test_datasettes_writes_go_to_the_new_file(files, serve):
    old, new = files
    datasette = serve(old)

    async def write(text):
        row = {"rows": [{"drawer_id": text, "text": text}]}
        return await datasette.client.post("/palace/drawers/-/insert", json=row)

    assert (await write("to the old one")).status_code == 201
    os.replace(new, old)
    assert (await write("to the new one")).status_code == 201
    registry.registry_of(datasette).close()
    datasette.get_database("palace").close()
    assert_whole(old, 62)


async def test_a_deleted_palace_is_told_and_never_made_empty(files, serve, caplog):
    old, new = files
    datasette = serve(old)
    await found(datasette, "fox")
    for file in old.parent.glob("palace.db*"):
        if file.is_file():
            file.unlink()
    if datasette.executor is not None:  # its threads that come next have no connection yet, and will get none
        datasette.executor = ThreadPoolExecutor(1)
    for address in (
        "/palace/-/mempalace.json?q=fox",
        "/palace/-/mempalace?q=fox",
        "/palace/-/mempalace/status.json",
        "/palace/drawers",
    ):
        response = await datasette.client.get(address)
        assert response.status_code == 503
        assert "was deleted or moved away while it was served" in response.text
        assert "replaced" not in response.text
    assert (await datasette.client.get("/palace.json")).json()["title"] == "Palace missing"
    assert (await datasette.client.get("/")).status_code == 200
    response = await datasette.client.post("/palace/drawers/-/insert", json={"rows": [{"text": "x"}]})
    assert response.status_code == 503
    assert "nothing was read or written" in response.json()["error"]
    await asyncio.sleep(0.5)
    assert not old.exists()
    os.replace(new, old)
    assert await found(datasette, "heron") == ["a green heron"]
    assert await count(datasette) == 61
    registry.registry_of(datasette).close()
    assert_whole(old, 61)


def a_folder(path):
    path.mkdir()


def garbage(path):
    path.write_bytes(b"no database at all " * 1000)


def an_empty_file(path):
    path.touch()


def another_database(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table dogs(name)")


@pytest.mark.parametrize("make", [a_folder, garbage, an_empty_file, another_database])
async def test_what_is_no_palace_takes_the_place_of_one(files, serve, make):
    old, new = files
    other, thing = old.with_name("other.db"), old.with_name("thing")
    shutil.copy(old, other)
    datasette = serve(other, old)
    await asyncio.gather(found(datasette, "fox"), count(datasette), found(datasette, "whale"))
    make(thing)
    os.replace(old, old.with_name("old.db"))
    os.replace(thing, old)
    if datasette.executor is not None:  # a thread that has nothing open yet
        datasette.executor = ThreadPoolExecutor(1)
    for address in (
        "/palace",
        "/palace.json",
        "/palace/drawers",
        "/palace/-/mempalace?q=fox",
        "/palace/-/mempalace.json?q=fox",
    ):
        response = await datasette.client.get(address)
        assert response.status_code == 503, address
        assert "The file of palace was replaced by a" in response.text
    assert (await datasette.client.get("/palace/-/mempalace.json")).json()["title"] == "Palace missing"
    for address in (
        "/",
        "/.json",
        "/-/databases.json",
        "/other",
        "/other/drawers",
        "/other/-/mempalace.json?q=fox",
    ):
        assert (await datasette.client.get(address)).status_code == 200, address
    if old.is_dir():
        old.rmdir()
    os.replace(new, old)
    assert await found(datasette, "heron") == ["a green heron"]
    assert await count(datasette) == 61
    assert [name for name in datasette.databases if name != "_internal" and name != "_memory"] == [
        "other",
        "palace",
    ]
    registry.registry_of(datasette).close()
    assert_whole(old, 61)


async def test_a_palace_that_is_replaced_again_while_it_is_opened_is_never_missing(files, serve, monkeypatch):
    old, new = files
    third = old.with_name("third.db")
    shutil.copy(new, third)
    datasette = serve(old)
    assert await count(datasette) == 2
    open_file = registry.open_file

    async def replaced_meanwhile(datasette, db):
        monkeypatch.setattr(replaced, "open_file", open_file)
        palace = await open_file(datasette, db)
        os.replace(third, old)
        with palace.reader():
            raise AssertionError("it was replaced")

    monkeypatch.setattr(replaced, "open_file", replaced_meanwhile)
    os.replace(new, old)
    response = await datasette.client.get("/palace/-/mempalace.json?q=heron")
    assert "Palace missing" not in response.text
    assert (await datasette.client.get("/")).status_code == 200
    assert await found(datasette, "heron") == ["a green heron"]
    registry.registry_of(datasette).close()
    assert_whole(old, 61)


async def test_a_palace_that_is_made_in_the_file_that_took_its_place_is_served(files, serve, monkeypatch):
    old = files[0]
    datasette = serve(old)
    assert await count(datasette) == 2
    os.replace(old, old.with_name("old.db"))
    old.touch()
    assert (await datasette.client.get("/palace/drawers.json")).status_code == 503
    make_palace(old, [("made in place",)]).close()
    monkeypatch.setattr(replaced, "LOOK_AGAIN", 0)
    assert await found(datasette, "place") == ["made in place"]
    assert await count(datasette) == 1


async def test_a_palace_that_takes_the_place_of_another_database_is_one_at_once(files, serve):
    new, path = files[1], files[0].with_name("served") / "palace.db"
    path.parent.mkdir()
    another_database(path)
    datasette = serve(path)
    assert (await datasette.client.get("/palace/dogs.json")).status_code == 200
    assert (await datasette.client.get("/palace/-/mempalace.json?q=fox")).status_code == 404
    os.replace(new, path)
    assert await found(datasette, "heron") == ["a green heron"]
    assert await count(datasette) == 61
    tables = (await datasette.client.get("/palace.json")).json()["tables"]
    assert {table["name"] for table in tables if not table["hidden"]} == {"drawers", "closets"}
    registry.registry_of(datasette).close()
    assert_whole(path, 61)


async def test_other_databases_are_left_alone(files, serve):
    path = files[0].with_name("dogs.db")
    another_database(path)
    datasette = serve(path)
    assert (await datasette.client.get("/dogs/dogs.json")).status_code == 200
    held = dict(datasette.databases)
    another_database(files[0].with_name("more.db"))
    os.replace(files[0].with_name("more.db"), path)
    assert (await datasette.client.get("/dogs/dogs.json")).status_code == 200
    assert datasette.databases == held


def test_work_that_is_under_way_stops(files):
    old, new = files
    with Palace.open(old) as palace:
        put_drawers(palace, [Drawer("stored before")])
        os.replace(new, old)
        with pytest.raises(PalaceReplaced, match="nothing more is read from it or written to it"):
            put_drawers(palace, [Drawer("never stored")])
        with pytest.raises(PalaceReplaced), palace.reader():
            pass


def test_a_log_that_cannot_be_written_into_its_file_is_kept(files):
    old, new = files
    with Palace.open(old, read_only=False) as palace:
        with palace.reader():
            pass
        insert(old, "a canary, in the write-ahead log")
        os.replace(new, old)
        palace.set_aside()
    assert not old.with_name("palace.db-wal").exists()
    assert not old.with_name("palace.db-shm").exists()
    assert b"a canary, in the write-ahead log" in old.with_name("palace.db.replaced-wal").read_bytes()
    assert_whole(old, 61)


def test_a_log_that_is_kept_is_never_overwritten_and_gives_its_rows_back(files, tmp_path):
    path, new = files
    kept = []
    for number in range(3):
        copy, name = tmp_path / "copy.db", tmp_path / f"kept{number}.db"
        shutil.copy(new, copy)
        os.link(path, name)
        with Palace.open(path) as palace:
            with palace.reader() as connection:
                drawers = connection.execute("select count(*) from drawers").fetchone()[0]
            insert(path, f"canary {number}, in the write-ahead log")
            os.replace(copy, path)
            palace.set_aside()
        kept.append((name, drawers))
    logs = sorted(tmp_path.glob("palace.db.replaced*"))
    assert {log.name for log in logs} == {f"palace.db.replaced{number}-wal" for number in ("", 1, 2)}
    for number, (name, drawers) in enumerate(kept):
        log = next(log for log in logs if log.exists() and f"canary {number},".encode() in log.read_bytes())
        os.rename(log, f"{name}-wal")
        assert_whole(name, drawers + 1)
    assert_whole(path, 61)


def test_a_reader_who_ends_soon_is_waited_for(files, tmp_path):
    path, new = files
    kept = tmp_path / "kept.db"
    os.link(path, kept)
    with Palace.open(path) as palace, closing(sqlite3.connect(path, check_same_thread=False)) as reader:
        put_drawers(palace, [Drawer("stored before")])
        reader.execute("begin")
        reader.execute("select count(*) from drawers").fetchone()
        put_drawers(palace, [Drawer("stored while somebody reads")])
        os.replace(new, path)
        ending = threading.Timer(0.5, reader.rollback)
        ending.start()
        palace.set_aside()
        ending.join()
    assert not list(tmp_path.glob("palace.db.replaced*"))
    assert_whole(kept, 4)
    assert_whole(path, 61)


async def test_the_log_of_another_database_is_not_read_into_the_palace_that_takes_its_place(files, serve):
    new, path = files[1], files[0].with_name("served") / "palace.db"
    path.parent.mkdir()
    another_database(path)
    with closing(sqlite3.connect(path)) as writer:  # stays open, so that its log is not written back
        writer.execute("pragma journal_mode = wal")
        with writer:
            writer.execute("insert into dogs values ('Cleo, in the write-ahead log')")
        datasette = serve(path)
        for _ in range(2):
            assert (await datasette.client.get("/palace/dogs.json")).status_code == 200
        os.replace(new, path)
        assert await count(datasette) == 61
    assert b"Cleo" in path.with_name("palace.db.replaced-wal").read_bytes()
    registry.registry_of(datasette).close()
    assert_whole(path, 61)


def test_a_replacement_in_the_middle_of_a_transaction_is_not_written_to(files):
    old, new = files
    with Palace.open(old) as palace, pytest.raises(PalaceReplaced), palace.writer() as connection:
        connection.execute("insert into drawers(text) values ('never stored')")
        os.replace(new, old)


def test_what_is_deleted_stays_deleted(files):
    old, _ = files
    with Palace.create(old) as palace:
        old.unlink()
        with pytest.raises(PalaceReplaced):
            put_drawers(palace, [Drawer("never stored")])
    assert not old.exists()
