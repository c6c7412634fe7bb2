"""Exports: NDJSON comes back as the same palace, Markdown and CSV are safe to open, and nothing is replaced unasked."""

import base64
import csv
import io
import json
import os
import shutil
import string
import subprocess
import sys
import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from datasette.utils.sqlite import sqlite3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from building import find, make_palace
from datasette_mempalace.cli import mempalace, register
from datasette_mempalace.drawers import Drawer, Source, put_drawers, put_source
from datasette_mempalace.errors import BadInput
from datasette_mempalace.exporters import markdown, ndjson
from datasette_mempalace.exporters.filenames import Names
from datasette_mempalace.exporters.manifest import why_not_replaced, write_manifest
from datasette_mempalace.exporters.selection import Selection, viewed
from datasette_mempalace.exporters.target import new_file, new_folder
from datasette_mempalace.importers.decoding import Peekable
from datasette_mempalace.importers.restoring import find_header, restore
from datasette_mempalace.palace import Palace
from datasette_mempalace.schema import CLOSET_COLUMNS, DRAWER_COLUMNS
from datasette_mempalace.vectors import embed_pending, embedded_hash
from test_odd_rows import ODD

if "export" not in mempalace.commands:
    register(SimpleNamespace(add_command=lambda command: None))

TABLES = ("drawers", "closets", "drawer_vectors", "closet_vectors")


def contents(path, *tables):
    """Every row of some tables, every value with its type and its bytes."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    found = {}
    for table in tables or TABLES:
        columns = [row[1].decode() for row in connection.execute(f"pragma table_info({table})")]
        typed = ", ".join(f"{column}, typeof({column})" for column in columns)
        found[table] = connection.execute(f"select {typed} from {table} order by id").fetchall()
    connection.close()
    return found


def exported(palace, selection=None, vectors=True):
    """A palace as NDJSON."""
    out = io.StringIO()
    with viewed(palace, selection or Selection()) as view:
        ndjson.write(view, out, lambda done, total: None, vectors)
    return out.getvalue()


def restored(palace, text, **options):
    """Read an export back; returns what was done and the lines that could not be used."""
    bad = []
    return restore(palace, io.BytesIO(text.encode()), on_bad=bad.append, **options), bad


def run(*arguments, **options):
    return CliRunner().invoke(mempalace, [str(argument) for argument in arguments], **options)


# NDJSON and back


def test_a_palace_comes_back_equal_and_nothing_is_embedded(tmp_path, palace_path):
    first, second = tmp_path / "first.ndjson", tmp_path / "second.ndjson"
    assert run("export", palace_path, first, "--vectors").exit_code == 0
    done = run("import", tmp_path / "back.db", first)
    assert done.exit_code == 0
    assert "Embedded" not in done.stdout
    assert contents(tmp_path / "back.db") == contents(palace_path)
    run("export", tmp_path / "back.db", second, "--vectors")
    assert first.read_bytes() == second.read_bytes()
    again = run("import", tmp_path / "back.db", first)
    assert "unchanged" in again.stdout
    assert "added" not in again.stdout
    assert "Embedded" not in again.stdout
    assert contents(tmp_path / "back.db") == contents(palace_path)


def test_without_vectors_the_texts_are_embedded_to_the_same(tmp_path, palace_path):
    assert run("export", palace_path, tmp_path / "p.ndjson").exit_code == 0
    done = run("import", tmp_path / "back.db", tmp_path / "p.ndjson")
    assert "Embedded" in done.stdout
    assert contents(tmp_path / "back.db", "drawers", "closets") == contents(palace_path, "drawers", "closets")
    with Palace.open(tmp_path / "back.db") as back, Palace.open(palace_path) as palace:
        hits = [[hit["drawer_id"] for hit in find(p, "login token")["results"]] for p in (back, palace)]
    assert hits[0] == hits[1]


def test_through_a_pipe(tmp_path, palace_path):
    """Every drawer comes through; as one step of a shell's `|`."""
    sent = run("export", palace_path, "--vectors")
    assert run("import", tmp_path / "back.db", "-", input=sent.stdout_bytes).exit_code == 0
    assert contents(tmp_path / "back.db") == contents(palace_path)


