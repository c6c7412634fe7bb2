"""Looking around: the palace's page, its parts, lists, timeline and sources, by their links, from covering indexes."""

import json
import re
from contextlib import closing
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from datasette.utils.sqlite import sqlite3

from conftest import ODD_WINGS
from datasette_mempalace.connections import Connections
from datasette_mempalace.drawers import Drawer, Source, put_drawers, put_source
from datasette_mempalace.explore.days import timeline_of
from datasette_mempalace.explore.holdings import holdings
from datasette_mempalace.explore.source import PART
from datasette_mempalace.explore.topics import good_topic
from datasette_mempalace.explore.values import LISTS, list_values
from datasette_mempalace.palace import Palace
from datasette_mempalace.request import parse_request
from pages import Page

PALACE = "/palace/-/mempalace"
ODD_NAMES = [*ODD_WINGS, "", None, "x" * 300, "<script>alert(1)</script>"]
ODD_DATES = [None, "soon", "-0044-03-15", "9999-12-31T00:00:00", "2026-05-01T01:00:00+02:00", "2026-05-02", 5]
STATEMENTS = 20  # of one page, at most


async def get(datasette, path):
    response = await datasette.client.get(path)
    assert response.status_code == 200, f"{path}: {response.status_code} {response.text[:400]}"
    return Page(response.text)


async def get_json(datasette, path):
    response = await datasette.client.get(path)
    assert response.status_code == 200, f"{path}: {response.status_code} {response.text[:400]}"
    return response.json()


def query_of(href):
    return parse_qs(urlsplit(href).query)


def scope_of(palace, **parameters):
    return parse_request(parameters, palace.settings, allow_blank=True).scope


@pytest.fixture(scope="module")
def odd_path(tmp_path_factory):
    """A palace with names and dates of every kind."""
    path = tmp_path_factory.mktemp("odd") / "palace.db"
    with Palace.create(path) as palace:
        put_drawers(
            palace,
            [
                Drawer(
                    f"Drawer {n}",
                    wing=name,
                    room=name,
                    source_file=f"/n/{n}",
                    filed_at=f"2026-{1 + n % 9:02}-03",
                )
                for n, name in enumerate(ODD_NAMES)
            ],
        )
        with palace.writer() as connection:
            connection.execute("update drawers set wing = '', room = '' where source_file = '/n/8'")
            connection.executemany(
                "insert into drawers (text, wing, filed_at) values ('dated', 'dates', ?)",
                [[moment] for moment in ODD_DATES],
            )
        palace.checkpoint()
    return path


@pytest.fixture
def odd(make_datasette, odd_path):
    return make_datasette(odd_path)


def long_source(path, chapters):
    with Palace.create(path) as palace:
        text = "\n\n".join(
            f"# Chapter {n}\n\n" + " ".join(f"sentence {n}-{m} tells more." for m in range(60))
            for n in range(chapters)
        )
        put_source(palace, Source("/books/long one?.md", text, wing="books", filed_at="2026-05-01T10:00:00"))
        palace.checkpoint()
    return text


# The palace's page


async def test_every_cell_bar_and_name_leads_to_as_many_drawers_as_it_says(odd):
    page = await get(odd, PALACE)
    said = {href: title for href, title in page.titled.items() if re.search(r": [\d,]+( drawers?)?$", title)}
    assert len(said) > len(ODD_NAMES)
    for href, label in said.items():
        number = int(re.search(r": ([\d,]+)", label[label.rindex(":") :])[1].replace(",", ""))
        shown = await get(odd, href)
        assert re.search(rf"\b{number} drawers?\b", shown.text), f"{label} leads to {href}"


async def test_numbers_of_the_page_are_those_of_its_json(served):
    page = await get(served, PALACE)
    found = await get_json(served, f"{PALACE}/overview.json")
    assert f"{found['drawers']} drawers in {found['wing_count']} wings" in page.text
    assert f"{found['source_count']} sources" in page.text
    assert sum(wing["count"] for wing in found["wings"]) == found["drawers"]
    assert found["timeline"]["dated"] + found["timeline"]["undated"] == found["drawers"]
    assert found["embedder"]["model"] in page.text
    for wing in found["wings"]:
        path = wing["url"].removeprefix("http://localhost").replace("?", "/overview.json?")
        part = await get_json(served, path)
        assert part["drawers"] == wing["count"]
        assert part["room_count"] == wing["room_count"]
        assert wing["without_room"] == sum(room["count"] for room in wing["rooms"] if room["room"] is None)


