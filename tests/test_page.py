"""The search page: every state a person can come to, followed by its links."""

import re
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from conftest import LONG, ODD_WINGS
from datasette_mempalace.compat import IS_ONE, settings_error
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.palace import Palace
from datasette_mempalace.registry import is_palace_database
from pages import Page

PALACE = "/palace/-/mempalace"


async def get(datasette, path, status=200, **options):
    """The page at a path, which must answer with this status."""
    response = await datasette.client.get(path, **options)
    assert response.status_code == status, f"{path}: {response.status_code} {response.text[:400]}"
    return Page(response.text)


def query_of(href):
    return parse_qs(urlsplit(href).query)


async def test_overview_counts_and_lists(served):
    page = await get(served, PALACE)
    assert re.search(r"\d+ drawers in \d+ wings", page.text)
    assert "Wings and rooms" in page.text
    assert "Lately filed" in page.text
    assert page.link("acme-app") == f"{PALACE}?wing=acme-app"
    assert "no wing" in page.text
    assert any(tag == "input" and given.get("name") == "q" for tag, given in page.items)


@pytest.mark.parametrize("wing", ODD_WINGS)
async def test_wing_links_of_the_overview_narrow_it(served, wing):
    page = await get(served, PALACE)
    href = next(href for href, said in page.links if said == wing and "room" not in query_of(href))
    assert query_of(href) == {"wing": [wing]}
    narrowed = await get(served, href)
    assert (
        f"1 drawer where wing is {wing}" in narrowed.text or "2 drawers where wing is 日本語" in narrowed.text
    )
    assert narrowed.fields["wing"] == [wing]


async def test_hits_in_the_order_of_the_json(served):
    query = urlencode({"q": "signing a login token", "n_results": 20})
    page = await get(served, f"{PALACE}?{query}")
    answer = (await served.client.get(f"{PALACE}.json?{query}")).json()
    assert page.hit_ids == [hit["id"] for hit in answer["results"]]
    assert len(page.hit_ids) == 20
    assert f"{answer['candidates']} candidate drawers for “signing a login token”" in page.text
    assert f"Of {answer['in_scope']} drawers in scope" in page.text


async def test_a_hit_has_title_place_day_mark_and_leads_to_its_row(served):
    page = await get(served, f"{PALACE}?q=password+login&wing=acme-app&room=auth&since=2026-02-01")
    assert "Auth in practice" in page.text
    assert re.search(r"auth\.md, chunk \d+ of 14", page.text)
    assert re.search(r"filed \d+ [A-Z][a-z]{2} 2026", page.text)
    assert any(tag == "mark" for tag, _ in page.items)
    row = next(href for href, said in page.links if said == "Auth in practice")
    assert "password" in (await get_text(served, row))


async def get_text(datasette, path):
    response = await datasette.client.get(path)
    assert response.status_code == 200, path
    return response.text


async def test_drawer_text_is_never_markup(served):
    response = await served.client.get(f"{PALACE}?q=token+markup&wing=markup")
    assert "<script>alert" not in response.text
    assert "<img src=x" not in response.text
    assert "<u>heading" not in response.text
    assert "<i>room" not in response.text
    page = Page(response.text)
    assert "<u>heading</u> & token" in page.text
    assert "<script>alert('token')</script>" in page.text


async def test_no_script_no_handlers_no_inline_style_of_our_own(served):
    page = await get(served, f"{PALACE}?q=token")
    assert not [tag for tag, _ in page.items if tag in ("script", "style")]
    assert not [given for _, given in page.items if any(name.startswith("on") for name in given)]
    assert not [given for _, given in page.items if "style" in given]
    assert page.with_class("mp-colour"), "the database's colour is drawn"


@pytest.mark.parametrize("wing", ODD_WINGS)
async def test_odd_wings_filter_search(served, wing):
    page = await get(served, f"{PALACE}?{urlencode({'q': 'token', 'wing': wing})}")
    answer = (await served.client.get(f"{PALACE}.json?{urlencode({'q': 'token', 'wing': wing})}")).json()
    assert answer["results"]
    assert {hit["wing"] for hit in answer["results"]} == {wing}
    assert f"where wing is {wing}" in page.text
    chip = page.with_class("mp-chip")[0]["href"]
    assert query_of(chip) == {"q": ["token"]}


