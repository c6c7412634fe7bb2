"""Agents over the wire: the SDK's own client over a real pipe and over HTTP, on both versions of Datasette."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import jsonschema
import pytest
import uvicorn
from click.testing import CliRunner
from datasette import hookimpl
from datasette.cli import cli as datasette_cli
from datasette.plugins import pm
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from building import make_palace
from datasette_mempalace import cli as commands
from datasette_mempalace import mcp as ours
from datasette_mempalace.agents import TOOLS, call_tool
from datasette_mempalace.compat import IS_ONE
from datasette_mempalace.palace import Palace
from test_permissions import DENIED, ROOT

commands.register(datasette_cli)

ENDPOINT = "http://localhost/-/mempalace/mcp"
CHECKOUT = str(Path(__file__).resolve().parent.parent)
MODES = ("auto", "legacy")  # the protocol of 2026, and the handshake before it
CALLS = {
    "mempalace_search": {"query": "token"},
    "mempalace_get_drawer": {"drawer_id": "nope"},
    "mempalace_list_wings": {},
    "mempalace_list_rooms": {},
    "mempalace_check_duplicate": {"content": "A token without any wing or room."},
    "mempalace_status": {},
}
# A library that prints when it is loaded, as some do: here onnxruntime, with the first question.
NOISE = """
import os, sys
print("noise by print", flush=True)
os.write(1, b"noise on the descriptor\\n")
os.system("echo noise of a child")
sys.path.remove(os.path.dirname(__file__))
del sys.modules["onnxruntime"]
import onnxruntime
"""


def served_over_a_pipe(path, *more, noise=None):
    """How a client starts the command."""
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, [noise and str(noise), CHECKOUT]))}
    arguments = ["-m", "datasette", "mempalace", "mcp", str(path), *more]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment)


@contextlib.asynccontextmanager
async def agent(datasette, mode="auto", **options):
    """The SDK's client, connected to a Datasette in this process."""
    await datasette.invoke_startup()
    transport = httpx2.ASGITransport(app=datasette.app())
    async with (
        httpx2.AsyncClient(transport=transport, **options) as http,
        Client(streamable_http_client(ENDPOINT, http_client=http), mode=mode) as client,
    ):
        yield client


async def post(datasette, message=None, **options):
    """One raw request."""
    await datasette.invoke_startup()
    headers = {"accept": "application/json, text/event-stream", **options.pop("headers", {})}
    if message is not None:
        options["json"] = {"jsonrpc": "2.0", "id": 1, **message}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=datasette.app())) as http:
        return await http.request(options.pop("method", "POST"), ENDPOINT, headers=headers, **options)


LIST = {"method": "tools/list", "params": {}}


def token_for(datasette, **more):
    """A signed token of Datasette's own for root."""
    content = {"a": "root", "t": int(time.time()), **more}
    return {"authorization": f"Bearer dstok_{datasette.sign(content, namespace='token')}"}


class SignedTokens:
    """What a plugin for tokens does on Datasette 0.65, which has none of its own."""

    __name__ = "SignedTokens"

    @hookimpl
    def actor_from_request(self, datasette, request):
        _, _, token = request.headers.get("authorization", "").partition("dstok_")
        return {"id": datasette.unsign(token, namespace="token")["a"]} if token else None


@pytest.fixture
def tokens():
    """Tokens in the `Authorization` header name an actor."""
    plugin = SignedTokens()
    if not IS_ONE:
        pm.register(plugin)
    yield
    if not IS_ONE:
        pm.unregister(plugin)