async def test_overview_status_and_lists_count_what_has_a_name_alike(odd):
    found = await get_json(odd, f"{PALACE}/overview.json")
    counted = await get_json(odd, f"{PALACE}/status.json")
    page = await get(odd, PALACE)
    for what in ("wing", "room", "source"):
        assert found[f"{what}_count"] == counted[f"{what}s"]
        said = f"{counted[f'{what}s']} {what}s"
        assert said in page.text
        assert said in (await get(odd, f"{PALACE}/{what}s")).text
    assert found["without_wing"] == 1
    assert found["wing_count"] == len(found["wings"]) - 1


async def test_pictures_have_names_for_every_link_and_their_numbers_as_a_table(served):
    page = await get(served, PALACE)
    pictures = [given for tag, given in page.items if tag == "svg" and given.get("role") == "group"]
    assert all(given["aria-label"] for given in pictures)
    assert len(pictures) == 3  # the treemap for wide and for narrow windows, and the bars
    assert page.text.count("The same as a table") == 2
    assert not [given for tag, given in page.items if tag not in ("div",) and "style" in given]


async def test_markup_in_names_stays_text(odd):
    response = await odd.client.get(PALACE)
    assert "<script>alert" not in response.text
    assert "<b>wing</b>" not in response.text
    assert "&lt;b&gt;wing&lt;/b&gt;" in response.text


async def test_a_picture_is_as_high_as_its_rooms_are_many_and_gathers_only_the_small(
    tmp_path, make_datasette
):
    heights = []
    for name, rooms in (("few", 2), ("many", 50)):
        path = tmp_path / f"{name}.db"
        with Palace.create(path) as palace:
            put_drawers(
                palace,
                [
                    Drawer(f"text {n}", wing=f"wing {n % 2}", room=f"room {n % rooms}")
                    for n in range(4 * rooms)
                ],
            )
            palace.checkpoint()
        response = await make_datasette(path).client.get(f"/{name}/-/mempalace")
        heights.append(
            [
                int(found)
                for found in re.findall(
                    r'width="100%" height="(\d+)" role="group" aria-label="Wing', response.text
                )
            ]
        )
        titles = Page(response.text).titled.values()
        assert not [title for title in titles if "more room" in title]
        # A box of a room has its number wherever it has its name.
        assert not re.search(
            r'class="mp-tree-(room|whole)"[^>]*><text class="mp-tree-name"[^>]*>[^<]*</text></a>',
            response.text,
        )
    assert all(few < many / 2 for few, many in zip(*heights, strict=True))


async def test_three_hundred_wings_are_readable(tmp_path, make_datasette):
    path = tmp_path / "palace.db"
    with Palace.create(path) as palace:
        put_drawers(palace, [Drawer(f"text {n}", wing=f"wing {n}", room="room") for n in range(300)])
        palace.checkpoint()
    datasette = make_datasette(path)
    response = await datasette.client.get(PALACE)
    page = Page(response.text)
    names = re.findall(r'class="mp-tree-name"[^>]*>([^<]+)', response.text)
    assert "260 more wings, 260 drawers" in names
    assert len(names) < 90
    more = next(href for href, title in page.titled.items() if title == "260 more wings, 260 drawers")
    assert "300 wings" in (await get(datasette, more)).text


# Wings, rooms and other parts


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_a_wing_of_any_name_has_a_page_and_a_room_in_it(odd, name):
    found = await get_json(odd, f"{PALACE}/overview.json")
    wing = next(wing for wing in found["wings"] if wing["wing"] == name)
    page = await get(odd, wing["url"].removeprefix("http://localhost"))
    assert f"{wing['count']} drawer" in page.text
    room = next(room for room in wing["rooms"] if room["room"] == name)
    page = await get(odd, room["url"].removeprefix("http://localhost"))
    assert "1 drawer" in page.text
    assert page.with_class("mp-chip")


