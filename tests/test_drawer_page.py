"""The page of one drawer: as a page of its own, as JSON, and as the data app shows it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from datasette.utils import tilde_encode

from building import add, make_palace
from datasette_mempalace.config import Settings
from datasette_mempalace.drawers import Drawer, Source, put_source
from datasette_mempalace.importers.mempalace.graph import put_rows
from datasette_mempalace.keeper import Keeper
from datasette_mempalace.origins import make_tables, record_origin
from datasette_mempalace.palace import Palace
from datasette_mempalace.vectors import embed_pending
from datasette_mempalace.views.drawer_look import look_at, parse_look
from pages import Page

TEMPLATES = str(Path(__file__).resolve().parent.parent / "templates")
PALACE = "/palace/-/mempalace"
ODD_IDS = [
    "a/b", "100%", "日本語 drawer", "x" * 300, "..", ".json", "a.json", "~2F", "+ +", "<b>&\"'", "?q=1#x", "Ünï\u202ecode", "a\nb",
]  # fmt: skip
GUIDE = "\n\n".join(
    f"# Chapter {n}\n\n" + f"How the keeper of lighthouse {n} trims the lamp when evening comes. " * 14
    for n in range(1, 8)
)


def page_path(drawer_id, extension=""):
    return f"{PALACE}/drawer/{tilde_encode(drawer_id)}{extension}"


@pytest.fixture(scope="module")
def guide_path(tmp_path_factory):
    """A source of several chapters, its first passage again elsewhere, odd names, a huge text, no place at all."""
    path = tmp_path_factory.mktemp("drawer") / "palace.db"
    palace = make_palace(path)
    put_source(
        palace, Source("/notes/guide.md", GUIDE, wing="guides", room="sea", filed_at="2026-05-01T10:00:00")
    )
    with palace.reader() as connection:
        first = connection.execute(
            "select text from drawers where source_file = '/notes/guide.md' limit 1"
        ).fetchone()[0]
    drawers = [Drawer(f"An odd name, number {n}.", drawer_id=name) for n, name in enumerate(ODD_IDS)]
    drawers += [
        Drawer(first, drawer_id="copy", wing="copies", source_file="/copy.md"),
        Drawer("Ada Lovelace wrote the first program.", drawer_id="ada", metadata={
            "list": [1, {"deep": None}], "html": "<script>alert(1)</script>", "number": 3.5, "none": None, "": "no name",
            "flag": False, "long": "x" * 700, "heading": "Ada <b>",
        }),
        Drawer("# Title\n\n**bold** <script>alert(1)</script> ![p](http://evil.example/p.png)", drawer_id="markup"),
        Drawer("word " * 40_000, drawer_id="huge", source_file="/huge.md", chunk_index=1),
        Drawer("before " * 2_000, drawer_id="huge-before", source_file="/huge.md", chunk_index=0),
        Drawer("after " * 2_000, drawer_id="huge-after", source_file="/huge.md", chunk_index=2),
    ]  # fmt: skip
    add(palace, *drawers)
    palace.checkpoint()
    palace.close()
    return path


@pytest.fixture
def guide(make_datasette, guide_path):
    return make_datasette(guide_path)


@pytest.fixture(scope="module")
def chunks(guide_path):
    """(id, drawer_id, text) of the guide's drawers in order."""
    with closing(sqlite3.connect(guide_path)) as connection:
        return connection.execute(
            "select id, drawer_id, text from drawers where source_file = '/notes/guide.md' order by chunk_index"
        ).fetchall()


async def get(datasette, path, status=200):
    response = await datasette.client.get(path)
    assert response.status_code == status, f"{path}: {response.status_code} {response.text[:300]}"
    return response.text


