"""The mirror on a real Chroma server: shared, never waited for long, never believed further than it has got."""

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli

from building import add, find, make_palace, texts
from chroma_server import SECRET, ChromaServer
from datasette_mempalace import cli as commands
from datasette_mempalace.config import read_settings
from datasette_mempalace.doctor import examine, look_over
from datasette_mempalace.drawers import delete_drawers
from datasette_mempalace.errors import ConfigError, MirrorUnavailable
from datasette_mempalace.keeper import keep_in_step
from datasette_mempalace.mirror import trouble as mirror_trouble
from datasette_mempalace.palace import Palace
from datasette_mempalace.scope import Scope
from datasette_mempalace.status import palace_status

commands.register(datasette_cli)
DRAWERS = [("the red fox", "w", "r"), ("the blue whale", "w", "s"), ("the green lizard", "v", None)]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One server for this module's tests, as far as they leave it alive."""
    folder = tmp_path_factory.mktemp("server") / "data"
    folder.mkdir()
    server = ChromaServer(folder)
    server.start()
    yield server
    server.go_on()
    server.kill()


@pytest.fixture
def server(running):
    yield running
    if running.process.poll() is not None:
        running.start()
    running.go_on()


@pytest.fixture
def palace(tmp_path, server, monkeypatch):
    monkeypatch.setattr(mirror_trouble, "PAUSE_SECONDS", 0.3)
    monkeypatch.setattr("datasette_mempalace.nearest._engines", lambda *given: ["chroma", "matrix", "exact"])
    with make_palace(tmp_path / "p.db", DRAWERS, mirror=True, settings=server.settings()) as palace:
        yield palace


def by_meaning(palace, query, **parameters):
    return find(palace, query, candidate_strategy="vector", **parameters)


def hits(answer):
    return [(hit["id"], hit["score"], hit["distance"]) for hit in answer["results"]]


def held(palace):
    """The ids that the server really holds."""
    return {int(key) for key in palace.mirror.store.call("drawer", "get", include=[])["ids"]}


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def examined(palace, look=examine, *given):
    return next(finding for finding in look(palace, *given) if finding.check == "mirror")


def test_the_server_answers_as_sqlite_does(palace, server):
    answer = by_meaning(palace, "an animal of the sea")
    assert (answer["engine"], answer["vector_status"], answer["vector_note"]) == ("chroma", "ok", None)
    with Palace.open(palace.path, read_settings({})) as exact:
        assert hits(by_meaning(exact, "an animal of the sea")) == hits(answer)
    status = palace_status(palace)["mirror"]
    assert (status["state"], status["path"], status["server"]) == (
        "in step",
        None,
        f"http://127.0.0.1:{server.port}",
    )


def test_before_it_is_asked_its_state_is_not_known(palace, server):
    with Palace.open(palace.path, server.settings()) as fresh:
        assert palace_status(fresh)["mirror"]["state"] == "not checked"
        by_meaning(fresh, "an animal of the sea")
        assert palace_status(fresh)["mirror"]["state"] == "in step"


def test_every_change_reaches_it(palace):
    add(palace, ("a yellow canary", "w", "r"))
    delete_drawers(palace, Scope(ids=(2,)))
    with palace.writer() as connection:
        connection.execute("update drawers set wing = 'moved' where id = 1")
    palace.mirror.sync()
    assert held(palace) == {1, 3, 4}
    assert [row_id for row_id, _ in palace.mirror.nearest("drawer", palace.embedder.embed_query("fox"), 9, {"wing": "moved"})] == [1]  # fmt: skip
    assert palace.mirror.rebuild().upserted == 3
    assert held(palace) == {1, 3, 4}


def test_two_palaces_of_one_name_do_not_meet(palace, tmp_path, server):
    (tmp_path / "other").mkdir()
    with make_palace(
        tmp_path / "other" / "p.db", [("a letter",)], mirror=True, settings=server.settings()
    ) as other:
        assert held(other) == {1}
    assert held(palace) == {1, 2, 3}


