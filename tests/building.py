"""Small palaces for tests: made with the real embedding model, filled, embedded and mirrored."""

import numpy as np

from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.palace import Palace
from datasette_mempalace.request import parse_request
from datasette_mempalace.searcher import run_search
from datasette_mempalace.vectors import as_blob, embed_pending


def make_palace(path, drawers=(), *, mirror=False, settings=None):
    """A palace with drawers, embedded, and mirrored where asked; the caller closes it."""
    palace = Palace.create(path, settings)
    add(palace, *drawers, mirror=mirror)
    return palace


def add(palace, *drawers, mirror=False):
    """Add drawers as (text, wing, room) or as Drawer, and embed them."""
    put_drawers(
        palace,
        [drawer if isinstance(drawer, Drawer) else Drawer(*drawer_fields(drawer)) for drawer in drawers],
    )
    embed_pending(palace)
    if mirror:
        palace.mirror.sync()


def add_unread(palace, number):
    """Add drawers with vectors made by chance, sooner than a model makes them: over a thousand fill Chroma's index files."""
    put_drawers(palace, [Drawer(f"text {place}") for place in range(number)])
    chance = np.random.default_rng(3)
    with palace.writer() as connection:
        rows = connection.execute(
            "select id from drawers where id not in (select id from drawer_vectors)"
        ).fetchall()
        for (row_id,) in rows:
            vector = chance.normal(size=384).astype(np.float32)
            blob = as_blob(vector / np.linalg.norm(vector))
            connection.execute("insert into drawer_vectors values (?, ?, ?)", [row_id, blob, str(row_id)])


def full_of(mark, text, **fields):
    """A drawer with a mark in every field but its text and its dates."""
    marked = {
        "wing": mark, "room": f"room {mark}", "hall": mark, "source_file": f"/notes/{mark}", "added_by": mark,
        "metadata": {"heading": mark},
    }  # fmt: skip
    return Drawer(text, **marked | fields)


def drawer_fields(drawer):
    """A drawer given as (text, wing, room) in the order of Drawer's fields."""
    text, wing, room = (*drawer, None, None)[:3]
    return text, None, wing, room


def find(palace, query, **parameters):
    """The whole answer to a search."""
    return run_search(palace, parse_request({"q": query, **parameters}, palace.settings))


def texts(answer):
    """The texts of an answer's hits, best first."""
    return [hit["text"] for hit in answer["results"]]


def one(palace, query, *parameters):
    """The first row of a query, straight from the database."""
    with palace.reader() as connection:
        return connection.execute(query, parameters).fetchone()


def column(palace, query, *parameters):
    """The first column of a query, straight from the database."""
    with palace.reader() as connection:
        return [row[0] for row in connection.execute(query, parameters)]