def text_of(result):
    return result.content[0].text


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_over_a_pipe(palace_path, tmp_path, mode):
    path = tmp_path / "p.db"
    path.write_bytes(palace_path.read_bytes())
    before = hashlib.sha256(path.read_bytes()).digest()
    async with Client(stdio_client(served_over_a_pipe(path)), mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(CALLS)
        for tool in tools:
            hints = tool.annotations
            assert (hints.read_only_hint, hints.idempotent_hint, hints.open_world_hint) == (True, True, False)
            assert tool.title
            assert tool.description
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert tool.input_schema == TOOLS[tool.name].input_schema
        with Palace.open(path) as palace:
            for name, arguments in CALLS.items():
                result = await client.call_tool(name, arguments)
                if name == "mempalace_get_drawer":
                    assert result.is_error
                    assert "there is no drawer 'nope'" in text_of(result)
                    continue
                assert not result.is_error
                assert json.loads(text_of(result)) == result.structured_content
                jsonschema.validate(result.structured_content, TOOLS[name].output_schema)
                assert result.structured_content == call_tool(palace, name, arguments)
        result = await client.call_tool("mempalace_search", {"query": "token", "limit": 1000})
        assert result.is_error
        assert text_of(result).startswith("limit: 1000 is not allowed")
        with pytest.raises(MCPError, match="There is no tool 'mempalace_add_drawer'"):
            await client.call_tool("mempalace_add_drawer", {"content": "x"})
    assert hashlib.sha256(path.read_bytes()).digest() == before


def test_only_the_protocol_reaches_standard_output(palace_path, tmp_path):
    (tmp_path / "onnxruntime.py").write_text(NOISE)
    config = tmp_path / "metadata.json"  # with time enough to load the model on a busy machine
    config.write_text(json.dumps({"plugins": {"datasette-mempalace": {"time_limit_ms": 120_000}}}))
    start = served_over_a_pipe(palace_path, "--config", str(config), noise=tmp_path)
    process = subprocess.Popen(
        [start.command, *start.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **start.env}, encoding="utf-8",
    )  # fmt: skip
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        "no JSON at all",
        {"id": 2, "method": "tools/call", "params": {"name": "mempalace_search", "arguments": {"query": "token"}}},
    ]  # fmt: skip
    for message in messages:
        line = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message})
        process.stdin.write(line + "\n")
    process.stdin.flush()
    lines = []
    while not lines or json.loads(lines[-1]).get("id") != 2:
        lines.append(process.stdout.readline())
        assert lines[-1], process.stderr.read()
    rest, said = process.communicate(timeout=60)
    answers = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert answers[-1]["result"]["structuredContent"]["results"]
    assert process.returncode == 0
    for noise in ("noise by print", "noise on the descriptor", "noise of a child"):
        assert noise in said
    assert "Traceback" not in said


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_ctrl_c_ends_it_at_once(palace_path):
    start = served_over_a_pipe(palace_path)
    process = subprocess.Popen(
        [start.command, *start.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **start.env}
    )  # fmt: skip
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    process.stdin.write(json.dumps(ping).encode() + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT


async def test_the_settings_of_a_file_hold_over_a_pipe(palace_path, tmp_path):
    config = tmp_path / "metadata.json"
    config.write_text(json.dumps({"plugins": {"datasette-mempalace": {"max_n_results": 3}}}))
    start = served_over_a_pipe(palace_path, "--config", str(config))
    async with Client(stdio_client(start)) as client:
        result = await client.call_tool("mempalace_search", {"query": "token", "limit": 4})
    assert "from 1 to 3" in text_of(result)


def without_sdk(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "datasette_mempalace.mcp", raising=False)
    monkeypatch.delattr("datasette_mempalace.mcp", raising=False)


async def test_without_the_sdk_it_says_what_to_install(monkeypatch, palace_path, served):
    without_sdk(monkeypatch)
    result = await asyncio.to_thread(
        CliRunner().invoke, datasette_cli, ["mempalace", "mcp", str(palace_path)]
    )
    assert result.exit_code == 1
    assert "pip install 'datasette-mempalace[mcp]'" in result.output
    response = await post(served, LIST)
    assert response.status_code == 501
    assert "datasette-mempalace[mcp]" in response.json()["error"]


def test_no_palace_ends_with_a_sentence(tmp_path):
    result = CliRunner().invoke(datasette_cli, ["mempalace", "mcp", str(tmp_path / "none.db")])
    assert result.exit_code == 2
    assert "does not exist" in result.output
    assert "Traceback" not in result.output


async def test_an_idle_process_gives_the_mirror_back(tmp_path, monkeypatch):
    monkeypatch.setattr(ours, "IDLE_SECONDS", 0.05)
    with make_palace(tmp_path / "p.db", [("the red fox",)], mirror=True) as palace:
        calls = ours._Calls(palace)
        for _ in range(2):
            palace.mirror.open()
            answer = await calls("mempalace_search", {"query": "fox"})
            assert answer["results"][0]["text"] == "the red fox"
            for _ in range(500):
                if not palace.mirror.is_open:
                    break
                await asyncio.sleep(0.02)
            assert not palace.mirror.is_open
        with Palace.open(palace.path) as server:
            for _ in range(500):  # its lock is given back once Chroma has closed
                if server.mirror.sync().skipped_reason is None:
                    break
                await asyncio.sleep(0.02)
            assert server.mirror.is_open


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_over_http(served, palace_path, mode):
    async with agent(served, mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(CALLS)
        for name, arguments in CALLS.items():
            result = await client.call_tool(name, arguments)
            assert result.is_error is (name == "mempalace_get_drawer")
        result = await client.call_tool("mempalace_search", {"query": "token", "limit": 3})
        hits = result.structured_content["results"]
        assert result.structured_content["palace"] == "palace"
        read = await client.call_tool("mempalace_get_drawer", {"drawer_id": hits[0]["drawer_id"]})
        assert read.structured_content["text"] == hits[0]["text"]
        with pytest.raises(MCPError):
            await client.call_tool("nope", {})
    answer = (await served.client.get("/palace/-/mempalace.json?q=token&n_results=3")).json()
    assert [hit["drawer_id"] for hit in hits] == [hit["drawer_id"] for hit in answer["results"]]
    assert [hit["url"] for hit in hits] == [hit["url"] for hit in answer["results"]]


async def test_calls_at_once_over_http(served):
    async with agent(served) as client:
        queries = [f"token {number}" for number in range(20)]
        results = await asyncio.gather(
            *(client.call_tool("mempalace_search", {"query": query}) for query in queries)
        )
    assert [result.structured_content["query"] for result in results] == queries


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize("config", DENIED.values(), ids=DENIED)
async def test_denied_to_a_stranger_and_open_to_root(make_datasette, palace_path, as_actor, config):
    datasette = make_datasette(palace_path, config=config)
    await datasette.invoke_startup()
    if config == DENIED["instance"]:
        response = await post(datasette, LIST)
        assert response.status_code == 403
        assert "palace" not in response.json()["error"]
    else:
        async with agent(datasette) as stranger:
            shown = json.dumps([tool.model_dump(mode="json") for tool in (await stranger.list_tools()).tools])
            assert '"palace"' not in shown
            for name, arguments in CALLS.items():
                for more in ({}, {"palace": "palace"}, {"palace": "other"}):
                    result = await stranger.call_tool(name, {**arguments, **more})
                    assert result.is_error
                    assert text_of(result) == "There is no memory palace here that you may see."
    for credentials in (
        {"cookies": as_actor(datasette, id="root")},
        {"headers": token_for(datasette)},
    ):
        async with agent(datasette, **credentials) as root:
            result = await root.call_tool("mempalace_search", {"query": "token"})
            assert result.structured_content["results"]


@pytest.mark.skipif(not IS_ONE, reason="Datasette 0.65 has no tokens of its own")
async def test_a_token_for_less_shows_less(make_datasette, palace_path):
    datasette = make_datasette(palace_path)
    await datasette.invoke_startup()
    for actions, allowed in ((["vi", "vd", "vt"], True), (["vi", "vd"], False), (["vi"], False)):
        async with agent(datasette, headers=token_for(datasette, _r={"a": actions})) as root:
            assert (await root.call_tool("mempalace_status", {})).is_error is not allowed


async def test_an_agent_chooses_between_the_palaces_that_it_may_see(
    make_datasette, palace_path, empty_path, palace_named, tmp_path, as_actor
):
    sqlite3.connect(tmp_path / "plain.db").execute("create table t(x)").connection.close()
    datasette = make_datasette(
        palace_path, empty_path, palace_named("secret.db"), tmp_path / "plain.db",
        config={"databases": {"secret": {"allow": ROOT}}},
    )  # fmt: skip
    async with agent(datasette) as client:
        for tool in (await client.list_tools()).tools:
            assert tool.input_schema["properties"]["palace"]["enum"] == ["palace", "empty"]
            assert "palace" in tool.input_schema["required"]
        for name, drawers in (("palace", True), ("empty", False)):
            result = await client.call_tool("mempalace_search", {"query": "token", "palace": name})
            assert bool(result.structured_content["results"]) is drawers
        said = text_of(await client.call_tool("mempalace_status", {}))
        assert said == "palace: say which one; there are palace, empty."
        denied, absent, plain = [
            text_of(await client.call_tool("mempalace_status", {"palace": name}))
            for name in ("secret", "absent", "plain")
        ]
        assert denied == "palace: there is no 'secret' here; it must be one of palace, empty."
        assert denied.replace("secret", "absent") == absent
        assert denied.replace("secret", "plain") == plain
    async with agent(datasette, cookies=as_actor(datasette, id="root")) as root:
        assert not (await root.call_tool("mempalace_status", {"palace": "secret"})).is_error


async def test_a_failure_is_told_and_kept_from_the_agent(served, monkeypatch, caplog):
    def fail(*arguments):
        raise RuntimeError("secret of the machine")

    monkeypatch.setattr("datasette_mempalace.views.mcp.call_tool", fail)
    async with agent(served) as client:
        result = await client.call_tool("mempalace_status", {})
    assert result.is_error
    assert "RuntimeError" in text_of(result)
    assert "secret" not in text_of(result)
    assert "secret of the machine" in caplog.text


async def test_what_is_no_call_is_refused(served):
    for method in ("GET", "DELETE", "PUT"):
        response = await post(served, method=method)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert (await post(served, content="{", headers={"content-type": "application/json"})).status_code == 400
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert (await post(served, content="a=b", headers=form)).status_code == 400
    assert (await post(served, {"method": "x" * 1_000_001})).status_code == 413
    assert (await post(served, {"method": "nope/nope"})).json()["error"]["code"] == -32601
    response = await post(served, LIST)
    assert response.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in response.headers


async def test_a_browsers_cookies_pass_without_a_form_token(served, as_actor):
    await served.invoke_startup()
    cookies = {**as_actor(served, id="root"), "ds_csrftoken": "x"}
    header = "; ".join(f"{name}={value}" for name, value in cookies.items())
    response = await post(served, LIST, headers={"cookie": header})
    assert response.status_code == 200


async def test_pages_of_other_sites_may_not_ask(make_datasette, palace_path, served):
    for origin in ("http://evil.example", "null", "http://localhost:81", "http://["):
        response = await post(served, LIST, headers={"origin": origin})
        assert response.status_code == 403, origin
    assert (await post(served, LIST, headers={"origin": "http://localhost"})).status_code == 200

    opened = make_datasette(palace_path, cors=True)
    asked = await post(opened, method="OPTIONS", headers={"origin": "http://evil.example"})
    assert asked.status_code == 200
    assert "Mcp-Protocol-Version" in asked.headers["access-control-allow-headers"]
    token = token_for(opened)  # 1.0 itself admits other sites' pages with a token only
    response = await post(opened, LIST, headers={"origin": "http://evil.example", **token})
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "*"


@pytest.fixture
def address(make_datasette, palace_path):
    """Where a real server listens, under a base_url."""
    datasette = make_datasette(palace_path, settings={"base_url": "/data/"})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(datasette.app(), host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}/data/-/mempalace/mcp"
    server.should_exit = True
    thread.join(20)


async def test_a_client_of_a_real_server(address):
    for mode in MODES:
        async with Client(address, mode=mode) as client:
            result = await client.call_tool("mempalace_search", {"query": "token", "limit": 2})
            assert len(result.structured_content["results"]) == 2
            assert result.structured_content["results"][0]["url"].startswith(address.split("/-/")[0])
    async with httpx2.AsyncClient() as http:
        # A site that has pointed its own name to this machine.
        rebound = {"host": "evil.example", "origin": "http://evil.example", "accept": "application/json"}
        response = await http.post(address, headers=rebound, json={"jsonrpc": "2.0", "id": 1, **LIST})
        assert response.status_code == 403