ODD_VECTORS = [odd for odd in ODD if odd.startswith("vector")]
ODD_METADATA = {
    "half a surrogate pair": '{"a": "\\ud800"}',
    "deep": '{"a": ' + "[" * 400 + "]" * 400 + "}",
    "no finite number": '{"a": 1e999, "b": NaN}',
    "control characters": '{"a": "\\u0000\\u0085\\u2028\\ufeff\\u009f"}',
    "no text": "5",
}


@pytest.fixture(scope="module")
def odd_path(tmp_path_factory):
    """A palace with every odd row that another program can have left."""
    path = tmp_path_factory.mktemp("odd") / "odd.db"
    with make_palace(path, [("a first fox", "w", "r")]) as palace:
        connection = sqlite3.connect(path)
        with connection:
            for odd in ODD.keys() - {*ODD_VECTORS}:
                connection.execute(ODD[odd].replace("values ('c',", f"values ('c {odd}',"))
            for metadata in ODD_METADATA.values():
                connection.execute("insert into drawers (text, metadata) values ('odd fox', ?)", [metadata])
        connection.close()
        embed_pending(palace)
        palace.checkpoint()
    return path


def test_odd_rows_come_back(tmp_path, odd_path):
    assert len(contents(odd_path)["drawers"]) > len(ODD) - len(ODD_VECTORS)
    assert run("export", odd_path, tmp_path / "odd.ndjson", "--vectors").exit_code == 0
    (tmp_path / "odd.ndjson").read_text("utf-8")
    done = run("import", tmp_path / "back.db", tmp_path / "odd.ndjson")
    assert done.exit_code == 0
    assert "Embedded" not in done.stdout
    assert contents(tmp_path / "back.db") == contents(odd_path)


@pytest.mark.parametrize("odd", ODD_VECTORS)
def test_an_odd_vector_is_made_anew(tmp_path, odd):
    with make_palace(tmp_path / "odd.db", [("a first fox", "w", "r")]) as palace:
        good = contents(palace.path)
        with palace.writer() as connection:
            connection.execute(ODD[odd])
        text = exported(palace)
    with Palace.create(tmp_path / "back.db") as back:
        done, bad = restored(back, text)
        assert (bad, done.vectors) == ([], 0)
        assert embed_pending(back) == 1
    assert contents(tmp_path / "back.db") == good