async def test_drawers_without_a_wing(served):
    page = await get(served, f"{PALACE}?q=token&wing__isnull=1")
    assert page.text.count("no wing") >= 2
    assert "wing is not set" in page.text
    assert page.fields["wing__isnull"] == ["1"]
    assert len(page.hit_ids) == 1


async def test_facets_are_toggled_one_by_one_and_several_at_once(served):
    page = await get(served, f"{PALACE}?q=token")
    boxes = page.with_class("mp-value")
    first = next(box["href"] for box in boxes if query_of(box["href"]).get("wing") == ["acme-app"])
    chosen = await get(served, first)
    other = next(
        box["href"]
        for box in chosen.with_class("mp-value")
        if "acme_app" in query_of(box["href"]).get("wing", [])
    )
    both = await get(served, other)
    assert both.fields["wing"] == ["acme-app", "acme_app"]
    assert "where wing is acme-app or acme_app" in both.text
    current = [box for box in both.with_class("mp-value") if box.get("aria-current") == "true"]
    assert len(current) == 2
    assert query_of(current[0]["href"])["wing"] == ["acme_app"]


async def test_every_filter_is_a_chip_that_can_be_removed(served):
    state = {
        "q": "token", "wing": "acme-app", "room": "auth", "source_file": "/notes/acme/auth.md",
        "since": "2026-01-01", "before": "2027-01-01", "max_distance": "1.5",
    }  # fmt: skip
    page = await get(served, f"{PALACE}?{urlencode(state)}")
    chips = page.with_class("mp-chip")
    assert len(chips) == 6
    left = [set(state) - set(query_of(chip["href"])) for chip in chips]
    assert left == [{"wing"}, {"room"}, {"source_file"}, {"since"}, {"before"}, {"max_distance"}]
    assert query_of(page.link("Clear all")) == {"q": ["token"]}
    for name, value in state.items():
        assert page.fields[name] == [value]


async def test_options_keep_their_values(served):
    state = {"q": "token", "candidate_strategy": "vector", "ranking": "mempalace", "n_results": "7"}
    page = await get(served, f"{PALACE}?{urlencode(state)}")
    assert page.fields["candidate_strategy"] == ["vector"]
    assert page.fields["ranking"] == ["mempalace"]
    assert page.fields["n_results"] == [None]  # an option without a value says its text
    assert len(page.hit_ids) == 7
    next_page = query_of(next(href for href, said in page.links if said == "Next page"))
    assert next_page.pop("next") == ["7"]
    assert next_page == {name: [value] for name, value in state.items()}


async def test_paging_shows_nothing_twice_and_leads_back(served):
    page = await get(served, f"{PALACE}?q=token")
    assert "hits 11 to 20" in page.text
    second = await get(served, page.link("Next page"))
    assert len(second.hit_ids) == 10
    assert not set(page.hit_ids) & set(second.hit_ids)
    assert ("ol", "11") in [(tag, given.get("start")) for tag, given in second.items]
    assert second.link("First page") == f"{PALACE}?q=token"


async def test_many_hits_of_one_source_in_a_row_are_folded_with_their_ranks(tmp_path, make_datasette):
    path = tmp_path / "palace.db"
    with Palace.create(path) as palace:
        long = [Drawer("lamp " * (9 - n), source_file="long.md", chunk_index=n) for n in range(6)]
        put_drawers(palace, [*long, Drawer("lamp and many other words", source_file="other.md")])
    datasette = make_datasette(path)
    search = "q=lamp&vector_disabled=1&n_results=20"
    hits = (await datasette.client.get(f"{PALACE}.json?{search}")).json()["results"]
    assert [hit["source_file"] for hit in hits] == ["long.md"] * 6 + ["other.md"]
    page = await get(datasette, f"{PALACE}?{search}")
    assert "3 more of long.md, ranks 4 to 6" in page.text
    assert [given["id"] for given in page.with_class("mp-hit")] == [f"drawer-{hit['id']}" for hit in hits]
    alone = await get(datasette, f"{PALACE}?{search}&source_file=long.md")
    assert "more of" not in alone.text