async def test_a_part_says_its_halls_and_authors_and_searches_within(tmp_path, make_datasette):
    path = tmp_path / "palace.db"
    with Palace.create(path) as palace:
        put_drawers(
            palace,
            [
                Drawer(
                    f"lamp {n}", wing="w", room=f"r{n % 2}", hall=f"hall {n % 3}", added_by=f"author {n % 4}"
                )
                for n in range(12)
            ],
        )
        palace.checkpoint()
    page = await get(make_datasette(path), f"{PALACE}?wing=w&hall__exact=hall+1")
    assert "4 drawers where wing is w and hall is hall 1" in page.text
    assert page.fields["wing"] == ["w"]
    author = page.link("author 1")
    assert query_of(author) == {"wing": ["w"], "hall__exact": ["hall 1"], "added_by__exact": ["author 1"]}
    assert "1 drawer" in (await get(make_datasette(path), author)).text


# Lists


@pytest.mark.parametrize("what", LISTS)
async def test_a_list_holds_every_drawer_once_on_page_json_and_csv(odd, what):
    found = await get_json(odd, f"{PALACE}/{what}.json")
    drawers = len(ODD_NAMES) + len(ODD_DATES)
    assert sum(row["count"] for row in found["rows"]) == found["drawers"] == drawers
    assert found["total"] == len(found["rows"])
    page = await get(odd, f"{PALACE}/{what}")
    assert len(page.with_class("mp-bar")) == found["total"]
    csv = (await odd.client.get(f"{PALACE}/{what}.csv")).text
    assert csv.startswith(",".join((*LISTS[what], "count", "first_filed", "last_filed")))
    for row in found["rows"]:
        shown = await get(odd, row["url"].removeprefix("http://localhost"))
        assert re.search(rf"\b{row['count']} drawers?\b", shown.text), row


async def test_a_list_is_read_page_by_page_within_its_part(served):
    seen, path = [], f"{PALACE}/rooms.json?n_results=1&wing=acme-app"
    while path:
        response = await served.client.get(path.removeprefix("http://localhost"))
        found = response.json()
        seen.append([row["room"] for row in found["rows"]])
        path = found["next_url"]
        assert response.headers.get("link") == (f'<{path}>; rel="next"' if path else None)
    assert seen == [["auth"], ["database"], ["deploy"]]


async def test_a_list_of_nothing_and_a_wrong_page(served):
    page = await get(served, f"{PALACE}/wings?wing=nope")
    assert "0 wings where wing is nope" in page.text
    response = await served.client.get(f"{PALACE}/wings.json?next=-1")
    assert (response.status_code, response.json()["ok"]) == (400, False)


# Timeline


async def test_dates_that_are_none_are_counted_apart_and_linked_where_a_url_can_say_it(odd):
    found = await get_json(odd, f"{PALACE}/timeline.json?wing=dates")
    assert (found["dated"], found["undated"], found["unreadable"]) == (2, 1, 4)
    assert found["counts"] == "drawers"
    # 01:00+02:00 is still April in UTC, as `since` and `before` have it.
    assert [(bucket["since"], bucket["count"]) for bucket in found["buckets"]] == [
        ("2026-04-30", 1),
        ("2026-05-01", 0),
        ("2026-05-02", 1),
    ]
    page = await get(odd, f"{PALACE}?wing=dates")
    assert "1 drawer where" in (await get(odd, page.link("1 without a date"))).text
    assert "4 with a date that cannot be read" in page.text


@pytest.mark.parametrize("query", ["", "q=token&"])
@pytest.mark.parametrize("column", ["filed_at", "authored_at", "content_date"])
async def test_a_bar_narrows_to_as_many_as_it_counts(make_datasette, palace_named, query, column):
    path = palace_named("palace.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "update drawers set authored_at = date(filed_at, '-400 days'), content_date = '2020-02-29'"
        )
    datasette = make_datasette(path)
    found = await get_json(datasette, f"{PALACE}/timeline.json?{query}date_column={column}")
    assert found["date_column"] == column
    assert found["dated"] > 20
    for bucket in [bucket for bucket in found["buckets"] if bucket["count"]][:4]:
        inside = query_of(bucket["url"])
        assert (inside["since"], inside["before"]) == ([bucket["since"]], [bucket["before"]])
        if not query:
            part = await get_json(
                datasette, bucket["url"].replace("http://localhost", "").replace("?", "/overview.json?")
            )
            assert part["drawers"] == bucket["count"]