any_text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
any_value = (
    st.none()
    | any_text
    | st.just("")
    | st.binary(max_size=6)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
)
metadata_texts = any_value | st.dictionaries(
    any_text | st.sampled_from(["$base64"]), any_text, max_size=3
).map(json.dumps)
raw_texts = st.binary(max_size=8)  # stored as texts, UTF-8 or not


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_rows_come_back(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    rows = {"drawer": [], "closet": []}
    for kind, columns in (("drawer", DRAWER_COLUMNS), ("closet", CLOSET_COLUMNS)):
        for number in range(data.draw(st.integers(0, 3), label=kind)):
            row = {
                name: data.draw(metadata_texts if name == "metadata" else any_value, label=name)
                for name in columns
            }
            row |= {
                f"{kind}_id": f"{number}",
                "text": data.draw(any_text | st.binary(max_size=5), label="text"),
            }
            rows[kind].append((data.draw(st.integers(1, 2**40), label="id"), row))
    raw = data.draw(raw_texts, label="raw")
    with Palace.create(folder / "a.db") as palace, Palace.create(folder / "b.db") as back:
        for bound in (palace, back):
            with bound.writer() as connection:
                connection.execute("insert into mempalace_settings values ('embedding_dimension', '2')")
        with palace.writer() as connection:
            for kind, found in rows.items():
                for row_id, row in found:
                    marks = ", ".join(f":{name}" for name in row)
                    query = f"insert into {kind}s (id, {', '.join(row)}) values (:row_id, {marks})"
                    try:
                        connection.execute(query, {**row, "row_id": row_id})
                    except sqlite3.IntegrityError:
                        continue
                    text = row["text"] if isinstance(row["text"], bytes) else row["text"].encode()
                    key = embedded_hash(kind, text.decode("utf-8", "replace"))
                    connection.execute(
                        f"insert into {kind}_vectors values (?, ?, ?)",
                        [row_id, b"\0\0\x80\x3f\0\0\0\0", key],
                    )
            connection.execute("insert into drawers (drawer_id, text) values ('raw', cast(? as text))", [raw])
        text = exported(palace)
        assert all(json.loads(line) for line in text.split("\n")[:-1])
        done, bad = restored(back, text)
        assert (bad, done.useless_vectors, done.missing) == ([], 0, 0)
    assert contents(folder / "a.db") == contents(folder / "b.db")


def test_rows_keep_their_numbers_where_they_are_free(tmp_path):
    with make_palace(tmp_path / "a.db", [("one", "w"), ("two", "w")]) as palace:
        with palace.writer() as connection:
            connection.execute("update drawers set id = 10 where text = 'two'")
        embed_pending(palace)
        text = exported(palace)
    with make_palace(tmp_path / "b.db", [("of another", "w")]) as back:
        done, _ = restored(back, text)
        assert (done.drawers.added, done.vectors) == (2, 2)
        assert embed_pending(back) == 0
    rows = sqlite3.connect(tmp_path / "b.db").execute("select id, text from drawers order by id").fetchall()
    assert rows == [(1, "of another"), (2, "one"), (10, "two")]


def test_a_row_that_differs_is_replaced_and_told(tmp_path):
    with make_palace(tmp_path / "a.db", [("one", "w"), ("two", "w")]) as palace:
        text = exported(palace)
        with palace.writer() as connection:
            connection.execute("update drawers set text = 'changed', wing = '' where text = 'one'")
        done, _ = restored(palace, text)
        assert (done.drawers.updated, done.drawers.unchanged, done.drawers.added) == (1, 1, 0)
        assert exported(palace) == text


def test_bad_lines_lose_no_other_and_a_cut_is_told(tmp_path):
    with make_palace(tmp_path / "a.db", [(f"text {n}", "w") for n in range(9)]) as palace:
        header, *lines = exported(palace).splitlines()
    record = json.loads(lines[0])
    lines[:6] = [
        "{broken",
        json.dumps({**record, "kind": "attic"}),
        json.dumps({**record, "text": None}),
        json.dumps({**record, "colour": "red"}),
        json.dumps({**record, "wing": {"$real": "7"}}),
        json.dumps({**record, "id": "first"}),
    ]
    (tmp_path / "cut.ndjson").write_text("\n".join([header, *lines[:-1]]) + "\n")
    done = run("import", tmp_path / "b.db", tmp_path / "cut.ndjson")
    assert done.exit_code == 1
    assert "Drawers: 2 added." in done.stdout
    for reason in (
        "Line 2: not JSON", "Line 3: neither a drawer nor a closet", "Line 4: it has no text",
        "Line 5: no column of a drawer is called 'colour'", "Line 6: wing: an object is no value of a column",
        "Line 7: id: 'first' is no whole number", "cut off: 1 line",
    ):  # fmt: skip
        assert reason in done.stderr


def test_a_vector_of_another_text_is_not_taken(tmp_path):
    with make_palace(tmp_path / "a.db", [("one", "w"), ("two", "w")]) as palace:
        text = exported(palace).replace('"one"', '"one, edited by hand"')
    (tmp_path / "a.ndjson").write_text(text)
    done = run("import", tmp_path / "b.db", tmp_path / "a.ndjson")
    assert "1 vector was not usable" in done.stderr
    assert "Embedded 1 text." in done.stdout


def test_vectors_of_another_model_are_refused_before_anything_is_made(tmp_path, palace_path):
    run("export", palace_path, tmp_path / "p.ndjson", "--vectors")
    text = (tmp_path / "p.ndjson").read_text().replace('"all-MiniLM-L6-v2"', '"another"', 1)
    (tmp_path / "p.ndjson").write_text(text)
    done = run("import", tmp_path / "b.db", tmp_path / "p.ndjson")
    assert done.exit_code == 1
    assert "another" in done.stderr
    assert "--re-embed" in done.stderr
    assert not (tmp_path / "b.db").exists()
    assert run("import", tmp_path / "b.db", tmp_path / "p.ndjson", "--re-embed").exit_code == 0
    assert contents(tmp_path / "b.db", "drawers") == contents(palace_path, "drawers")


def test_vectors_of_a_length_that_the_model_has_not_are_made_anew(tmp_path, palace_path):
    """Though header and vectors agree: a palace bound to that length could embed nothing more."""
    run("export", palace_path, tmp_path / "p.ndjson", "--vectors")
    header, *lines = map(json.loads, (tmp_path / "p.ndjson").read_text().splitlines())
    short = base64.b64encode(np.array([1, 0, 0, 0], "<f4").tobytes()).decode()
    lines = [{**line, "vector": short} for line in lines]
    header["embedding_dimension"] = 4
    (tmp_path / "p.ndjson").write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
    done = run("import", tmp_path / "b.db", tmp_path / "p.ndjson")
    assert (done.exit_code, f"{len(lines)} vectors were not usable" in done.stderr) == (0, True), done.output
    assert contents(tmp_path / "b.db", "drawers", "closets") == contents(palace_path, "drawers", "closets")
    with Palace.open(tmp_path / "b.db") as palace:
        assert find(palace, "login token")["results"][0]["found_by"] == ["vector", "lexical"]


@pytest.mark.parametrize(
    "change", [{"mempalace_export": 2}, {"mempalace_export": "x" * 500}, {"drawers": "many" * 500}]
)
def test_an_export_that_is_not_understood_is_refused(tmp_path, change):
    header = {"mempalace_export": 1, "drawers": 0, "closets": 0, "vectors": False}
    header |= {"embedding_model": None, "embedding_dimension": None, **change}
    with pytest.raises(BadInput, match=r"^.{20,200}$"):
        find_header(Peekable(io.BytesIO(json.dumps(header).encode())))


@pytest.mark.parametrize(
    "edit",
    [
        lambda header, lines: "\n".join([*lines, header]),
        lambda header, lines: "\n".join(sorted([header, *lines])),
        lambda header, lines: "\n".join(lines),
        lambda header, lines: f"[{','.join([header, *lines])}]",
        lambda header, lines: json.dumps([json.loads(line) for line in lines], indent=1),
    ],
    ids=["header last", "sorted", "no header", "as an array", "pretty, without header"],
)
def test_an_export_that_lost_its_first_line_does_not_come_in_as_records(tmp_path, palace_path, edit):
    """Its closets would become drawers, and its vectors metadata."""
    header, *lines = run("export", palace_path, "--vectors").stdout.splitlines()
    (tmp_path / "edited").write_text(edit(header, lines) + "\n")
    done = run("import", tmp_path / "b.db", tmp_path / "edited")
    assert (done.exit_code, 'put the line with "mempalace_export" first' in done.stderr) == (2, True), (
        done.output
    )
    assert not (tmp_path / "b.db").exists()


def test_blank_lines_cost_an_export_nothing(tmp_path, palace_path):
    lines = run("export", palace_path, "--vectors").stdout.splitlines()
    (tmp_path / "a.ndjson").write_text("\n \n" + "\n\n  ".join(lines))
    assert run("import", tmp_path / "b.db", tmp_path / "a.ndjson").exit_code == 0
    assert contents(tmp_path / "b.db") == contents(palace_path)


def test_options_that_would_change_an_export_are_refused(tmp_path, palace_path):
    run("export", palace_path, tmp_path / "p.ndjson")
    done = run("import", tmp_path / "b.db", tmp_path / "p.ndjson", "--wing", "w")
    assert (done.exit_code, "read back as it is" in done.stderr) == (2, True)
    assert not (tmp_path / "b.db").exists()


async def test_hits_exported_over_http_come_in_as_records(served, tmp_path):
    hits = (await served.client.get("/palace/-/mempalace.ndjson?q=lighthouse+keeper&wing=guides")).text
    (tmp_path / "hits.ndjson").write_text(hits)
    done = run("import", tmp_path / "b.db", tmp_path / "hits.ndjson")
    assert done.exit_code == 0
    records = [json.loads(line) for line in hits.splitlines()][:-1]
    rows = (
        sqlite3.connect(tmp_path / "b.db")
        .execute("select drawer_id, text, source_file from drawers")
        .fetchall()
    )
    assert sorted(rows) == sorted((hit["drawer_id"], hit["text"], hit["source_path"]) for hit in records)


# What is exported


def ids(text):
    return [json.loads(line)["drawer_id"] for line in text.splitlines() if '"kind": "drawer"' in line]


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ([], "1"),
        (["--wing", "acme-app", "--room", "auth"], "wing = 'acme-app' and room = 'auth'"),
        (["--wing", "日本語", "--wing", "a/b"], "wing in ('日本語', 'a/b')"),
        (["--source-file", "/notes/guide.md"], "source_file = '/notes/guide.md'"),
        (
            ["--since", "2026-03-01", "--before", "2026-05-01"],
            "filed_at >= '2026-03' and filed_at < '2026-05'",
        ),
        (["--filter", "wing__isnull=1"], "wing is null"),
        (["--wing", "nowhere"], "0"),
    ],
)
def test_a_scope_exports_its_drawers_and_their_closets(palace_path, options, condition):
    done = run("export", palace_path, "-", *options)
    assert done.exit_code == 0, done.stderr
    connection = sqlite3.connect(palace_path)
    wanted = [
        row[0] for row in connection.execute(f"select drawer_id from drawers where {condition} order by id")
    ]
    assert ids(done.stdout) == wanted
    closets = connection.execute(
        "select count(*) from closets where source_file in"
        f" (select source_file from drawers where {condition})"
    ).fetchone()[0]
    assert done.stdout.count('"kind": "closet"') == closets
    assert json.loads(done.stdout.splitlines()[0])["drawers"] == len(wanted)


