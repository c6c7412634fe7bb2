"""The list of our pages is whole."""

import re

from datasette_mempalace.views import ROUTES, nowhere
from our_pages import SERVERS

DATA = re.compile(r"\\?\.(json|csv|ndjson)\$$|/mcp\$$")


def test_every_route_with_a_page_is_in_the_list(request):
    paths = {
        (path(request.getfixturevalue(server)) if callable(path) else path).split("?")[0]
        for server, pages in SERVERS.items()
        for path in pages.values()
    }
    # An address under no palace's is answered with Datasette's own error page.
    pages = [pattern for pattern, view in ROUTES if not DATA.search(pattern) and view is not nowhere.no_page]
    assert r"^/-/mempalace$" in pages
    assert [pattern for pattern in pages if not any(re.match(pattern, path) for path in paths)] == []