async def test_copies_are_folded_and_linked(served):
    page = await get(served, f"{PALACE}?{urlencode({'q': LONG[:60]})}")
    assert "1 copy folded" in page.text
    assert "Same text in" in page.text


async def test_the_sum_of_a_rank_adds_up_as_printed(served):
    page = await get(served, f"{PALACE}?q=rolled+out+container&n_results=20")
    sums = re.findall(
        r"meaning [\d.]+ × similarity [\d.]+ ([\d.]+) words [\d.]+ × BM25 [\d.]+ ÷ best [\d.]+ ([\d.]+) score ([\d.]+)",
        page.text,
    )
    assert len(sums) == 20
    for meaning, words, score in sums:
        assert round(float(meaning) + float(words), 3) == float(score)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"n_results": "0"}, "n_results: '0' is not allowed"),
        ({"n_results": "abc"}, "n_results: 'abc' is not allowed"),
        ({"since": "yesterday"}, "since: 'yesterday' is not allowed"),
        ({"since": "2026-05-01", "before": "2026-04-01"}, "since: '2026-05-01' is not allowed"),
        ({"max_distance": "far"}, "max_distance: 'far' is not allowed"),
        ({"candidate_strategy": "magic"}, "candidate_strategy: 'magic' is not allowed"),
    ],
)
async def test_what_cannot_be_used_is_said_and_the_form_is_kept(served, parameters, said):
    state = {"q": "token", "wing": "acme-app", **parameters}
    page = await get(served, f"{PALACE}?{urlencode(state)}", status=400)
    assert said in page.text
    assert page.with_class("message-error")
    assert page.fields["q"] == ["token"]
    assert page.fields["wing"] == ["acme-app"]
    wrong = [given for _, given in page.items if given.get("aria-invalid") == "true"]
    assert [given["name"] for given in wrong] == [said.split(":")[0]]
    for name in {"since", "before", "max_distance"} & set(parameters):
        assert page.fields[name] == [parameters[name]]


async def test_an_empty_palace_says_how_to_fill_it(make_datasette, empty_path):
    datasette = make_datasette(empty_path)
    page = await get(datasette, "/empty/-/mempalace")
    assert "This palace is empty" in page.text
    assert "datasette mempalace mine empty.db FOLDER" in page.text
    nothing = await get(datasette, "/empty/-/mempalace?q=token")
    assert "0 drawers for “token”" in nothing.text
    assert "The palace is empty" in nothing.text


async def test_no_match_offers_near_words_and_each_filter_to_drop(served):
    query = urlencode({"q": "pasword tokn", "vector_disabled": "1", "room": "auth", "wing": "acme-app"})
    page = await get(served, f"{PALACE}?{query}")
    assert "0 drawers for “pasword tokn” where wing is acme-app and room is auth" in page.text
    assert query_of(page.link("password token"))["q"] == ["password token"]
    assert query_of(page.link("Search without the wing acme-app"))["room"] == ["auth"]
    by_meaning = {href for href, said in page.links if said == "Search by meaning too"}
    assert [set(query_of(href)) for href in by_meaning] == [{"q", "wing", "room"}]
    assert (await get(served, page.link("password token"))).hit_ids


async def test_a_wing_that_does_not_exist_brings_its_neighbours(served):
    page = await get(served, f"{PALACE}?q=token&wing=Acme-App")
    assert "There is no wing Acme-App" in page.text
    assert query_of(page.link("acme-app"))["wing"] == ["acme-app"]


async def test_a_wing_that_is_like_none_is_said_not_to_be_there(served):
    page = await get(served, f"{PALACE}?q=token&wing=qqqq")
    assert "There is no wing qqqq." in page.text
    assert "No drawer has the word" not in page.text