def test_a_search_exports_its_hits_best_first(palace_path):
    done = run(
        "export", palace_path, "-", "--query", "lighthouse keeper", "--wing", "guides", "--n-results", 2
    )
    with Palace.open(palace_path) as palace:
        hits = find(palace, "lighthouse keeper", wing="guides", n_results=2)["results"]
    assert ids(done.stdout) == [hit["drawer_id"] for hit in hits]
    assert len(hits) == 2


def test_one_moment_is_exported(tmp_path):
    made = make_palace(tmp_path / "a.db", [("one", "w"), ("two", "w")])
    with made as palace, viewed(palace, Selection()) as view:
        rows = view.rows("drawer")
        first = next(rows)["text"]
        put_drawers(palace, [Drawer("late"), *(Drawer(f"{n}") for n in range(50))])
        texts = [first, *(row["text"] for row in rows)]
        assert sorted(texts) == ["one", "two"]
        assert view.count("drawer") == 2


# CSV


def test_csv_has_every_drawer_and_no_formula(tmp_path, palace_path):
    assert run("export", palace_path, tmp_path / "p.csv").exit_code == 0
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    connection = sqlite3.connect(palace_path)
    stored = connection.execute("select id, text, wing, metadata from drawers order by id").fetchall()
    assert [int(row["id"]) for row in rows] == [row[0] for row in stored]
    assert [row["text"].removeprefix("'") for row in rows] == [row[1] for row in stored]
    assert [row["metadata"] for row in rows] == [row[3] for row in stored]
    assert any(row["text"].startswith("'=HYPERLINK") and row["wing"] == "'=1+1" for row in rows)
    assert not any(value.startswith(("=", "+", "-", "@")) for row in rows for value in row.values())


