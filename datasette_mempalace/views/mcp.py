"""The agents' tools over HTTP: the Model Context Protocol at `/-/mempalace/mcp`, one POST and one JSON answer a call.

Nothing is kept between requests and no stream is held open: each request gets a protocol server of its own that knows
the palaces its actor may see and no others. So Datasette's permissions, cookies and tokens hold as on every page.
"""

from __future__ import annotations

import ipaddress
import urllib.parse
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from datasette import Response

from ..agents import call_tool
from ..agents.schemas import PALACE, WITHOUT_SDK
from ..compat import may_view_instance
from ..errors import BadInput, MempalaceError, NotAllowed
from ..registry import open_palace, run
from .access import cors_headers
from .links import row_path
from .menus import visible_palaces

PATH = "/-/mempalace/mcp"
HEADERS = "Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID"
PORTS = {"http": 80, "https": 443}


async def mcp_endpoint(scope: Any, receive: Any, send: Any, request: Any, datasette: Any) -> Any:
    """The agents' tools, by the Model Context Protocol: one message is answered, as the visitor may see it."""
    headers = _cors_headers(datasette)
    if request.method == "OPTIONS" and datasette.cors:
        return Response.text("ok", headers=headers)
    if request.method != "POST":
        return Response.text(
            "This is for agents: a client of the Model Context Protocol sends its messages here with POST.\n",
            status=405,
            headers={**headers, "Allow": "POST, OPTIONS" if datasette.cors else "POST"},
        )
    try:
        _refuse_other_sites(request, datasette)
        names = await visible_palaces(datasette, request.actor)
        if not names and not await may_view_instance(datasette, request.actor):
            raise NotAllowed("You may not see this instance; send a token that may.")
        sdk = await run(datasette, _load_sdk)
    except MempalaceError as error:
        return Response.json(error.as_json(), status=error.status, headers=headers)
    server = sdk.make_server(_caller(request, datasette, names), names)
    await sdk.exchange(server, scope, receive, _adding(headers, send))
    return None


def skip_csrf(datasette: Any, scope: Any) -> bool:
    """Whether Datasette 0.65 should ask this request for no form token: agents have none, and their tools only read."""
    return scope["path"] in (PATH, datasette.urls.path(PATH))


def _load_sdk() -> ModuleType:
    """Our module on top of the SDK, whose import takes its time.

    Raises:
        NoSdk: when the SDK is not installed.
    """
    try:
        from .. import mcp
    except ImportError:
        raise NoSdk(WITHOUT_SDK) from None
    return mcp


def _caller(request: Any, datasette: Any, names: list[str]) -> Any:
    """What runs tools for one actor, on the palaces that the actor may see."""

    async def call(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        database = _chosen(names, given.pop(PALACE, None) or None)
        palace = await open_palace(datasette, database)

        def url_of(row_id: int) -> str:
            return str(datasette.absolute_url(request, row_path(datasette, database, row_id)))

        return {PALACE: database, **await run(datasette, call_tool, palace, tool, given, url_of)}

    return call


def _chosen(names: list[str], wanted: Any) -> str:
    """The palace that is meant. A palace that may not be seen is refused in the words for one that does not exist."""
    if not names:
        raise NotAllowed("There is no memory palace here that you may see.")
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    known = ", ".join(names[:100])
    if wanted is None:
        raise BadInput(f"palace: say which one; there are {known}.")
    raise BadInput(f"palace: there is no {str(wanted)[:100]!r} here; it must be one of {known}.")


def _refuse_other_sites(request: Any, datasette: Any) -> None:
    """Refuse what a page of another site sends through a visitor's browser, unless Datasette is open to all sites.

    A browser names the page's site in `Origin`; programs send none. A site can point its own name to this machine
    (DNS rebinding), so a server on a loopback address must also be called by a loopback name.

    Raises:
        NotAllowed: naming the origin.
    """
    origin = request.headers.get("origin")
    if origin is None or datasette.cors:
        return
    asked = _address(f"{origin.partition('://')[0]}://{request.headers.get('host', '')}")
    from_here = asked is not None and _address(origin) == asked
    server = (request.scope.get("server") or ("",))[0]
    if not from_here or (asked and _is_loopback(server) and not _is_loopback(asked[0])):
        raise NotAllowed(
            f"Pages of {origin[:200]} may not ask here: agents' clients send no Origin, and datasette --cors admits pages."
        )


def _address(url: str) -> tuple[str, int | None] | None:
    """Host and port of a URL, or None where there is none."""
    try:
        parts = urllib.parse.urlsplit(url)
        return (parts.hostname, parts.port or PORTS.get(parts.scheme)) if parts.hostname else None
    except ValueError:
        return None


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def _cors_headers(datasette: Any) -> dict[str, str]:
    """Datasette's, and the protocol's own headers allowed."""
    headers = cors_headers(datasette)
    if headers:
        headers["Access-Control-Allow-Headers"] = ", ".join(
            filter(None, [headers.get("Access-Control-Allow-Headers"), HEADERS])
        )
    return headers


def _adding(headers: Mapping[str, str], send: Any) -> Any:
    """A `send` that adds headers, and keeps answers out of shared caches: they are one actor's."""
    more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def adding(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {
                **message,
                "headers": [*message.get("headers", []), *more, (b"cache-control", b"no-store")],
            }
        await send(message)

    return adding


class NoSdk(MempalaceError):
    """The SDK of the protocol is not installed here."""

    status = 501
    title = "Not installed"