def test_a_process_that_does_not_write_asks_the_server_and_sees_every_change(palace, server):
    with Palace.open(palace.path, server.settings(), read_only=True) as reader:
        assert by_meaning(reader, "fox")["engine"] == "chroma"
        assert "can only be read" in reader.mirror.sync().skipped_reason
        add(palace, ("a canary singing in the cage", "w", "r"))
        delete_drawers(palace, Scope(ids=(1,)))
        for _ in range(2):
            answer = by_meaning(reader, "bird song")
            assert answer["engine"] == "chroma"
            assert texts(answer)[0] == "a canary singing in the cage"
            assert "the red fox" not in texts(answer)
            palace.mirror.sync()
        palace.mirror.rebuild()
        assert by_meaning(reader, "bird song")["results"]
        assert hits(by_meaning(reader, "whale")) == hits(by_meaning(palace, "whale"))


def test_a_copy_that_lags_behind_the_mirror_does_not_use_it(palace, server, tmp_path):
    palace.checkpoint()
    replica = tmp_path / "replica.db"
    shutil.copy(palace.path, replica)
    with Palace.open(replica, server.settings(), read_only=True) as behind:
        assert by_meaning(behind, "fox")["engine"] == "chroma"
        with palace.writer() as connection:
            connection.execute("update drawers set text = 'the tax return' where id = 1")
        add(palace, ("more",), mirror=True)
        answer = by_meaning(behind, "fox")
        assert texts(answer)[0] == "the red fox"
        assert answer["engine"] in ("exact", "matrix")
        assert answer["vector_status"] == "mirror_unavailable"
        assert "does not have yet" in answer["vector_note"]


def test_what_the_mirror_learns_while_it_is_asked_is_not_missed(palace, monkeypatch):
    """The mirror deletes and adds a drawer between a search's look into SQLite and its question."""
    call, done = palace.mirror.store.call, []

    def overtaken(kind, name, /, **given):
        if name == "query" and kind == "drawer" and not done:
            done.append(kind)
            with palace.writer() as connection:
                connection.execute("update drawers set text = 'the tax return', wing = 'z' where id = 1")
            palace.mirror.sync()
            assert held(palace) == {2, 3}
        return call(kind, name, **given)

    monkeypatch.setattr(palace.mirror.store, "call", overtaken)
    answer = by_meaning(palace, "fox")
    assert done
    assert texts(answer)[0] == "the red fox", "as the palace was when the search began"


@pytest.mark.long
def test_a_server_that_is_not_there_at_the_start(server, tmp_path, monkeypatch):
    monkeypatch.setattr(mirror_trouble, "PAUSE_SECONDS", 0.3)
    server.kill()
    with make_palace(tmp_path / "p.db", DRAWERS, settings=server.settings()) as palace:
        with pytest.raises(MirrorUnavailable, match="Connection refused"):
            palace.mirror.sync()
        answer = by_meaning(palace, "an animal of the sea", n_results=1)
        assert texts(answer) == ["the blue whale"]
        assert answer["vector_status"] == "mirror_unavailable"
        assert f"http://127.0.0.1:{server.port}" in answer["vector_note"]
        assert palace_status(palace)["mirror"]["reason"] == answer["vector_note"]
        server.start()
        assert palace.mirror.sync().upserted == 3
        assert by_meaning(palace, "sea")["engine"] == "chroma"