# Markdown


def front_matter(file):
    _, head, body = file.read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(head), body[1:-1]


def test_odd_rows_are_written_for_reading_too(tmp_path, odd_path):
    count = len(contents(odd_path)["drawers"])
    for target in ("tree", "a.csv"):
        done = run("export", odd_path, tmp_path / target)
        assert done.exit_code == 0, done.stderr
        assert f"Exported {count} drawers" in done.stderr
        assert "with bytes that are no text, shown as U+FFFD; NDJSON keeps them" in done.stderr
    heads = [front_matter(file)[0] for file in (tmp_path / "tree").rglob("*.md") if file.name != "index.md"]
    assert sum(len(head["drawers"]) for head in heads) == count


def test_markdown_has_every_text_in_its_wing_and_room(tmp_path, palace_path):
    done = run("export", palace_path, tmp_path / "tree")
    assert done.exit_code == 0, done.stderr
    files = [file for file in (tmp_path / "tree").rglob("*.md") if file.name != "index.md"]
    connection = sqlite3.connect(palace_path)
    stored = connection.execute("select drawer_id, wing, room, source_file, text from drawers").fetchall()
    found = {}
    for file in files:
        assert len(file.relative_to(tmp_path / "tree").parts) == 3
        head, body = front_matter(file)
        for drawer_id in head["drawers"]:
            assert drawer_id not in found
            found[drawer_id] = (head.get("wing"), head.get("room"), head.get("source_file"), body)
    assert found.keys() == {row[0] for row in stored}
    for drawer_id, wing, room, source_file, text in stored:
        assert found[drawer_id][:3] == (wing, room, source_file)
        assert text in found[drawer_id][3]
    index = (tmp_path / "tree" / "index.md").read_text("utf-8")
    assert "[auth](acme-app/auth/): 14" in index
    assert "No wing" in index


