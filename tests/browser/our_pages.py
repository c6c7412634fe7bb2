"""Every page of ours, by name: what accessibility, layout and content policy are checked on.

A page is a path, or a function of a server's base URL where ids stand in the path.
"""

import json
from urllib.parse import quote, urlencode

import pytest

from datasette_mempalace.compat import IS_ONE
from serving import DIRECT

HOME = "/palace/-/mempalace"


def home(path="", **parameters):
    """A page under the palace's own."""
    return f"{HOME}{path}" + (f"?{urlencode(parameters, doseq=True)}" if parameters else "")


def row(words):
    """Datasette's page of the first drawer that has these words."""
    return lambda base: f"/palace/drawers/{drawer_with(base, words)['id']}"


def drawer(words, **parameters):
    """The page of the first drawer that has these words."""
    return lambda base: home(f"/drawer/{drawer_with(base, words)['id']}", **parameters)


PLAIN = {
    "overview": home(),
    "overview of a wing": home(wing="lighthouse"),
    "overview of a room": home(wing="lighthouse", room="lamp"),
    "overview of an odd wing": home(wing="<b>bold</b> wing"),
    "overview of nothing": home(wing="no such wing"),
    "hits": home(q="how is the lamp trimmed"),
    "hits, narrowed": home(q="lamp", wing=["lighthouse", "markup"], room="lamp", since="2025-01-01"),
    "hits, folded": home(q="who knew the password", n_results=20),
    "hits by words": home(q="lamp", vector_disabled=1),
    "hits of MemPalace's ranking": home(q="lamp", ranking="mempalace", n_results=20),
    "second page of hits": home(q="lamp", n_results=5, next=5),
    "odd hits": home(q="A paper about the lamp in the wing called", n_results=50),
    "no hits": home(q="lampp", wing="lighthous", vector_disabled=1),
    "drawer": drawer("When the lens", q="how is the lamp trimmed"),
    "drawer, rendered": drawer("When the lens", **{"as": "rendered"}),
    "odd drawer, rendered": drawer("<script>", **{"as": "rendered", "similar": "room"}),
    "no drawer": home("/drawer/nobody"),
    "no page": home("/nothing"),
    "similar drawers": lambda base: home("/similar", drawer_id=drawer_with(base, "When the lens")["id"]),
    "duplicates": home("/duplicates", threshold=0.8),
    "duplicates, nothing": home("/duplicates", threshold=1, wing="no such wing"),
    "rooms of all wings": home("/rooms"),
    "sources of a wing": home("/sources", wing="markup"),
    "a source": home("/source", source_file="/town/lighthouse/lamp-1.md"),
    "an odd source": home("/source", source_file="/town/<script>.html"),
    "status": home("/status"),
    "status, examined": home("/status", doctor=1),
    "an error": home(q="lamp", since="yesterday"),
}
if IS_ONE:  # 0.65 has no place for a search box on these pages, but in a template of the data app
    PLAIN |= {
        "database": "/palace",
        "drawers table": "/palace/drawers",
        "drawers table, searched": "/palace/drawers?_mempalace=lamp",
    }
DATA_APP = {
    "front page": "/",
    "row": row("When the lens"),
    "odd row": row("<script>"),
    "drawers table": "/palace/drawers",
    "drawers table, searched": "/palace/drawers?_mempalace=lamp",
}
# The list of palaces shows itself only where there are two.
TWO_PALACES = {"list of palaces": "/-/mempalace"}
# What is ours on a page, as a selector: the front page is Datasette's but for the palaces.
OURS = ".mp:not(.mp-front), .mp-palace, .mp-core"
SERVERS = {"plain": PLAIN, "data_app": DATA_APP, "two_palaces": TWO_PALACES}

every_page = pytest.mark.parametrize(
    "address",
    [
        pytest.param((server, path), id=f"{server}: {name}")
        for server, pages in SERVERS.items()
        for name, path in pages.items()
    ],
    indirect=True,
)


def drawer_with(base, words):
    """The columns of the first drawer, by row, whose text has these words."""
    path = f"/palace/drawers.json?text__contains={quote(words)}&_sort=id&_shape=objects&_size=1"
    with DIRECT.open(base + path) as response:
        return json.load(response)["rows"][0]