async def test_a_misspelt_word_brings_its_neighbours_above_the_hits_too(served):
    page = await get(served, f"{PALACE}?q=tokne+zzyzx")
    assert page.hit_ids
    assert "No drawer has the word tokne. Did you mean token" in page.text
    assert "zzyzx. Did" not in page.text
    assert query_of(page.link("token"))["q"] == ["token zzyzx"]


async def test_a_closet_is_named_only_where_it_had_a_part(served):
    page = await get(served, f"{PALACE}?q=lighthouse+keeper+lamp")
    assert "A closet of this source matched" in page.text
    assert "It adds nothing to the score." in page.text
    assert "lifted by a closet" not in page.text
    chosen = await get(served, f"{PALACE}?q=lighthouse+keeper+lamp&candidate_strategy=vector")
    assert "lifted by a closet" in chosen.text
    assert "while candidates were chosen it counted as distance" in chosen.text


async def test_words_only_on_request(served):
    page = await get(served, f"{PALACE}?q=token&vector_disabled=1")
    assert "Words only." in page.text
    assert page.with_class("message-info")
    assert page.with_class("mp-scores--words")
    assert page.fields["vector_disabled"] == ["1"]
    assert query_of(page.link("Search by meaning too")) == {"q": ["token"]}


async def test_words_only_because_vectors_are_missing_warns(make_datasette, palace_named):
    import sqlite3

    path = palace_named("unembedded.db")
    with sqlite3.connect(path) as connection:
        connection.execute("delete from drawer_vectors")
    connection.close()
    # Read-only, so that the keeper does not make the vectors again.
    datasette = make_datasette(immutables=[str(path)])
    page = await get(datasette, "/unembedded/-/mempalace?q=token")
    assert page.with_class("message-warning")
    assert "Ranked by BM25, because" in page.text
    assert page.hit_ids


async def test_every_link_of_the_pages_works(served):
    seen = set()
    for path in (PALACE, f"{PALACE}?q=token&n_results=50&since=2026-01-01", f"{PALACE}?q=zzzzzz&wing=nope"):
        page = await get(served, path)
        for href, said in page.links:
            if href.startswith("#") or href in seen:
                continue
            seen.add(href)
            response = await served.client.get(href)
            assert response.status_code == 200, f"{said!r} of {path} leads to {href}: {response.status_code}"
    assert len(seen) > 100


async def test_links_have_the_base_url(make_datasette, palace_path):
    datasette = make_datasette(palace_path, settings={"base_url": "/data/"})
    page = await get(datasette, f"{PALACE}?q=token")
    assert page.hit_ids
    for href, said in page.links:
        if not href.startswith("#"):
            assert href.startswith("/data/palace"), f"{said}: {href}"
            assert not href.startswith("/data/data"), f"{said}: {href}"
    form = next(given for tag, given in page.items if tag == "form")
    assert form["action"] == "/data/palace/-/mempalace"
    assert (await get(datasette, page.link("Next page").removeprefix("/data"))).hit_ids


@pytest.mark.parametrize("name", ["my.palace é", "a b+c~d", "100%"])
async def test_database_names_of_every_kind(make_datasette, palace_named, name):
    datasette = make_datasette(palace_named(f"{name}.db"))
    home = await datasette.client.get("/-/mempalace")
    assert home.status_code == 302
    page = await get(datasette, f"{home.headers['location']}?q=token")
    assert page.hit_ids
    row = next(href for href, _ in page.links if "/-/mempalace/drawer/" in href)
    assert (await datasette.client.get(row)).status_code == 200
    assert (await get(datasette, page.link("Next page"))).hit_ids


async def test_sql_link_gives_the_same_hits(served):
    page = await get(
        served, f"{PALACE}?{urlencode({'q': 'token', 'wing': ODD_WINGS[:3], 'since': '2026-01-01'}, True)}"
    )
    href = page.link("✎ View and edit SQL")
    path, _, query = href.partition("?")
    response = await served.client.get(f"{path}.json?{query}&_shape=array")
    assert response.status_code == 200, response.text
    assert [row["id"] for row in response.json()] == page.hit_ids