def test_a_server_that_takes_connections_and_never_answers(palace, server):
    server.halt()
    started, answers = time.monotonic(), []
    threads = [threading.Thread(target=lambda: answers.append(by_meaning(palace, "sea"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - started < 20
    assert {answer["vector_status"] for answer in answers} == {"mirror_unavailable"}
    assert {texts(answer)[0] for answer in answers} == {"the blue whale"}
    before = threading.active_count()
    for _ in range(20):
        by_meaning(palace, "sea")
    assert threading.active_count() <= before + 2, "threads pile up"
    add(palace, ("a shark",))
    server.go_on()
    time.sleep(0.4)
    answer = by_meaning(palace, "sea")
    assert (answer["engine"], answer["vector_status"]) == ("chroma", "ok")
    assert "a shark" in texts(answer)
    assert palace.mirror.sync().upserted == 1
    assert held(palace) == {1, 2, 3, 4}


@pytest.mark.long
def test_one_search_at_a_time_finds_out_whether_the_server_is_back(palace, server):
    server.halt()
    by_meaning(palace, "sea")
    time.sleep(0.4)
    trial = threading.Thread(target=by_meaning, args=(palace, "sea"))
    trial.start()
    time.sleep(0.3)
    started = time.monotonic()
    assert by_meaning(palace, "sea")["vector_status"] == "mirror_unavailable"
    assert time.monotonic() - started < 1.5, "it waited, too"
    trial.join()


@pytest.mark.long
def test_a_write_that_never_came_back_is_repeated(palace, server, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.mirror.server.WRITE_SECONDS", 1.0)
    palace.mirror.close()
    palace.mirror.sync()
    add(palace, ("a shark",))
    threading.Timer(0.5, server.halt).start()
    call = palace.mirror.store.call

    def late(kind, name, /, **given):
        if name == "delete":
            time.sleep(0.8)
        return call(kind, name, **given)

    monkeypatch.setattr(palace.mirror.store, "call", late)
    with pytest.raises(MirrorUnavailable, match="did not answer within 1 seconds"):
        palace.mirror.sync()
    monkeypatch.undo()
    server.go_on()
    palace.mirror.sync()
    assert held(palace) == {1, 2, 3, 4}


@pytest.mark.long
def test_a_server_that_is_killed_and_comes_back_with_or_without_its_data(palace, server):
    seen = {}
    keep_in_step(palace, seen)
    server.kill()
    assert texts(by_meaning(palace, "sea"))[0] == "the blue whale"
    assert not palace.mirror.is_in_place
    add(palace, ("a shark",))
    with pytest.raises(MirrorUnavailable):
        keep_in_step(palace, seen)
    server.start()
    keep_in_step(palace, seen)
    assert held(palace) == {1, 2, 3, 4}
    time.sleep(0.4)
    assert by_meaning(palace, "sea")["engine"] == "chroma"
    server.kill()
    shutil.rmtree(server.folder)
    server.folder.mkdir()
    server.start()
    answer = by_meaning(palace, "sea")
    assert texts(answer)[0] == "the blue whale"
    assert answer["engine"] != "chroma"
    time.sleep(0.4)
    keep_in_step(palace, seen)
    assert held(palace) == {1, 2, 3, 4}
    assert by_meaning(palace, "sea")["engine"] == "chroma"


@pytest.mark.long
def test_the_doctor_says_that_a_server_cannot_be_reached(palace, server, tmp_path):
    address, settings = f"http://127.0.0.1:{server.port}", server.settings()
    assert examined(palace).ok
    server.kill()
    assert not examined(palace, look_over, None, 100).ok, "as the page asks it, with the server known before"
    config = tmp_path / "metadata.json"
    chroma = {"mode": "server", "host": settings.chroma.host, "port": server.port}
    config.write_text(json.dumps({"plugins": {"datasette-mempalace": {"chroma": chroma}}}))
    for changed in (False, True):
        if changed:
            add(palace, ("a shark",))
        with Palace.open(palace.path, settings) as fresh:
            found = examined(fresh)
            assert not found.ok
            assert "Connection refused" in found.cause
            assert address in found.cause
            assert address not in found.says + found.help, "any visitor may read these"
            assert "start the Chroma server" in found.help
            assert not examined(fresh).ok, "asked again at once it is not well, either"
    done = CliRunner().invoke(datasette_cli, ["mempalace", "doctor", palace.path, "--config", str(config)])
    assert done.exit_code == 1
    assert "NOT OK  mirror: it cannot be used" in done.output


@pytest.mark.long
def test_the_value_of_a_header_is_shown_nowhere(palace, server, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    server.kill()
    with pytest.raises(MirrorUnavailable) as failed:
        palace.mirror.sync()
    shown = [
        str(failed.value),
        repr(palace.settings),
        str(palace_status(palace)),
        str(by_meaning(palace, "fox")),
    ]
    assert not any(SECRET in text for text in [*shown, caplog.text])
    assert SECRET not in palace.settings.chroma.without_secrets(f"a proxy said {SECRET}")
    palace.close()
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("server", "it must be a mapping"),
        ({"mode": "cloud"}, "mode must be one of local, server"),
        ({"mode": "server", "hots": "x"}, "did you mean host?"),
        ({"mode": "server", "port": 0}, "whole number from 1 to 65,535"),
        ({"mode": "server", "host": "http://x"}, "without https://"),
        ({"mode": "server", "headers": {"Authorization": None}}, "header Authorization must be a text"),
        (
            {"mode": "server", "headers": {"Authorization": SECRET + "\n"}},
            "header Authorization must be a text",
        ),
        ({"mode": "server", "headers": [SECRET]}, "headers must be a mapping"),
        ({"host": "x"}, "host need mode: server"),
    ],
    ids=str,
)
def test_a_setting_that_is_not_allowed_is_told_without_secrets(given, says):
    with pytest.raises(ConfigError) as error:
        read_settings({"chroma": given})
    assert says in error.value.message
    assert not error.value.message.endswith(("?.", ".."))
    assert error.value.message.startswith("datasette-mempalace settings: chroma: ")
    assert SECRET not in error.value.message


def test_what_is_allowed_is_read():
    assert read_settings({"chroma": {"mode": "local"}}).chroma is None
    server = read_settings({"chroma": {"mode": "server", "port": "8123", "ssl": True, "host": "::1"}}).chroma
    assert server.url == "https://[::1]:8123"


@pytest.mark.long
async def test_two_datasettes_share_it_and_one_writes(palace, server, tmp_path, make_datasette):
    path = palace.path
    palace.close()
    config = tmp_path / "metadata.json"
    config.write_text(
        '{"plugins": {"datasette-mempalace": {"sync_seconds": 0.2, "chroma": {"mode": "server",'
        f' "host": "127.0.0.1", "port": {server.port}, "headers": {{"Authorization": {{"$env": "CHROMA_AUTH"}}}}}}}}}}}}'
    )
    served = [Served(path, config) for _ in range(2)]
    try:
        for one in served:
            wait_for(lambda one=one: one.search("sea")["engine"] == "chroma", 60)
        with Palace.open(path, server.settings()) as here:
            assert "Another process on this machine writes" in here.mirror.sync().skipped_reason
            add(here, ("a shark in the ocean", "w"))
            for one in served:
                answer = one.search("shark")
                assert answer["results"][0]["text"] == "a shark in the ocean"
            wait_for(lambda: palace_status(here)["mirror"]["state"] == "in step")
            served.pop(0).kill()
            add(here, ("an octopus in the ocean", "w"))
            wait_for(lambda: palace_status(here)["mirror"]["state"] == "in step", 60)
            assert served[0].search("octopus")["results"][0]["text"] == "an octopus in the ocean"
        pages = (
            served[0].get("/-/plugins.json")
            + served[0].get("/-/metadata.json")
            + served[0].get("/-/config.json")
        )
        assert SECRET not in pages
    finally:
        for one in served:
            one.kill()


class Served:
    """A Datasette in a process of its own."""

    def __init__(self, path, config):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "datasette",
                str(path),
                "-m",
                str(config),
                "-p",
                self.url.rpartition(":")[2],
            ],
            env={**os.environ, "CHROMA_AUTH": SECRET},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(self.answers, 60)

    def answers(self):
        try:
            return httpx.get(f"{self.url}/-/versions.json", timeout=5).is_success
        except httpx.HTTPError:
            return False

    def get(self, path, **parameters):
        return httpx.get(self.url + path, params=parameters, timeout=30).text

    def search(self, query):
        given = {"q": query, "candidate_strategy": "vector"}
        return httpx.get(f"{self.url}/p/-/mempalace.json", params=given, timeout=30).json()

    def kill(self):
        self.process.kill()
        self.process.wait()
