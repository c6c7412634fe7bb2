"""What the plugin serves over HTTP: the page (`pages`), the JSON and CSV (`api`, streamed by `export`), the agents' tools (`mcp`), and the links that lead there (`menus`)."""

from __future__ import annotations

from typing import Any

from . import api, export, mcp, pages

_PALACE = r"^/(?P<database>[^\/\.]+)/-/mempalace"

ROUTES: list[tuple[str, Any]] = [
    (r"^/-/mempalace$", pages.index_page),
    (rf"^{mcp.PATH}$", mcp.mcp_endpoint),
    (_PALACE + "$", pages.palace_page),
    (_PALACE + r"\.json$", api.search_json),
    (_PALACE + r"\.csv$", export.export_csv),
    (_PALACE + r"\.ndjson$", export.export_ndjson),
]