async def test_index_of_several_and_of_none(make_datasette, palace_path, empty_path):
    page = await get(make_datasette(palace_path, empty_path), "/-/mempalace")
    assert [said for _, said in page.links if said in ("palace", "empty")] == ["palace", "empty"]
    page = await get(make_datasette(), "/-/mempalace")
    assert "No memory palace here" in page.text


async def test_index_goes_straight_to_the_only_palace(served):
    response = await served.client.get("/-/mempalace?q=token")
    assert response.status_code == 302
    assert response.headers["location"] == f"{PALACE}?q=token"


async def test_no_such_database_and_no_palace(make_datasette, palace_path, tmp_path):
    import sqlite3

    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("create table t(x)")
    connection.close()
    datasette = make_datasette(palace_path, other)
    assert (await datasette.client.get("/nope/-/mempalace")).status_code == 404
    response = await datasette.client.get("/other/-/mempalace")
    assert response.status_code == 404
    assert "datasette mempalace init other.db" in response.text
    menu = (await datasette.client.get("/other")).text
    assert "Search this memory palace" not in menu


@pytest.mark.parametrize("extension", ["", ".json", ".csv"])
@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
async def test_only_reading_is_allowed(served, method, extension):
    response = await getattr(served.client, method)(f"{PALACE}{extension}?q=token")
    assert response.status_code == 405
    assert "GET" in response.headers["allow"]


async def test_an_address_that_leads_nowhere_says_what_there_is(served):
    for base, there in ((PALACE, f"{PALACE} there are wings, rooms"), ("/-/mempalace", "/-/mempalace/mcp")):
        response = await served.client.get(f"{base}/no/such<b>")
        assert response.status_code == 404
        assert "There is no page no/such" in response.text
        assert there in response.text
        assert "<b>" not in response.text
        error = (await served.client.get(f"{base}/nope.json")).json()
        assert (error["ok"], error["status"], error["title"]) == (False, 404, "Page not found")
        assert there in error["error"]
    assert "q" not in (await get(served, f"{PALACE}/nope", 404)).fields
    slash = await served.client.get(f"{PALACE}/rooms/")
    assert (slash.status_code, slash.headers["location"]) == (302, f"{PALACE}/rooms")


async def test_head_has_no_body(served):
    response = await served.client.head(f"{PALACE}?q=token")
    assert response.status_code == 200
    assert response.text == ""


@pytest.mark.skipif(not IS_ONE, reason="0.65 has no slot on its database page")
async def test_the_database_page_has_a_search_box_for_whoever_may_see_the_palace(make_datasette, palace_path):
    form = f'action="{PALACE}" method="get" role="search"'
    assert form in (await make_datasette(palace_path).client.get("/palace")).text
    allow = {"databases": {"palace": {"tables": {"drawers": {"allow": {"id": "anna"}}}}}}
    stranger = (await make_datasette(palace_path, config=allow).client.get("/palace")).text
    assert "Custom SQL query" in stranger
    assert 'role="search"' not in stranger


@pytest.mark.skipif(not IS_ONE, reason="0.65 has no place for it")
async def test_the_front_page_has_a_search_box_for_whoever_may_see_the_palace(
    make_datasette, palace_path, empty_path
):
    datasette = make_datasette(palace_path, empty_path)
    html = (await datasette.client.get("/")).text
    assert f'action="{PALACE}"' in html
    assert 'action="/empty/-/mempalace"' in html
    closed = make_datasette(palace_path, config={"databases": {"palace": {"allow": {"id": "root"}}}})
    assert PALACE not in (await closed.client.get("/")).text


async def test_links_from_datasettes_own_pages(served):
    assert f'href="{PALACE}"' in (await served.client.get("/")).text
    assert f'<a href="{PALACE}"' in (await served.client.get("/palace")).text
    table = (await served.client.get("/palace/drawers")).text
    assert table.count(f'href="{PALACE}"') >= 2
    assert "Search this memory palace" not in (await served.client.get("/palace/closets")).text