async def test_a_bar_stays_within_the_window_that_is_in_force(served):
    found = await get_json(served, f"{PALACE}/timeline.json?since=2026-02-20T10:00:00&before=2026-09-03")
    first, last = found["buckets"][0], found["buckets"][-1]
    assert query_of(first["url"])["since"] == ["2026-02-20T10:00:00"]
    assert query_of(last["url"])["before"] == ["2026-09-03"]


@pytest.mark.parametrize("query", ["", "?wing=acme-app&date_column=authored_at", "?q=token"])
async def test_a_timeline_as_csv_has_the_buckets_of_the_json(served, query):
    found = await get_json(served, f"{PALACE}/timeline.json{query}")
    lines = (await served.client.get(f"{PALACE}/timeline.csv{query}")).text.splitlines()
    assert lines == ["since,before,count,url"] + [
        f"{bucket['since']},{bucket['before']},{bucket['count']},{bucket['url']}"
        for bucket in found["buckets"]
    ]
    page = await get(served, PALACE + query)
    assert not found["buckets"] or f"{PALACE}/timeline.csv{query}" in {href for href, _ in page.links}
    assert (await served.client.get(f"{PALACE}/timeline.csv?since=never")).status_code == 400


async def test_the_search_page_counts_its_candidates(served):
    answer = await get_json(served, f"{PALACE}.json?q=token")
    timeline = answer["timeline"]
    assert timeline["dated"] + timeline["undated"] == answer["candidates"]
    page = await get(served, f"{PALACE}?q=token")
    assert f"{timeline['dated']} candidates in each" in page.text
    bar = next(href for href, title in page.titled.items() if title.endswith(" candidates"))
    assert query_of(bar)["q"] == ["token"]
    assert "since" in query_of(bar)
    assert "timeline" not in await get_json(served, f"{PALACE}.json?q=token&facets=0")


# Sources


async def test_a_source_is_read_whole_over_its_parts_with_every_overlap_once(tmp_path, make_datasette):
    text = long_source(tmp_path / "palace.db", 60)
    datasette = make_datasette(tmp_path / "palace.db")
    read = ""
    path = f"{PALACE}/source.json?{urlencode({'source_file': '/books/long one?.md'})}"
    numbers = []
    while path:
        found = await get_json(datasette, path)
        html = await get(datasette, path.replace("source.json", "source"))
        for part in found["parts"]:
            read += part["text"][part["shared"] :]
            numbers.append(part["number"])
        assert len(html.with_class("mp-part")) == len(found["parts"]) <= PART
        path = found["next_url"] and found["next_url"].removeprefix("http://localhost")
    assert numbers == list(range(1, found["drawers"] + 1))
    assert len(numbers) > PART
    assert "".join(read.split()) == "".join(text.split())
    assert [entry["heading"] for entry in found["outline"]] == [f"Chapter {n}" for n in range(60)]


async def test_the_outline_leads_to_the_drawer_of_its_heading(tmp_path, make_datasette):
    long_source(tmp_path / "palace.db", 60)
    datasette = make_datasette(tmp_path / "palace.db")
    page = await get(datasette, f"{PALACE}/source?{urlencode({'source_file': '/books/long one?.md'})}")
    href = next(href for href, said in page.links if said.endswith("Chapter 50"))
    there = await datasette.client.get(href.partition("#")[0])
    anchor = href.partition("#")[2]
    section = there.text.partition(f'id="{anchor}"')[2].partition("</section>")[0]
    assert "# Chapter 50\n" in section


