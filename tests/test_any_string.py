"""Any string in any parameter of any route: an answer as it is described, never a failure of the server."""

import asyncio
import re
from urllib.parse import quote

import pytest
from datasette.utils import tilde_encode
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from datasette_mempalace.filters import COLUMNS, OPERATORS
from datasette_mempalace.views import ROUTES
from datasette_mempalace.views.links import OPENAPI
from datasette_mempalace.views.mcp import PATH as MCP
from datasette_mempalace.views.openapi import path_of
from datasette_mempalace.views.operation import operation_of
from datasette_mempalace.views.parameters import FILTERS, PARAMETERS
from described import check

EXAMPLES = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
DATA = {path_of(pattern): operation_of(view) for pattern, view in ROUTES if operation_of(view)}
PAGES = [path_of(pattern) for pattern, view in ROUTES if not operation_of(view) and path_of(pattern) != MCP]
LISTS = ("wings", "rooms", "sources", "halls", "authors")

# What leads somewhere, so that not every answer is a refusal; and lone surrogates, which text() leaves out.
KNOWN = ("token", "acme-app", "auth", "/notes/guide.md", "1", "0", "3", "0.98", "2026-01-01", "wing", "")
anything = st.sampled_from(KNOWN) | st.text(st.characters(exclude_categories=()), max_size=20)
filters = st.builds(
    "{}__{}".format, st.sampled_from([*COLUMNS, "metadata.heading"]), st.sampled_from(sorted(OPERATORS))
)


def names_of(operation):
    """The parameters that an operation reads, filters among them."""
    named = {PARAMETERS[name]["name"] for name in operation.parameters} - {FILTERS}
    return st.sampled_from(sorted(named | {"q"})) | filters


def asker(served):
    """A function that asks for a path of the document, with a palace, a list, a drawer and parameters put in."""
    loop = asyncio.new_event_loop()

    def ask(path, pairs, what, drawer_id):
        address = path.replace("{database}", "palace").replace("{what}", what)
        address = address.replace("{drawer_id}", tilde_encode(drawer_id))
        query = "&".join(
            "=".join(quote(part.encode("utf-8", "surrogatepass"), "") for part in pair) for pair in pairs
        )
        return loop.run_until_complete(served.client.get(f"{address}?{query}"))

    return ask, loop


def strings(names):
    """Parameters, a list and the name of a drawer."""
    return given(
        st.lists(st.tuples(names, anything), max_size=5),
        st.sampled_from(LISTS),
        st.sampled_from(["1", "3"]) | st.text(min_size=1, max_size=20),
    )


@pytest.mark.parametrize("path", [path for path in DATA if path != OPENAPI])
def test_data_for_any_string_is_as_described(served, path):
    ask, loop = asker(served)

    @EXAMPLES
    @strings(names_of(DATA[path]))
    @example([("q", "token"), ("wing__in", "[")], "rooms", "1")
    @example([("q", "\ud800\0")], "wings", "\0")
    def check_one(pairs, what, drawer_id):
        check(path, ask(path, pairs, what, drawer_id))

    check_one()
    loop.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_for_any_string_is_a_page(served, path):
    ask, loop = asker(served)
    names = st.sampled_from(sorted({parameter["name"] for parameter in PARAMETERS.values()})) | filters

    @EXAMPLES
    @strings(names)
    @example([("q", "\ud800\0")], "wings", "\0")
    def check_one(pairs, what, drawer_id):
        response = ask(path, pairs, what, drawer_id)
        assert response.status_code in (200, 302, 400, 404)
        assert response.status_code == 302 or re.search(r"</html>\s*$", response.text)

    check_one()
    loop.close()
