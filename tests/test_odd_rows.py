"""Any program may write into a palace. One odd row must not keep the others from being embedded, mirrored and found."""

import pytest
from datasette.utils.sqlite import sqlite3

from building import find, make_palace, one, texts
from datasette_mempalace.errors import PalaceDamaged
from datasette_mempalace.palace import Palace
from datasette_mempalace.status import palace_status
from datasette_mempalace.vectors import embed_pending
from pages import Page

ODD = {
    "text is a blob": "insert into drawers(text, wing) values (x'00ff41', 'w')",
    "text is not UTF-8": "insert into drawers(text, wing) values (cast(x'ff41' as text), 'w')",
    "text is a number": "insert into drawers(text, wing) values (5, 'w')",
    "wing is a blob": "insert into drawers(text, wing) values ('odd fox', x'00ff')",
    "wing is not UTF-8": "insert into drawers(text, wing) values ('odd fox', cast(x'ff41' as text))",
    "room is a number": "insert into drawers(text, room) values ('odd fox', 7)",
    "drawer_id is a blob": "insert into drawers(drawer_id, text) values (x'0102', 'odd fox')",
    "filed_at is a blob": "insert into drawers(text, filed_at) values ('odd fox', x'0102')",
    "authored_at is a number": "insert into drawers(text, authored_at) values ('odd fox', 2026)",
    "source_file is a blob": "insert into drawers(text, source_file) values ('odd fox', x'0102')",
    "chunk_index is a text": "insert into drawers(text, chunk_index) values ('odd fox', 'first')",
    "metadata has half a character": """insert into drawers(text, metadata) values ('odd fox', '{"heading": "\\ud800", "\\udfff": 1}')""",
    "metadata is a list": "insert into drawers(text, metadata) values ('odd fox', '[1]')",
    "metadata is deep": "insert into drawers(text, metadata) values ('odd fox', printf('%.*c', 100000, '['))",
    "closet text is a blob": "insert into closets(closet_id, text) values ('c', x'00ff')",
    "closet source is a blob": "insert into closets(closet_id, text, source_file) values ('c', 'a fox→x', x'00ff')",
    "vector is short": "insert or replace into drawer_vectors values (1, x'010203', 'x')",
    "vector is one number": "insert or replace into drawer_vectors values (1, x'0000803f', 'x')",
    "vector is empty": "insert or replace into drawer_vectors values (1, x'', 'x')",
    "vector is a text": "insert or replace into drawer_vectors values (1, 'text', 'x')",
    "vector is not finite": "update drawer_vectors set vector = cast(x'0000c07f' || substr(vector, 5) as blob) where id = 1",
}


@pytest.fixture
def palace(tmp_path):
    with make_palace(tmp_path / "p.db", [("a first fox", "w", "r"), ("a second fox", "w", "r")]) as palace:
        yield palace


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_row_harms_no_other(palace, odd):
    connection = sqlite3.connect(palace.path)
    with connection:
        connection.execute(ODD[odd])
        connection.execute("insert into drawers(text, wing) values ('a third fox', 'w')")
    connection.close()
    embed_pending(palace)
    assert palace_status(palace)["pending_vectors"] == 0
    assert palace.mirror.sync().skipped_reason is None
    for parameters in (
        {},
        {"facets": 1, "wing": ["w", None]},
        {"vector_disabled": 1},
        {"wing": "nope"},
        {"ranking": "mempalace"},
    ):
        answer = find(palace, "a fox", n_results=50, **parameters)
        if parameters.get("wing") != "nope":
            assert "a third fox" in texts(answer)
            assert "a second fox" in texts(answer)


def test_settings_that_cannot_be_read_count_as_not_made(palace):
    with palace.writer() as connection:
        connection.execute("update mempalace_settings set value = 'garbage' where key <> 'embedding_model'")
    palace.close()
    with Palace.open(palace.path) as again:
        assert texts(find(again, "fox"))
        assert palace_status(again)["mirror"]["state"] == "none"
        assert again.mirror.sync().upserted == 2


@pytest.mark.parametrize("table", ["drawers_fts", "closets", "drawer_vectors"])
def test_a_missing_table_is_told_in_a_sentence(palace, table):
    with palace.writer() as connection:
        connection.execute(f"drop table {table}")
    with pytest.raises(PalaceDamaged, match=r"p\.db cannot be searched: no such table"):
        find(palace, "fox")


def test_two_processes_do_not_embed_the_same_texts(palace):
    with palace.writer() as connection:
        connection.execute("insert into drawers(text) values ('waits')")
    with Palace.open(palace.path) as other, other.embedding_lock(wait=False) as mine:
        assert mine
        assert embed_pending(palace, wait=False) == 0
        assert palace_status(palace)["pending_vectors"] == 1
    assert embed_pending(palace, wait=False) == 1


def test_a_very_long_drawer_does_not_hold_up_a_search(palace):
    with palace.writer() as connection:
        connection.execute("insert into drawers(text) values (?)", ["lighthouse keeper ferry " * 400_000])
    embed_pending(palace)
    answer = find(palace, "ferry lighthouse keeper", n_results=1)
    assert answer["timings_ms"]["total"] < 5000
    assert answer["results"][0]["words_found"]
    assert one(palace, "select length(text) from drawers where id = 3") == (9_600_000,)


async def test_the_pages_show_a_palace_of_odd_rows(make_datasette, tmp_path):
    path = tmp_path / "palace.db"
    with make_palace(path, [("a first fox", "w", "r")]) as palace:
        with palace.writer() as connection:
            for statement in ODD.values():
                connection.execute(
                    statement.replace("(closet_id, text", "(closet_id, text").replace(
                        "('c'", f"('{len(statement)}'"
                    )
                )
        embed_pending(palace)
    datasette = make_datasette(path)
    for address in (
        "",
        "?q=fox",
        ".json?q=fox",
        ".csv?q=fox",
        "?wing=nope&q=fox",
        "?source_file=x",
        "/status.json",
    ):
        response = await datasette.client.get(f"/palace/-/mempalace{address}")
        assert response.status_code == 200, address
    for address in ("", "?q=fox", "/duplicates", "/sources"):
        response = await datasette.client.get(f"/palace/-/mempalace{address}")
        for href in {href for href, _ in Page(response.text).links if "/-/mempalace" in href}:
            assert (await datasette.client.get(href)).status_code == 200, href