async def test_a_drawer_of_a_source_that_is_very_long_is_cut_with_a_link(tmp_path, make_datasette):
    path = tmp_path / "palace.db"
    with Palace.create(path) as palace:
        put_drawers(palace, [Drawer("long " * 20_000, drawer_id="the/one", source_file="s")])
        palace.checkpoint()
    page = await get(make_datasette(path), f"{PALACE}/source?source_file=s")
    assert "and 60,000 more characters" in page.text
    assert page.link("on the page of this drawer") == f"{PALACE}/drawer/the~2Fone"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("source_file=", 400),
        ("source_file=a&source_file=b", 400),
        ("source_file=a&next=x", 400),
        ("source_file=nope", 404),
    ],
)
async def test_what_is_no_source_is_said(served, query, status):
    response = await served.client.get(f"{PALACE}/source.json?{query}")
    assert response.status_code == response.json()["status"] == status
    assert "source_file" in response.json()["error"] or "next" in response.json()["error"]
    assert (await served.client.get(f"{PALACE}/source?{query}")).status_code == status


# Topics


@pytest.mark.parametrize(
    "text", ["Naming and binding", "The “match” statement", "東京の会議", "Über Türme", "HTTP caching"]
)
def test_titles_are_topics(text):
    assert good_topic(text)


@pytest.mark.parametrize(
    "text",
    [
        "os.makedirs(name, mode=511)", "argparse.Action", "deliver", "and then he went away", "Introduction", "__init__",
        "a", "", "Table of contents", "The first line ends here,", "see https://example.com", "x" * 200, "2026", "==== ",
        "Ends in the mid…",
    ],
)  # fmt: skip
def test_code_fragments_and_common_names_are_none(text):
    assert not good_topic(text)


async def test_topics_come_from_closets_else_from_headings_and_are_searches(tmp_path, make_datasette, served):
    page = await get(served, PALACE)
    asks = await get_json(served, f"{PALACE}/overview.json")
    assert asks["topics"]
    for topic in asks["topics"]:
        assert query_of(page.link(topic)) == {"q": [topic]}
    path = tmp_path / "palace.db"
    with Palace.create(path) as palace:
        put_drawers(
            palace, [Drawer("text", source_file="a.md", chunk_index=0, metadata={"heading": "Lamps at sea"})]
        )
        assert holdings(palace, scope_of(palace))["topics"] == ["Lamps at sea"]


async def test_a_room_shows_its_topics_each_with_the_drawer_it_points_to(tmp_path, make_datasette):
    path = tmp_path / "palace.db"
    with Palace.create(path) as palace:
        text = "# Lamps at sea\n\nA lamp.\n"
        put_source(palace, Source("/n/light.md", text, wing="coast", room="lights"))
        put_drawers(palace, [Drawer("other", wing="coast", room="bare", source_file="/n/b.md")])
        with palace.writer() as connection:
            connection.execute(
                "insert into closets (closet_id, source_file, text) values ('c', '/n/light.md', ?)",
                ["Ships gone by|Ship|→drawer_gone\nshort|x|→\nno pointer at all"],
            )
    datasette = make_datasette(path)
    (source,) = (await get_json(datasette, f"{PALACE}/overview.json?wing=coast&room=lights"))["source_topics"]
    page = await get(datasette, f"{PALACE}?wing=coast&room=lights")
    assert (source["source_path"], source["source_file"]) == ("/n/light.md", "light.md")
    lamps, ships = source["topics"]
    assert lamps["text"] == "Lamps at sea"
    assert ships == {"text": "Ships gone by", "drawer_id": None, "url": None}
    assert (await get_json(datasette, urlsplit(lamps["url"]).path + ".json"))["drawer"]["id"] == 1
    assert urlsplit(lamps["url"]).path in [href for href, said in page.links if said == "Lamps at sea"]
    bare = await get(datasette, f"{PALACE}?wing=coast&room=bare")
    assert "Topics" in page.text
    assert "Topics" not in bare.text


# What it costs


PARTS = [
    {},
    {"wing": "acme-app"},
    {"wing": "acme-app", "room": "auth"},
    {"room": "auth"},
    {"wing__isnull": "1"},
    {"since": "2026-02-01", "before": "2026-06-01"},
    {"wing": "acme-app", "since": "2026-02-01", "date_column": "authored_at"},
    {"added_by__exact": "anna"},
]
READS = [
    holdings,
    timeline_of,
    *(lambda palace, scope, what=what: list_values(palace, what, scope, 100, 0) for what in LISTS),
]


