"""What the plugin serves over HTTP: the page (`pages`), the look around (`explore`, `lists`, `source`), drawers and what is
like them (`drawer`, `similar`, `duplicates`), the JSON and CSV (`api`, streamed by `export`), the agents' tools (`mcp`), a
description of the API (`openapi`), what is said of any other address (`nowhere`), and the links that lead there (`menus`)."""

from __future__ import annotations

import re
from typing import Any

from . import (
    api,
    drawer,
    duplicates,
    explore,
    export,
    lists,
    mcp,
    nowhere,
    openapi,
    pages,
    similar,
    source,
    status,
)
from .links import OPENAPI

_PALACE = r"^/(?P<database>[^\/\.]+)/-/mempalace"
_LIST = "/(?P<what>wings|rooms|sources|halls|authors)"

ROUTES: list[tuple[str, Any]] = [
    (r"^/-/mempalace$", pages.index_page),
    (rf"^{mcp.PATH}$", mcp.mcp_endpoint),
    (rf"^{re.escape(OPENAPI)}$", openapi.openapi_json),
    (_PALACE + "$", pages.palace_page),
    (_PALACE + r"\.json$", api.search_json),
    (_PALACE + "/status$", status.status_page),
    (_PALACE + r"/status\.json$", status.status_json),
    (_PALACE + r"\.csv$", export.export_csv),
    (_PALACE + r"\.ndjson$", export.export_ndjson),
    (_PALACE + r"/drawer/(?P<drawer_id>[^\/\.]+)$", drawer.drawer_page),
    (_PALACE + r"/drawer/(?P<drawer_id>[^\/\.]+)\.json$", drawer.drawer_json),
    (_PALACE + r"/similar$", similar.similar_page),
    (_PALACE + r"/similar\.json$", similar.similar_json),
    (_PALACE + r"/duplicates$", duplicates.duplicates_page),
    (_PALACE + r"/duplicates\.json$", duplicates.duplicates_json),
    (_PALACE + r"/duplicates\.csv$", duplicates.duplicates_csv),
    (_PALACE + r"/overview\.json$", explore.overview_json),
    (_PALACE + r"/timeline\.json$", explore.timeline_json),
    (_PALACE + r"/timeline\.csv$", explore.timeline_csv),
    (_PALACE + _LIST + "$", lists.list_page),
    (_PALACE + _LIST + r"\.json$", lists.list_json),
    (_PALACE + _LIST + r"\.csv$", lists.list_csv),
    (_PALACE + "/source$", source.source_page),
    (_PALACE + r"/source\.json$", source.source_json),
    # Last; an address that ends in a slash is left to Datasette, which takes the slash away.
    (_PALACE + r"/(?P<unknown>.*[^\/])$", nowhere.no_page_of_palace),
    (r"^/-/mempalace/(?P<unknown>.*[^\/])$", nowhere.no_page),
]
