"""What the tests share: a small real palace with awkward names, and Datasettes that serve it, on 0.65 and on 1.0."""

import shutil

import hypothesis
import pytest
from datasette.app import Datasette
from datasette.plugins import pm

import datasette_mempalace
import foreign_palaces
from datasette_mempalace.compat import IS_ONE
from datasette_mempalace.drawers import Drawer, Source, put_drawers, put_source
from datasette_mempalace.palace import Palace
from datasette_mempalace.vectors import embed_pending

ODD_WINGS = [
    "café-notes",
    "日本語",
    "O'Brien",
    "a/b",
    '"; drop',
    "<b>wing</b>",
    "100% & more?",
    "_under+plus ~tilde",
]
LONG = (
    "The nightly job copies every invoice to the archive bucket, checks the sums against the ledger and mails a short"
    " report to the accounting team before six in the morning."
)

# What a test claims is never how fast it was: another program may have the machine.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

if datasette_mempalace not in pm.get_plugins():  # run from a checkout that is not installed
    pm.register(datasette_mempalace, name="mempalace")


def sample_drawers():
    """About sixty drawers in wings and rooms of every kind of name."""
    topics = {
        "auth": "The login service checks a password and signs a token",
        "database": "PostgreSQL stores the orders with an index on the customer",
        "deploy": "A container is built and rolled out to the cluster",
    }
    for room, text in topics.items():
        for number in range(1, 15):
            yield Drawer(
                f"{text}; step {number} of the {room} notes explains part {number}.",
                wing="acme-app",
                room=room,
                source_file=f"/notes/acme/{room}.md",
                chunk_index=number - 1,
                filed_at=f"2026-{1 + number % 9:02d}-{10 + number}T09:00:00",
                metadata={"heading": f"{room.title()} in practice"} if number % 2 else {},
            )
    yield Drawer("The login screen of the old app used a token too.", wing="acme_app", room="auth")
    for number, wing in enumerate(ODD_WINGS):
        yield Drawer(
            f"A drawer about a token in the wing called {wing}.",
            wing=wing,
            room=f"room {wing}",
            hall=str(number),
        )
    yield Drawer("A token without any wing or room.", filed_at=None)
    yield Drawer("A token in a wing without a room.", wing="acme_app")
    yield Drawer(
        "<script>alert('token')</script> <img src=x onerror=alert(1)> & a token in markup",
        wing="markup",
        room="<i>room</i>",
        source_file="/notes/<script>.html",
        metadata={"heading": "<u>heading</u> & token"},
    )
    yield Drawer(
        '=HYPERLINK("http://example.com") is a token formula', wing="=1+1", room="@sum", source_file="-x.csv"
    )
    yield Drawer("東京の会議で検索エンジンの設計について話しました。", wing="日本語", room="メモ")
    yield Drawer(LONG, wing="finance", room="jobs", source_file="/notes/finance/nightly.md", chunk_index=0)
    yield Drawer(LONG, wing="finance", room="jobs", source_file="/backup/finance/nightly.md", chunk_index=0)


@pytest.fixture(scope="session")
def palace_path(tmp_path_factory):
    """A palace database with vectors of the real model; nobody writes to it."""
    path = tmp_path_factory.mktemp("palace") / "palace.db"
    with Palace.create(path) as palace:
        put_drawers(palace, sample_drawers())
        guide = "\n\n".join(
            f"# Chapter {n}\n\nHow the lighthouse keeper trims lamp {n}. " * 3 for n in range(1, 6)
        )
        put_source(
            palace,
            Source(
                "/notes/guide.md", guide, wing="guides", room="lighthouse", filed_at="2026-05-01T10:00:00"
            ),
        )
        embed_pending(palace)
        palace.checkpoint()
    return path


@pytest.fixture(scope="session")
def foreign(tmp_path_factory):
    """A folder with palaces of MemPalace's shapes, made by Chroma; nobody changes them."""
    folder = tmp_path_factory.mktemp("foreign")
    foreign_palaces.build(folder)
    return folder


@pytest.fixture
def empty_path(tmp_path):
    """A palace without a drawer."""
    path = tmp_path / "empty.db"
    with Palace.create(path) as palace:
        palace.checkpoint()
    return path


@pytest.fixture
def palace_named(tmp_path, palace_path):
    """A function that copies the palace to a database file of another name."""

    def copy(name):
        target = tmp_path / name
        shutil.copy(palace_path, target)
        return target

    return copy


@pytest.fixture
def make_datasette():
    """A function that makes a Datasette; `config` has `plugins`, `databases`, `allow` ... for either version."""

    def make(*paths, config=None, **options):
        config = {"plugins": {}, **(config or {})}
        config["plugins"] = {"datasette-mempalace": {"warm_up": False}, **config["plugins"]}
        options["config" if IS_ONE else "metadata"] = config
        return Datasette([str(path) for path in paths], **options)

    return make


@pytest.fixture
def served(make_datasette, palace_path):
    """A Datasette with the sample palace, open to everybody."""
    return make_datasette(palace_path)


@pytest.fixture
def as_actor():
    """A function that gives the cookies of somebody who has logged in to a Datasette."""

    def cookies(datasette, **actor):
        return {"ds_actor": datasette.sign({"a": actor}, "actor")}

    return cookies