def test_a_mined_source_is_put_together_again(tmp_path):
    text = "\n\n".join(f"# Part {n}\n\n" + f"Sentence {n} of the long story goes on. " * 60 for n in range(4))
    with make_palace(tmp_path / "a.db") as palace:
        put_source(palace, Source("/notes/story.md", text, wing="w", room="r"))
    run("export", tmp_path / "a.db", tmp_path / "tree")
    head, body = front_matter(tmp_path / "tree" / "w" / "r" / "story.md")
    assert body == text
    assert len(head["drawers"]) > 4
    run("export", tmp_path / "a.db", tmp_path / "part", "--filter", "chunk_index__in=0,1,5")
    _, body = front_matter(tmp_path / "part" / "w" / "r" / "story.md")
    assert body.count("[…]") == 1


def test_equal_notes_of_one_source_are_not_lost(tmp_path):
    notes = [
        Drawer("The same note, twice.", source_file="/n", wing="w", room="r", drawer_id=f"{n}")
        for n in (1, 2)
    ]
    with make_palace(tmp_path / "a.db", notes):
        pass
    run("export", tmp_path / "a.db", tmp_path / "tree")
    assert (tmp_path / "tree" / "w" / "r" / "n.md").read_text().count("The same note, twice.") == 2


ODD_NAMES = [
    "..", ".", "../../etc/passwd", "/root", "C:\\x", "con", "NUL.txt", "a\0b", "x" * 400, "日" * 200, " ", "", "trailing.",
    ".hidden", "Case", "case", "CASE", "e\u0301", "\u00e9", "a/b", "a_b", "index.md", "\u202egpj", "_no wing", None,
]  # fmt: skip


def test_odd_names_stay_inside_and_apart(tmp_path):
    drawers = [
        Drawer(f"{wing!r} {room!r}", wing=wing, room=room, drawer_id=f"../{n}")
        for wing in ODD_NAMES
        for n, room in enumerate(ODD_NAMES)
    ]
    drawers = [
        Drawer(**{**vars(drawer), "drawer_id": f"{drawer.drawer_id}{n}"}) for n, drawer in enumerate(drawers)
    ]
    with Palace.create(tmp_path / "a.db") as palace:
        put_drawers(palace, drawers)
        (tmp_path / "tree").mkdir()
        with viewed(palace, Selection()) as view:
            done = markdown.write(view, tmp_path / "tree", lambda done, total: None)
    files = list((tmp_path / "tree").rglob("*"))
    assert (
        done.drawers
        == len(drawers)
        == sum(file.is_file() and file.parent != tmp_path / "tree" for file in files)
    )
    assert {file.name for file in tmp_path.iterdir()} == {"a.db", "a.db-wal", "a.db-shm", "tree"} & set(
        os.listdir(tmp_path)
    )
    assert all(len(file.name.encode()) <= 255 for file in files)
    assert len({unicodedata.normalize("NFC", str(file)).casefold() for file in files}) == len(files)
    windows = set('<>:"\\|?*') | {chr(n) for n in range(32)}
    assert not any(set(file.name) & windows or file.name.endswith((".", " ")) for file in files)