async def test_text_stands_between_its_neighbours_with_the_overlap_once(guide, chunks):
    (_, before, text_before), (row_id, drawer_id, text), (_, after, text_after) = chunks[2:5]
    html = await get(guide, page_path(drawer_id))
    page = Page(html)
    assert f"guide.md, chunk 4 of {len(chunks)}" in page.text
    assert f'<pre class="mp-verbatim" dir="auto">\n{text}</pre>' in html
    assert (page_path(before), "← Chunk 3") in page.links
    assert (page_path(after), "Chunk 5 →") in page.links
    assert 'rel="prev"' not in await get(guide, page_path(chunks[0][1]))
    assert 'rel="next"' not in await get(guide, page_path(chunks[-1][1]))
    answer = json.loads(await get(guide, page_path(drawer_id, ".json")))
    shared = answer["previous"]["overlap"]
    assert shared
    assert text_before.endswith(text[:shared])
    assert f"its last {shared} characters begin this drawer" in page.text
    assert text_before[:-shared].strip() in html
    assert f"Row {row_id} of drawers" in page.text


async def test_outline_marks_the_heading_that_one_reads_under(guide, chunks):
    answer = json.loads(await get(guide, page_path(chunks[-1][1], ".json")))
    assert [each["heading"] for each in answer["outline"]] == [f"Chapter {n}" for n in range(1, 8)]
    assert [each["heading"] for each in answer["outline"] if each["current"]] == ["Chapter 7"]
    page = Page(await get(guide, page_path(chunks[-1][1])))
    assert [given for tag, given in page.items if tag == "a" and given.get("aria-current") == "true"]
    assert (answer["place"], answer["total"]) == (len(chunks), len(chunks))
    assert any(said == "Chapter 1" for _, said in page.links)


async def test_copies_and_closets_are_named(guide, chunks):
    answer = json.loads(await get(guide, page_path(chunks[0][1], ".json")))
    assert [copy["drawer_id"] for copy in answer["copies"]] == ["copy"]
    assert [closet["points_here"] for closet in answer["closets"]] == [True]
    page = Page(await get(guide, page_path(chunks[0][1])))
    assert (page_path("copy"), "copy.md") in page.links
    assert "Points to this drawer." in page.text
    assert "Chapter 1, Chapter 2" in page.text
    back = json.loads(await get(guide, page_path("copy", ".json")))
    assert [copy["drawer_id"] for copy in back["copies"]] == [chunks[0][1]]


# As SQL, by other programs: bytes that are no text, a BLOB, a number, with NULs, one that looks like another's row.
RAW_IDS = [
    "x'ff41'",
    "cast(x'ff41' as text)",
    "x'fe00ff'",
    "x'6162'",
    "4.5",
    "'a' || char(0) || 'b'",
    "char(0)",
    "'2'",
    "''",
]


@pytest.mark.parametrize("raw", RAW_IDS)
async def test_a_name_that_is_no_text_leads_to_its_drawer(make_datasette, tmp_path, raw):
    path = tmp_path / "palace.db"
    with make_palace(path, [("the first harbour", "w", "r"), ("the second harbour", "w", "r")]) as palace:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                f"insert into drawers(drawer_id, text, wing) values ({raw}, 'an odd harbour of tugboats', 'odd')"
            )
        embed_pending(palace)
    datasette = make_datasette(path)
    for address in ("?q=tugboats&n_results=1", "?wing=odd", "/duplicates"):
        page = Page((await datasette.client.get(PALACE + address)).text)
        for href in {href for href, _ in page.links if "/-/mempalace/drawer/" in href}:
            response = await datasette.client.get(href)
            assert (response.status_code, "an odd harbour of" in response.text) == (200, True), href
    hit = json.loads(await get(datasette, f"{PALACE}.json?q=tugboats&n_results=1"))["results"][0]
    for address in (hit["url"], hit["url"] + ".json"):
        assert "an odd harbour of tugboats" in await get(datasette, address.replace("http://localhost", ""))
    similar = await datasette.client.get(
        f"{PALACE}/similar.json", params={"drawer_id": hit["drawer_id"] or hit["id"]}
    )
    assert similar.json()["drawer"]["id"] == 3


