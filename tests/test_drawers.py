"""The write side: what goes in comes out to the character, and filing again changes only what changed."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from building import column, make_palace, one
from datasette_mempalace.chunking import chunk
from datasette_mempalace.drawers import (
    Drawer,
    Report,
    Source,
    delete_drawers,
    put_drawers,
    put_source,
    remove_sources,
)
from datasette_mempalace.scope import Scope

ODD = ["", " ", "\x00", "a\x00b", "x" * 200_000, "مرحبا بالعالم", "東京の会議", "😀🏳️‍🌈", "<script>alert(1)</script>", "'; drop table drawers; --"]  # fmt: skip
LONG = "".join(f"Sentence number {number} of this long source stands here.\n\n" for number in range(80))


@pytest.fixture
def palace(tmp_path):
    with make_palace(tmp_path / "p.db") as palace:
        yield palace


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with make_palace(tmp_path_factory.mktemp("shared") / "p.db") as palace:
        yield palace


def source(text, **changes):
    return Source(
        **{
            "source_file": "/notes/a.md",
            "text": text,
            "wing": "w",
            "room": "r",
            "added_by": "mine",
            **changes,
        }
    )


@pytest.mark.parametrize("text", ODD)
def test_any_text_goes_in_and_comes_out_the_same(palace, text):
    put_drawers(palace, [Drawer(text, wing=text[:50] or None, room="r")])
    assert one(palace, "select text, wing from drawers") == (text, text[:50] or None)


@given(text=st.text(max_size=300), wing=st.none() | st.text(max_size=10))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_any_text_and_wing_come_out_but_for_lone_surrogates(shared, text, wing):
    report = put_drawers(shared, [Drawer(text, drawer_id="it", wing=wing)])
    stored = one(shared, "select text, wing from drawers where drawer_id = 'it'")
    lone = sum("\ud800" <= character <= "\udfff" for character in text + (wing or ""))
    if not lone:
        assert stored == (text, wing)
        assert report.replaced_characters == 0


def test_case_20_a_lone_surrogate_costs_that_character_and_no_row(palace):
    drawers = [Drawer(f"text {number}") for number in range(500)]
    drawers[2] = Drawer("bad \ud800 surrogate", metadata={"k": "\udc00"})
    report = put_drawers(palace, drawers)
    assert report == Report(added=500, replaced_characters=2)
    assert one(palace, "select count(*) from drawers where text = ?", "bad \ufffd surrogate") == (1,)


def test_a_drawer_gets_an_id_and_a_date(palace):
    put_drawers(palace, [Drawer("a text", wing="w")])
    drawer_id, filed_at = one(palace, "select drawer_id, filed_at from drawers")
    assert drawer_id.startswith("drawer_")
    assert filed_at[:2] == "20"


def test_putting_the_same_again_changes_nothing_not_even_the_date(palace):
    drawer = Drawer("a text", wing="w", metadata={"k": 1})
    put_drawers(palace, [drawer])
    before = one(palace, "select * from drawers"), one(palace, "select max(seq) from drawer_changes")
    assert put_drawers(palace, [drawer]) == Report(unchanged=1)
    assert (
        one(palace, "select * from drawers"),
        one(palace, "select max(seq) from drawer_changes"),
    ) == before


def test_putting_it_with_other_metadata_updates_it(palace):
    put_drawers(palace, [Drawer("a text", drawer_id="d")])
    assert put_drawers(palace, [Drawer("a text", drawer_id="d", metadata={"k": "é"})]) == Report(updated=1)
    assert json.loads(one(palace, "select metadata from drawers")[0]) == {"k": "é"}


def test_the_same_drawer_twice_in_one_batch_is_one_row(palace):
    report = put_drawers(palace, [Drawer("one", drawer_id="d"), Drawer("two", drawer_id="d")])
    assert (report.added, report.updated) == (1, 1)
    assert column(palace, "select text from drawers") == ["two"]


def test_a_source_becomes_drawers_that_hold_all_of_it(palace):
    report = put_source(palace, source("# Title\n\n" + LONG))
    rows = column(palace, "select text from drawers order by chunk_index")
    assert rows == [piece.text for piece in chunk("# Title\n\n" + LONG)]
    assert report.added == len(rows) > 3
    metadata = json.loads(one(palace, "select metadata from drawers where chunk_index = 1")[0])
    assert metadata["heading"] == "Title"
    assert metadata["line_start"] > 1
    assert one(palace, "select min(chunk_index), max(chunk_index) from drawers") == (0, len(rows) - 1)


def test_filing_a_source_again_keeps_what_did_not_change(palace):
    put_source(palace, source(LONG))
    ids = column(palace, "select id from drawers order by id")
    report = put_source(palace, source(LONG + "\n\nA last sentence that is new."))
    assert report.unchanged == len(ids) - 1
    assert (report.added, report.removed) == (1, 1)
    assert column(palace, "select id from drawers order by id")[: len(ids) - 1] == ids[:-1]


def test_a_source_that_moves_to_another_room_is_updated_in_place(palace):
    put_source(palace, source(LONG))
    ids = column(palace, "select id from drawers order by id")
    report = put_source(palace, source(LONG, room="other"))
    assert report.updated == len(ids)
    assert column(palace, "select id from drawers where room = 'other' order by id") == ids
    assert one(palace, "select distinct room from closets") == ("other",)


def test_a_drawer_that_only_shifts_keeps_its_date(palace):
    sections = [f"# Section {n}\n\n" + f"Words of section {n} that stay. " * 20 for n in range(5)]
    put_source(palace, source("\n\n".join(sections), filed_at="2026-01-01"))
    report = put_source(palace, source("\n\n".join(["# New\n\n" + "New words. " * 60, *sections])))
    dates = column(palace, "select filed_at from drawers order by chunk_index")
    assert dates[0] > "2026-01-01"
    assert dates[2:] == ["2026-01-01"] * 4
    assert report.updated >= 4, "their place in the source has changed"


def test_comments_of_source_code_are_no_headings(palace):
    put_source(palace, source("# a comment\nimport os\n\ndef first():\n    pass\n", source_file="/a.py"))
    assert json.loads(one(palace, "select metadata from drawers")[0])["heading"] == "def first"


def test_closets_of_another_origin_are_not_touched(palace):
    with palace.writer() as connection:
        connection.execute(
            "insert into closets(closet_id, source_file, text, metadata) values ('theirs', '/notes/a.md', 'x', 'no json')"
        )
    put_source(palace, source(LONG))
    put_source(palace, source("short"))
    assert one(palace, "select count(*) from closets where closet_id = 'theirs'") == (1,)


def test_a_source_that_becomes_empty_has_no_drawers_and_no_closets(palace):
    put_source(palace, source(LONG))
    assert put_source(palace, source("")).removed > 0
    assert one(palace, "select (select count(*) from drawers), (select count(*) from closets)") == (0, 0)


def test_drawers_of_another_origin_are_not_touched(palace):
    put_drawers(palace, [Drawer("filed by hand", source_file="/notes/a.md", added_by="somebody")])
    put_source(palace, source(LONG))
    put_source(palace, source("short"))
    assert remove_sources(palace, ["/notes/a.md"], added_by="mine") == 1
    assert column(palace, "select text from drawers") == ["filed by hand"]


def test_the_same_passage_twice_in_one_source_is_two_drawers(palace):
    text = ("The very same paragraph stands here again. " * 18 + "\n\n") * 2
    put_source(palace, source(text))
    rows = column(palace, "select text from drawers order by chunk_index")
    assert len(rows) == len(chunk(text))


def test_closets_point_to_the_first_drawers_of_their_topics(palace):
    put_source(palace, source("# First topic\n\nWords about SqliteUtils.\n\n# Second topic\n\n" + LONG))
    text = one(palace, "select text from closets")[0]
    lines = text.splitlines()
    assert lines[0].startswith("First topic|")
    assert "SqliteUtils" in lines[0]
    first = one(palace, "select drawer_id from drawers where chunk_index = 0")[0]
    assert lines[0].endswith("→" + first)
    assert len(text) < 3000


def test_delete_takes_a_scope_and_counts(palace):
    put_source(palace, source(LONG))
    put_drawers(palace, [Drawer("stays", wing="other"), Drawer("goes", wing="w", room="x")])
    before = one(palace, "select count(*) from drawers where wing = 'w'")[0]
    assert delete_drawers(palace, Scope(wings=("w",))) == before
    assert column(palace, "select text from drawers") == ["stays"]
    assert one(palace, "select count(*) from closets") == (0,)