@given(
    names=st.lists(st.text(max_size=300) | st.sampled_from(["a", "A", "a.md", "Ⓐ", "ß", "SS"]), max_size=12)
)
def test_names_differ_whatever_is_asked_for(names):
    taken = Names()
    made = [taken.take(name, f"{n}", ".md") for n, name in enumerate(names)]
    assert len({name.casefold() for name in made}) == len(names)
    for name in made:
        assert name.endswith(".md")
        assert "/" not in name
        assert not name.startswith(".")
        assert len(name.encode("utf-8", "replace")) <= 255


@given(letters=st.text(string.ascii_letters + string.digits + " -", min_size=1, max_size=60))
def test_a_plain_name_stays_as_it_is(letters):
    if letters == letters.strip() and not letters.lower().startswith(
        ("con", "prn", "aux", "nul", "com", "lpt")
    ):
        assert Names().take(letters, "x") == letters


# Where it goes


def test_a_wing_that_does_not_exist_is_told_with_those_near_it(tmp_path, palace_path):
    done = run("export", palace_path, tmp_path / "out.ndjson", "--wing", "acme-ap")
    assert done.exit_code == 0
    assert "There is no wing 'acme-ap'; did you mean 'acme-app'" in done.stderr
    assert "Exported 0 drawers" in done.stderr
    assert (
        "did you mean" not in run("export", palace_path, tmp_path / "some.csv", "--wing", "acme-app").stderr
    )


def test_nothing_is_replaced_unasked(tmp_path, palace_path):
    for target in (tmp_path / "p.ndjson", tmp_path / "p.csv"):
        target.write_text("mine")
        done = run("export", palace_path, target)
        assert (done.exit_code, target.read_text()) == (2, "mine")
        assert "--force" in done.stderr
        assert run("export", palace_path, target, "--force").exit_code == 0
        assert target.read_text() != "mine"


def test_only_an_export_is_replaced_as_a_folder(tmp_path, palace_path):
    own = tmp_path / "own"
    own.mkdir()
    assert run("export", palace_path, own).exit_code == 0, "an empty folder is as good as none"
    assert run("export", palace_path, own).exit_code == 2
    assert (own / "acme-app").is_dir()
    assert run("export", palace_path, own, "--force", "--wing", "café-notes").exit_code == 0
    assert not (own / "acme-app").exists(), "what the export before wrote is gone"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


