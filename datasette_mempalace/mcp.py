"""The Model Context Protocol: the agents' tools as a server of the `mcp` SDK, over stdio or one HTTP request.

The only module that knows the SDK's server side; importing it needs the `mcp` extra.
Which palace a call is meant for is decided by whoever makes the server.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio
import mcp_types as types
from anyio import CapacityLimiter, to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from .agents import TOOLS, call_tool
from .agents.schemas import INSTRUCTIONS, PALACE, AgentTool
from .errors import MempalaceError
from .logs import get_logger
from .palace import Palace
from .version import __version__

Call = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]

NAME = "datasette-mempalace"
MOST_NAMED = 100
MOST_BYTES = 1_000_000  # of a request's body over HTTP
THREADS = 4
IDLE_SECONDS = 30.0

logger = get_logger(__name__)


def make_server(call: Call, palaces: Sequence[str] = ()) -> Server[Any]:
    """A protocol server with the agents' tools.

    Args:
        call: runs a tool by its name and arguments; a `MempalaceError` is told to the agent.
        palaces: the names to choose from; with fewer than two there is nothing to choose.
    Returns:
        the server, ready for any of the SDK's transports.
    """

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_announced(tool, palaces) for tool in TOOLS.values()])

    async def run_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in TOOLS:
            known = ", ".join(TOOLS)
            raise MCPError(
                types.INVALID_PARAMS, f"There is no tool {params.name[:100]!r}; there are {known}."
            )
        try:
            return _answered(await call(params.name, params.arguments or {}))
        except MempalaceError as error:
            return _failed(error.message)
        except sqlite3.Error as error:
            logger.warning("%s: %s", params.name, error)
            return _failed(f"The palace could not be read ({error}); try again in a moment.")
        except Exception as error:
            logger.exception("%s failed", params.name)
            return _failed(
                f"{params.name} failed unexpectedly ({type(error).__name__}); the server's log tells more."
            )

    return Server(
        NAME,
        version=__version__,
        title="Memory palace",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=run_tool,
    )


def serve_stdio(palace: Palace) -> None:
    """Serve one palace over standard input and output until the client closes them.

    Args:
        palace: the palace; the caller closes it.
    """
    # Waiting for input cannot be cancelled: Python's own way with Ctrl-C would hang until the next message.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(_serve_stdio, palace)


async def _serve_stdio(palace: Palace) -> None:
    server = make_server(_Calls(palace))
    # The SDK keeps the wire to itself: meanwhile whatever any library prints goes to standard error.
    async with stdio_server() as (received, sent):
        if palace.settings.warm_up:
            # No daemon: Python must not end inside onnxruntime, which would abort.
            threading.Thread(target=_warm_up, args=[palace]).start()
        await server.run(received, sent, server.create_initialization_options())


async def exchange(server: Server[Any], scope: Any, receive: Any, send: Any) -> None:
    """Answer one HTTP request with one JSON message; nothing is kept for the next.

    Args:
        server: as `make_server` makes it, for this request alone.
        scope, receive, send: the request's, as ASGI has them.
    """
    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=MOST_BYTES
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)


class _Calls:
    """Runs tools on one palace in threads, and gives its mirror back when nothing has been asked for a while.

    A client keeps this process as long as it runs itself, and only one process can own the mirror: without this a
    server that starts later could never bring the mirror in step.
    """

    def __init__(self, palace: Palace):
        self.palace = palace
        self.limiter = CapacityLimiter(THREADS)
        self.running = 0
        self.timer: asyncio.TimerHandle | None = None

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self.running += 1
        if self.timer:
            self.timer.cancel()
        try:
            return await to_thread.run_sync(call_tool, self.palace, name, arguments, limiter=self.limiter)
        finally:
            self.running -= 1
            if not self.running:
                self.timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._rest)

    def _rest(self) -> None:
        if self.palace.mirror.is_open:
            threading.Thread(target=self.palace.mirror.close, daemon=True).start()


def _warm_up(palace: Palace) -> None:
    """Load the model before the first question; a failure is told by the search that needs it."""
    try:
        if palace.embedder.missing() is None:
            palace.embedder.load()
    except MempalaceError as error:
        logger.warning("%s", error.message)


def _announced(tool: AgentTool, palaces: Sequence[str]) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_with_palaces(tool.input_schema, palaces),
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=True,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def _with_palaces(schema: dict[str, Any], palaces: Sequence[str]) -> dict[str, Any]:
    """A tool's schema with the choice between palaces, where there is one."""
    if len(palaces) < 2:
        return schema
    choice: dict[str, Any] = {"type": "string", "description": "Which memory palace."}
    if len(palaces) <= MOST_NAMED:
        choice["enum"] = list(palaces)
    return {
        **schema,
        "properties": {PALACE: choice, **schema["properties"]},
        "required": [PALACE, *schema.get("required", [])],
    }


def _answered(answer: dict[str, Any]) -> types.CallToolResult:
    """An answer as structured content, and as text for clients that do not know that."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=answer
    )


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)
