"""The list of our pages is whole."""

import re

from datasette_mempalace.views import ROUTES
from our_pages import SERVERS

DATA = re.compile(r"\\?\.(json|csv|ndjson)\$$|/mcp\$$")


def test_every_route_with_a_page_is_in_the_list(request):
    paths = {
        (path(request.getfixturevalue(server)) if callable(path) else path).split("?")[0]
        for server, pages in SERVERS.items()
        for path in pages.values()
    }
    pages = [pattern for pattern, _ in ROUTES if not DATA.search(pattern)]
    assert r"^/-/mempalace$" in pages
    assert [pattern for pattern in pages if not any(re.match(pattern, path) for path in paths)] == []