@pytest.mark.parametrize("theirs", ["mine.txt", "café-notes/mine.md", "index.md", ".obsidian/workspace.json"])
def test_what_no_export_wrote_stays_and_is_named(tmp_path, palace_path, theirs):
    own = tmp_path / "own"
    assert run("export", palace_path, own).exit_code == 0
    (own / theirs).parent.mkdir(exist_ok=True)
    (own / theirs).write_text("My notes")
    (own / "a link").symlink_to(palace_path)
    files = {path: path.read_bytes() for path in own.rglob("*") if path.is_file()}
    done = run("export", palace_path, own, "--force")
    assert done.exit_code == 2
    assert theirs in done.stderr
    assert "a link" in done.stderr
    assert {path: path.read_bytes() for path in own.rglob("*") if path.is_file()} == files
    (own / theirs).unlink()
    (own / "a link").unlink()
    assert run("export", palace_path, own, "--force").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def test_what_comes_in_while_an_export_is_written_stays(tmp_path):
    for number in range(2):
        with new_folder(tmp_path / "own", True, why_not_replaced) as folder:
            (folder / "ours.md").write_text(f"{number}")
            write_manifest(folder)
    with (
        pytest.raises(BadInput, match=r"own has what no export wrote.*: theirs\.md"),
        new_folder(tmp_path / "own", True, why_not_replaced),
    ):
        (tmp_path / "own" / "theirs.md").write_text("mine")
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == [
        ".mempalace-export.json",
        "ours.md",
        "theirs.md",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def test_a_folder_of_somebody_else_is_not_replaced(tmp_path, palace_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "index.md").write_text("---\nexported_by: datasette-mempalace\n---\n")
    for force in ([], ["--force"]):
        done = run("export", palace_path, own, *force)
        assert (done.exit_code, "is not a folder that was exported" in done.stderr) == (2, True)
        assert "--force" not in done.stderr, "what would be refused is not advised"
    assert len(list(own.iterdir())) == 1


def test_no_export_takes_the_place_of_a_database(tmp_path, palace_path):
    other = tmp_path / "other.db"
    shutil.copy(palace_path, other)
    before = other.read_bytes()
    for force in ([], ["--force"]):
        done = run("export", palace_path, other, "--format", "ndjson", *force)
        assert (done.exit_code, "other.db is a SQLite database" in done.stderr) == (2, True)
        assert "--force" not in done.stderr
    assert other.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["other.db"]


def test_an_export_that_fails_leaves_nothing(tmp_path):
    def fail(make, *options):
        with make(tmp_path / "target", True, *options) as target:
            if target.__class__.__name__ != "TextIOWrapper":
                (target / "half").write_text("x")
            raise KeyboardInterrupt

    for make, options in ((new_file, ()), (new_folder, (why_not_replaced,))):
        with pytest.raises(KeyboardInterrupt):
            fail(make, *options)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", [4_096, 32_768])
@pytest.mark.parametrize("output", ["out.ndjson", "out.csv", "out", "-"])
def test_a_limit_on_the_size_of_files_is_not_blamed_on_the_palace(tmp_path, palace_named, output, limit):
    """The smaller one is too small for what SQLite keeps beside a palace as well."""
    resource = pytest.importorskip("resource")
    palace = palace_named("palace.db")
    with Palace.open(palace) as opened:
        put_drawers(opened, [Drawer("long " * 20_000, wing="w")])
    (tmp_path / "out.csv").write_text("of before")
    with (tmp_path / "stdout").open("wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "datasette", "mempalace", "export", palace, output, "--force"],
            cwd=tmp_path,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
    assert done.returncode == 1
    name = "Standard output" if output == "-" else output
    told = f"{name} could not be written: File too large" if limit > 4_096 else "SQLite cannot open"
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out.csv").read_text() == "of before"
    assert not [path for path in tmp_path.iterdir() if "out." in path.name and path.name != "out.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_told(palace_path):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "datasette", "mempalace", "export", palace_path],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 1
    assert (
        "Standard output could not be written: No space left on device; what came out is incomplete"
        in done.stderr
    )


def test_a_link_is_followed_and_permissions_stay(tmp_path, palace_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "real.csv").chmod(0o640)
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert run("export", palace_path, tmp_path / "link.csv", "--force").exit_code == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("id,drawer_id")
    assert (tmp_path / "real.csv").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["out.csv", "--vectors"], "only NDJSON has room for vectors"),
        (["out.txt"], "--format"),
        (["-", "--format", "markdown"], "needs a folder"),
        (["nowhere/out.csv"], "does not exist"),
        (["out.csv", "--n-results", "3"], "--query"),
        (["out.csv", "--query", "x", "--n-results", "0"], "n_results"),
        (["out.csv", "--query", " "], "--query has no words to search for; leave it out"),
        *(
            (["out.csv", option, ""], f"{option[2:]}: '' is not allowed; it must not be empty here")
            for option in ("--wing", "--room", "--source-file", "--since", "--before")
        ),
        (["out.csv", "--wing", "acme-app", "--wing", ""], "it must not be empty here"),
        (["out.csv", "--since", " "], "it must not be empty here"),
        (["out.csv", "--filter", "added_by="], "it must not be empty here"),
        (["out.csv", "--since", "yesterday"], "since"),
        (["out.csv", "--filter", "colour=red"], "filter"),
        (["palace.db", "--format", "csv", "--force"], "palace itself"),
        (["palace.db-wal", "--format", "csv", "--force"], "palace itself"),
        (["palace.db.chroma", "--format", "markdown", "--force"], "palace itself"),
    ],
)
def test_what_is_not_allowed_is_told(tmp_path, palace_named, monkeypatch, options, says):
    path = palace_named("palace.db")
    monkeypatch.chdir(tmp_path)
    before = path.read_bytes()
    done = run("export", path, *options)
    assert done.exit_code == 2
    assert says is None or says in done.stderr
    assert path.read_bytes() == before
    assert not any(file.name.startswith("out") for file in tmp_path.iterdir())