async def test_title_comes_from_settings_else_metadata(make_datasette, palace_path):
    config = {"plugins": {"datasette-mempalace": {"title": "My notes", "warm_up": False}}}
    page = await get(make_datasette(palace_path, config=config), PALACE)
    assert page.text.startswith("Skip to the wings My notes")
    titled = {"databases": {"palace": {"title": "Of the metadata"}}}
    page = await get(
        make_datasette(palace_path, **({"metadata": titled} if IS_ONE else {"config": titled})), PALACE
    )
    assert "Of the metadata" in page.text


async def test_style_sheet_is_served(served):
    html = (await served.client.get(PALACE)).text
    href = re.search(r'href="([^"]*mempalace\.css[^"]*)"', html).group(1)
    response = await served.client.get(href)
    assert response.status_code == 200
    assert "text/css" in response.headers["content-type"]


async def test_a_misspelt_setting_stops_the_start(make_datasette, palace_path):
    datasette = make_datasette(palace_path, config={"plugins": {"datasette-mempalace": {"rankng": "palace"}}})
    with pytest.raises(type(settings_error("")), match="did you mean ranking"):
        await datasette.invoke_startup()


async def test_a_damaged_database_is_no_palace(make_datasette, tmp_path):
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database at all" * 500)
    datasette = make_datasette(broken)
    assert not await is_palace_database(datasette, datasette.get_database("broken"))


async def test_a_request_path_of_another_encoding_is_no_error(served):
    assert (await served.client.get(f"/{quote('pal ace')}/-/mempalace")).status_code == 404


# Column filters and dates of other columns

FILTERED = {
    "q": "token", "hall__in": "0,1,2,3,4", "text__contains": "wing called", "room__not": ["x", "y"],
    "metadata.heading__isnull": "1", "n_results": "2",
}  # fmt: skip


async def test_column_filters_are_chips_that_can_be_removed_one_by_one(served):
    page = await get(served, f"{PALACE}?{urlencode(FILTERED, doseq=True)}")
    assert len(page.hit_ids) == 2
    assert "where hall is one of 0, 1, 2, 3, 4, text contains wing called, room is not x" in page.text
    assert "metadata.heading is not set" in page.text
    chips = [query_of(chip["href"]) for chip in page.with_class("mp-chip")]
    assert len(chips) == 5
    every = {"hall__in", "text__contains", "room__not", "metadata.heading__isnull"}
    assert [every - set(chip) for chip in chips] == [
        {"hall__in"}, {"text__contains"}, set(), set(), {"metadata.heading__isnull"},
    ]  # fmt: skip
    assert [chip.get("room__not") for chip in chips] == [["x", "y"], ["x", "y"], ["y"], ["x"], ["x", "y"]]
    assert query_of(page.link("Clear all")) == {"q": ["token"]}


async def test_column_filters_survive_form_paging_and_facets(served):
    page = await get(served, f"{PALACE}?{urlencode(FILTERED, doseq=True)}")
    for name, value in FILTERED.items():
        if name not in ("q", "n_results"):
            assert page.fields[name] == ([value] if isinstance(value, str) else value)
    following = query_of(page.link("Next page"))
    facet = query_of(page.with_class("mp-value")[0]["href"])
    for state in (following, facet):
        assert state["text__contains"] == ["wing called"]
        assert state["room__not"] == ["x", "y"]
        assert state["hall__in"] == ['["0", "1", "2", "3", "4"]']
    again = await get(served, page.link("Next page"))
    assert again.hit_ids
    assert not set(again.hit_ids) & set(page.hit_ids)
    overview = await get(served, f"{PALACE}?hall__in=0,1")
    assert "2 drawers where hall is one of 0, 1" in overview.text