@pytest.fixture
def statements(monkeypatch):
    """Every statement that a palace's readers run, as it was run."""
    run = []
    connect = Connections._connect_reader

    def traced(self):
        connection = connect(self)
        connection.set_trace_callback(run.append)
        return connection

    monkeypatch.setattr(Connections, "_connect_reader", traced)
    return run


@pytest.mark.parametrize("part", PARTS, ids=json.dumps)
def test_nothing_is_counted_from_the_drawers_themselves(palace_path, statements, part):
    """Only what is bounded by a limit or by ids may be looked up row by row; all else is read from covering indexes."""
    with Palace.open(palace_path) as palace, closing(sqlite3.connect(palace_path)) as explaining:
        for read in READS:
            statements.clear()
            read(palace, scope_of(palace, **part))
            assert 1 < len(statements) <= STATEMENTS
            for statement in statements:
                bounded = re.search(r"limit \d|where id in", statement) and "group by" not in statement
                if bounded or " drawers" not in statement:
                    continue
                plan = [row[3] for row in explaining.execute(f"explain query plan {statement}")]
                touching = [line for line in plan if re.search(r"\bdrawers\b", line)]
                assert all("COVERING INDEX" in line for line in touching), (statement, plan)


@pytest.mark.parametrize(
    "path",
    ["", "?wing=acme-app", "/rooms", "/sources", "/timeline.json", "/source?source_file=/notes/guide.md"],
)
async def test_a_page_takes_a_handful_of_statements_and_few_when_nothing_has_changed(
    make_datasette, palace_path, statements, path
):
    with Palace.open(palace_path) as palace:
        palace.checkpoint()
    served = make_datasette(immutables=[str(palace_path)])  # so that nothing is embedded meanwhile
    await served.client.get(f"{PALACE}{path}")
    statements.clear()
    await served.client.get(f"{PALACE}{path}")
    assert 1 < len(statements) <= 14
    assert len([text for text in statements if "drawers" in text]) <= 4


async def test_what_is_kept_is_forgotten_with_any_change(make_datasette, palace_named):
    path = palace_named("palace.db")
    datasette = make_datasette(path)
    before = await get_json(datasette, f"{PALACE}/overview.json")
    with closing(sqlite3.connect(path)) as connection, connection:  # as any other program
        connection.execute("insert into drawers (text, wing) values ('new', 'acme-app')")
    after = await get_json(datasette, f"{PALACE}/overview.json")
    assert after["drawers"] == before["drawers"] + 1
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("insert or replace into drawers (id, text, wing) values (1, 'other', 'moved')")
    moved = await get_json(datasette, f"{PALACE}/overview.json")
    assert moved["drawers"] == after["drawers"]
    assert "moved" in {wing["wing"] for wing in moved["wings"]}


async def test_what_is_kept_stays_while_only_vectors_change(tmp_path, statements):
    path = tmp_path / "palace.db"
    with Palace.create(path) as palace:
        put_drawers(palace, [Drawer("text", wing="w")])
        scope = scope_of(palace)
        kept = holdings(palace, scope)
        with palace.writer() as connection:
            connection.execute("insert into drawer_vectors (id, vector, text_hash) values (1, x'00', 'h')")
        assert holdings(palace, scope) is kept
        with palace.writer() as connection:
            connection.execute("update drawers set wing = 'v'")
        assert holdings(palace, scope)["wings"][0]["wing"] == "v"


async def test_without_its_index_the_page_is_only_slower(make_datasette, palace_named):
    path = palace_named("palace.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("drop index idx_drawers_places")
        connection.execute("drop index idx_drawers_filed_at_moment")
    datasette = make_datasette(path)
    assert (await get_json(datasette, f"{PALACE}/overview.json?wing=acme-app"))["drawers"] == 42
    assert (await get_json(datasette, f"{PALACE}/overview.json?since=2000-01-01"))["drawers"] > 42