@pytest.mark.parametrize("drawer_id", ODD_IDS)
async def test_odd_names_have_a_page(guide, drawer_id):
    number = ODD_IDS.index(drawer_id)
    html = await get(guide, page_path(drawer_id))
    assert f"An odd name, number {number}." in html
    assert "<b>&" not in html
    assert "no wing / no room" in Page(html).text
    answer = json.loads(await get(guide, page_path(drawer_id, ".json")))
    assert answer["drawer"]["drawer_id"] == drawer_id
    assert await get(guide, answer["drawer"]["url"].removeprefix("http://localhost"))


async def test_metadata_of_any_type_is_shown_key_by_key(guide):
    html = await get(guide, page_path("ada"))
    page = Page(html)
    assert "<script>alert" not in html
    assert "Ada <b>" in page.text
    for shown in ("<script>alert(1)</script>", "3.5", "(no name)", "null", "false", '"deep"'):
        assert shown in page.text
    answer = json.loads(await get(guide, page_path("ada", ".json")))
    assert answer["drawer"]["metadata"]["list"] == [1, {"deep": None}]


@pytest.mark.parametrize("stored", ["not JSON", "[1, 2]", '{"a": NaN}', "[" * 100_000, "", '{"heading": 5}'])
async def test_metadata_that_is_none_breaks_no_page(make_datasette, guide_path, tmp_path, stored):
    path = tmp_path / "palace.db"
    path.write_bytes(guide_path.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update drawers set metadata = ? where drawer_id = 'ada'", [stored])
    datasette = make_datasette(path)
    assert "Ada Lovelace" in await get(datasette, page_path("ada"))
    assert json.loads(await get(datasette, page_path("ada", ".json")))["ok"]


async def test_markdown_is_rendered_on_demand_and_sanitised(guide):
    written = await get(guide, page_path("markup"))
    assert "**bold**" in written
    href = Page(written).link("Rendered")
    rendered = await get(guide, href)
    assert "<strong>bold</strong>" in rendered
    for html in (written, rendered):
        assert "<script>alert" not in html
        assert "<img" not in html
    assert '<a href="http://evil.example/p.png" rel="nofollow noreferrer">' in rendered


async def test_huge_texts_are_shown_whole_and_their_neighbours_cut(guide):
    html = await get(guide, page_path("huge"))
    assert html.count("word ") >= 39_999
    assert html.count("before ") < 400
    assert html.count("after ") < 400
    rendered = Page(await get(guide, page_path("huge") + "?as=rendered"))
    assert "Texts of more than 20,000 characters are not rendered" in rendered.text


async def test_words_of_a_search_are_marked_and_a_link_leads_back(guide, chunks):
    search = "q=trimming+lamp&wing=guides&n_results=20"
    page = Page(await get(guide, f"{page_path(chunks[2][1])}?{search}"))
    assert any(tag == "mark" for tag, _ in page.items)
    assert page.link("Back to the hits") == f"{PALACE}?{search}#drawer-{chunks[2][0]}"
    hits = Page(await get(guide, f"{PALACE}?{search}"))
    assert f"{page_path(chunks[2][1])}?{search}" in [href for href, _ in hits.links]
    assert page.link("Chunk 4 →") == f"{page_path(chunks[3][1])}?{search}"
    assert page.link("Rendered") == f"{page_path(chunks[2][1])}?{search}&as=rendered"
    rendered = await get(guide, page.link("Rendered"))
    assert "<mark>lamp</mark>" in rendered


async def test_similar_drawers_are_those_of_the_api_and_their_reach_can_be_chosen(guide, chunks):
    drawer_id = chunks[1][1]
    page = Page(await get(guide, page_path(drawer_id)))
    assert "Similar drawers" in page.text
    within = Page(await get(guide, page.link("in this wing").removesuffix("#mp-similar")))
    assert page.link("More of them") == f"{PALACE}/similar?drawer_id={drawer_id}"
    assert within.link("More of them") == f"{PALACE}/similar?drawer_id={drawer_id}&wing=guides"
    for reach, query in (("everywhere", ""), ("wing", "&wing=guides"), ("room", "&wing=guides&room=sea")):
        here = json.loads(await get(guide, f"{page_path(drawer_id, '.json')}?similar={reach}"))
        there = json.loads(
            await get(guide, f"{PALACE}/similar.json?drawer_id={drawer_id}&n_results=5{query}")
        )
        assert [hit["id"] for hit in here["similar"]] == [hit["id"] for hit in there["results"]]
    assert await get(guide, page.link("More of them"))


async def test_a_drawer_without_a_vector_says_so(make_datasette, tmp_path, monkeypatch):
    monkeypatch.setattr(Keeper, "start", lambda self: None)  # it would soon have one
    path = tmp_path / "palace.db"
    with Palace.create(path) as palace:
        put_source(palace, Source("/a.md", "A short text.", wing="w"))
    datasette = make_datasette(path)
    assert "No drawer of this palace has a vector yet" in Page(await get(datasette, page_path("1"))).text


@pytest.mark.parametrize("query", ["as=pdf", "similar=moon", "q=x&n_results=0", "as=written&as=rendered"])
async def test_wrong_parameters_are_named(guide, query):
    name = query.rpartition("=")[0].rpartition("&")[2]
    assert name in Page(await get(guide, f"{page_path('ada')}?{query}", 400)).text
    assert name in json.loads(await get(guide, f"{page_path('ada', '.json')}?{query}", 400))["error"]


async def test_an_unknown_drawer_is_a_404_that_helps(guide):
    page = Page(await get(guide, page_path("nobody"), 404))
    assert "There is no drawer 'nobody' in this palace." in page.text
    assert ("/palace/-/mempalace", "Search and overview of this palace") in page.links
    assert json.loads(await get(guide, page_path("nobody", ".json"), 404))["status"] == 404
    assert (await guide.client.post(page_path("ada"))).status_code in (403, 405)


async def test_row_page_of_the_data_app_shows_the_same(make_datasette, guide_path, chunks):
    datasette = make_datasette(guide_path, template_dir=TEMPLATES)
    row = Page(await get(datasette, f"/palace/drawers/{chunks[2][0]}?q=lamp&as=rendered"))
    own = Page(await get(datasette, f"{page_path(chunks[2][1])}?q=lamp&as=rendered"))
    for text in (
        "In this source",
        "Similar drawers",
        "its last",
        "Closet of this source",
        "Metadata",
        "Back to the hits",
    ):
        assert text in row.text
        assert text in own.text
    assert row.link("Chunk 4 →") == f"/palace/drawers/{chunks[3][0]}?q=lamp&as=rendered"


def test_a_source_of_thousands_takes_as_many_statements_as_a_small_one(tmp_path):
    def statements(count):
        path = tmp_path / f"{count}.db"
        settings = Settings(exact_limit=10_000, time_limit_ms=60_000)
        with make_palace(path, [("Seed of the palace.", None, None)], settings=settings) as palace:
            with palace.writer() as connection:
                connection.executemany(
                    "insert into drawers(drawer_id, text, source_file, chunk_index, metadata) values (?, ?, '/big.md', ?, ?)",
                    [
                        (f"d{n}", f"Chunk {n}.", n, json.dumps({"heading": f"Part {n // 5}"}))
                        for n in range(count)
                    ],
                )
                connection.execute(
                    "insert or ignore into drawer_vectors(id, vector, text_hash)"
                    " select drawers.id, vector, drawers.drawer_id from drawers, drawer_vectors where drawer_vectors.id = 1"
                )
            seen = []
            with palace.reader() as connection:
                connection.set_trace_callback(seen.append)
            found = look_at(palace, parse_look(f"d{count // 2}", {}, palace.settings))
            assert found.around.total == count
            assert len(found.around.outline) <= 402
            return len(seen)

    small, large = statements(30), statements(3_000)
    assert small <= 40
    assert large <= small + 8  # a second look for drawers of other sources


async def test_facts_of_a_knowledge_graph_are_shown_where_they_belong(make_datasette, guide_path, tmp_path):
    path = tmp_path / "palace.db"
    path.write_bytes(guide_path.read_bytes())
    with Palace.open(path) as palace, palace.writer() as connection:
        make_tables(connection)
        origin = record_origin(connection, tmp_path, "drawers", "c1", None, "cosine")
        entities = [("e1", "Ada Lovelace"), ("e2", "the first program"), ("e3", "Mahler"), ("e4", "the")]
        put_rows(connection, "kg_entities", origin, [_row("entity_id", *each) for each in entities], True)
        facts = [
            ("t1", "e3", "composed", "e4", {"source_drawer_id": "ada"}),
            ("t2", "e1", "wrote", "e2", {}),
            ("t3", "e3", "likes", "e4", {}),
            ("t4", "e3", "visited", "e4", {"source_file": "/notes/guide.md"}),
        ]
        put_rows(connection, "kg_triples", origin, [_fact(*each) for each in facts], True)
    datasette = make_datasette(path)
    answer = json.loads(await get(datasette, page_path("ada", ".json")))
    assert [(fact["subject"], fact["predicate"], fact["why"]) for fact in answer["facts"]] == [
        ("Mahler", "composed", "drawer"),
        ("Ada Lovelace", "wrote", "name"),
    ]
    page = Page(await get(datasette, page_path("ada")))
    href = page.link("Ada Lovelace wrote the first program")
    assert "wrote" in await get(datasette, href)
    with closing(sqlite3.connect(path)) as connection:
        other = connection.execute(
            "select drawer_id from drawers where source_file = '/notes/guide.md'"
        ).fetchone()[0]
    answer = json.loads(await get(datasette, page_path(other, ".json")))
    assert [(fact["predicate"], fact["why"]) for fact in answer["facts"]] == [("visited", "source")]
    closed = {
        "databases": {"palace": {"tables": {"kg_triples": {"allow": False}, "closets": {"allow": False}}}}
    }
    shut = make_datasette(path, config=closed)
    answer = json.loads(await get(shut, page_path(other, ".json")))
    assert (answer["facts"], answer["closets"]) == ([], [])


def _row(key, entity_id, name):
    return {
        key: entity_id,
        "name": name,
        "type": None,
        "properties": None,
        "created_at": None,
        "metadata": "{}",
    }


def _fact(triple_id, subject, predicate, target, more):
    names = "valid_from valid_to confidence source_file source_drawer_id source_closet_id adapter_name extracted_at".split()
    return {
        "triple_id": triple_id, "subject": subject, "predicate": predicate, "object": target,
        **dict.fromkeys(names), **more, "metadata": "{}",
    }  # fmt: skip


@pytest.mark.parametrize("closed", ["palace", "drawers"])
async def test_who_may_not_see_the_palace_sees_no_drawer(make_datasette, guide_path, closed):
    allow = {"allow": False} if closed == "palace" else {"tables": {"drawers": {"allow": False}}}
    datasette = make_datasette(guide_path, config={"databases": {"palace": allow}})
    for path in (page_path("ada"), f"{PALACE}/similar?drawer_id=ada", f"{PALACE}/duplicates"):
        page = await get(datasette, path, 403)
        assert "Lovelace" not in page
    for path in (
        page_path("ada", ".json"),
        f"{PALACE}/similar.json?drawer_id=ada",
        f"{PALACE}/duplicates.json",
    ):
        assert json.loads(await get(datasette, path, 403))["ok"] is False