async def test_fields_of_hall_and_author_hold_their_filter(served):
    page = await get(
        served,
        f"{PALACE}?{urlencode({'q': 'token', 'hall': '1', 'hall__exact': '2', 'added_by__exact': 'anna'}, True)}",
    )
    assert page.fields["hall__exact"] == ["2", "1"]  # one hidden, one to be changed
    assert page.fields["added_by__exact"] == ["anna"]
    page = await get(served, f"{PALACE}?q=token&hall__exact=&added_by__exact=&date_column=filed_at")
    assert len(page.hit_ids) == 10
    assert page.with_class("mp-chip") == []


def dropped(page):
    """The states that a page without hits leads to, one for each filter."""
    return [query_of(href) for href, said in page.links if said.startswith("Search without")]


async def test_dates_of_another_column(served):
    state = {"q": "token", "since": "2026-02-01", "before": "2027-02-01", "date_column": "authored_at"}
    page = await get(served, f"{PALACE}?{urlencode(state)}")
    assert page.fields["date_column"] == ["authored_at"]
    assert "written since 1 Feb 2026" in page.text
    # No sample drawer has such a date, so the page offers each filter to drop.
    without_since, without_before = dropped(page)
    assert (without_since["date_column"], "since" in without_since) == (["authored_at"], False)
    last = await get(served, f"{PALACE}?q=token&since=2026-02-01&date_column=authored_at")
    assert dropped(last) == [{"q": ["token"]}]
    assert without_before["since"] == ["2026-02-01"]


@pytest.mark.parametrize(
    "state",
    [
        {"wing": ODD_WINGS, "hall__in": "0,1,2,3", "n_results": 3, "next": 1},
        {"n_results": 7, "next": 14},
        {"source_file": ["/notes/acme/auth.md", "/notes/<script>.html"], "source_file__isnull": 1, "max_distance": 1.2},
        {"since": "2026-02-01", "before": "2026-07-01T00:00:00", "date_column": "filed_at", "ranking": "mempalace"},
        {"room__not": ["auth", "deploy"], "metadata.heading__notnull": 1, "candidate_strategy": "vector"},
        {"wing__isnull": 1, "wing": "acme_app", "vector_disabled": 1, "explain": 1},
        {"ids": "1,2,3,40,41"},
    ],
)  # fmt: skip
async def test_sql_link_gives_the_hits_of_this_very_page(served, state):
    page = await get(served, f"{PALACE}?{urlencode({'q': 'login token', **state}, True)}")
    assert page.hit_ids
    path, _, query = page.link("✎ View and edit SQL").partition("?")
    response = await served.client.get(f"{path}.json?{query}&_shape=array")
    assert response.status_code == 200, response.text
    assert [row["id"] for row in response.json()] == page.hit_ids
    assert response.json()[0]["rank"] == int(state.get("next", 0)) + 1


async def test_why_this_rank_says_where_a_hit_stood_before(served):
    page = await get(served, f"{PALACE}?q=login+token")
    assert re.search(
        r"Before the ranking: number \d+ of \d+ by meaning( and number \d+ of \d+ by words)?\.", page.text
    )
    page = await get(served, f"{PALACE}?q=login+token&vector_disabled=1")
    assert re.search(r"Before the ranking: number \d+ of \d+ by words\.", page.text)


async def test_all_hits_are_offered_where_there_are_more(served):
    page = await get(served, f"{PALACE}?q=token&wing=acme-app")
    assert query_of(page.link("all hits as CSV")) == {"q": ["token"], "wing": ["acme-app"], "all": ["1"]}
    assert page.link("all hits as NDJSON").startswith(f"{PALACE}.ndjson?")
    page = await get(served, f"{PALACE}?q=token&wing=markup")
    assert "all hits" not in page.text


@pytest.mark.parametrize("words", ["q=token&", ""])
async def test_a_misspelt_filter_is_named_and_one_link_mends_it(served, words):
    said = "Not known and not used: wnig. Did you mean wing?"
    page = await get(served, f"{PALACE}?{words}wnig=acme-app&_fields=x")
    assert said in page.text
    (mended,) = {href for href, text in page.links if text == "wing" and "wing=acme-app" in href}
    assert mended.startswith(f"{PALACE}?{words}wing=acme-app")
    assert "Not known" not in (await get(served, mended)).text
