"""A key that is given to a service is seen nowhere: in no page, answer, status, log, error, repr or file of a palace."""

import json
import logging
import traceback

import pytest
from click.testing import CliRunner

from building import add
from datasette_mempalace.chroma_setting import ChromaServer
from datasette_mempalace.cli import mempalace, register
from datasette_mempalace.config import read_settings
from datasette_mempalace.errors import EmbedderUnavailable
from datasette_mempalace.palace import Palace
from datasette_mempalace.registry import open_palace, settings_of

KEY = "sk-planted-0123456789"
PALACE = "/palace/-/mempalace"
CONFIG = {
    "embedder": {"name": "tells_all", "config": {"model_name": "m", "api_key": {"$env": "PLANTED_KEY"}}},
    "chroma": {
        "mode": "server",
        "host": "127.0.0.1",
        "port": 9,  # nobody is there
        "headers": {"authorization": {"$env": "PLANTED_KEY"}},
    },
    "warm_up": True,
}

if "mine" not in mempalace.commands:
    register(type("Group", (), {"add_command": staticmethod(lambda command: None)}))


class TellsAll:
    """An embedding function of a service that refuses, and says too much."""

    def __init__(self, model_name, api_key):
        self.api_key = api_key

    def __call__(self, texts):
        raise RuntimeError(f"401: the key {self.api_key} is not known")


@pytest.fixture
def planted(monkeypatch):
    """The key in the environment, and a service that repeats it."""
    from chromadb.utils import embedding_functions

    monkeypatch.setenv("PLANTED_KEY", KEY)
    monkeypatch.setitem(embedding_functions.known_embedding_functions, "tells_all", TellsAll)


async def test_a_planted_key_is_seen_nowhere(planted, make_datasette, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "datasette_mempalace")
    path = tmp_path / "palace.db"
    resolved = json.loads(json.dumps(CONFIG).replace('{"$env": "PLANTED_KEY"}', f'"{KEY}"'))
    with Palace.create(path, read_settings(resolved)) as palace:
        with pytest.raises(EmbedderUnavailable) as refused:
            add(palace, ("a fox in the wood", "w", "r"))
        with palace.writer() as connection:
            connection.execute("insert into drawer_vectors values (1, zeroblob(1536), 'x')")
        palace.checkpoint()
    said = [
        refused.value.message,
        repr(refused.value),
        repr(palace.settings),
        repr(palace.embedder),
        repr(palace),
    ]

    datasette = make_datasette(path, config={"plugins": {"datasette-mempalace": CONFIG}})
    await datasette.invoke_startup()
    assert settings_of(datasette, "palace").embedder["config"]["api_key"] == KEY, (
        "it was put in from the environment"
    )
    for address in (
        PALACE,
        f"{PALACE}?q=fox",
        f"{PALACE}.json?q=fox",
        f"{PALACE}.csv?q=fox",
        f"{PALACE}/status",
        f"{PALACE}/status.json",
        "/-/mempalace/openapi.json",
        "/-/plugins.json",
        "/palace/mempalace_settings.json",
        "/palace.json?sql=select+mempalace_search('fox')",
    ):
        response = await datasette.client.get(address, follow_redirects=True)
        assert response.status_code == 200, address
        said.append(response.text + repr(response.headers))
    said += [repr(await open_palace(datasette, "palace")), caplog.text]

    config = tmp_path / "metadata.json"
    config.write_text(json.dumps({"plugins": {"datasette-mempalace": CONFIG}}))
    for command in ("status", "doctor", "sync", "search"):
        words = ["fox"] if command == "search" else []
        done = CliRunner().invoke(mempalace, [command, str(path), *words, "--config", str(config)])
        said.append(
            done.output + "".join(traceback.format_exception(done.exception) if done.exception else [])
        )
    assert any("401: the key *** is not known" in text for text in said), "the refusal itself is told"
    assert not [text for text in said if KEY in text]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert path in files
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_a_chroma_server_shows_no_header():
    server = ChromaServer(headers={"authorization": KEY})
    assert KEY not in repr(server)
    assert KEY not in server.without_secrets(f"refused: {KEY}")
    assert KEY not in repr(read_settings({"chroma": {"mode": "server", "headers": {"authorization": KEY}}}))
