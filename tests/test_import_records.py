"""Importing records: every format, every column name, bad rows that cost nothing, round trips of any text."""

import io
import json
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasette_mempalace.errors import BadInput, BadParameter
from datasette_mempalace.importers.formats import BadRow, read_rows
from datasette_mempalace.importers.records import import_records
from datasette_mempalace.palace import Palace


@pytest.fixture
def palace(tmp_path):
    with Palace.create(tmp_path / "records.db") as made:
        yield made


def put(palace, content, **options):
    """Import a content; returns what was done and the bad rows."""
    bad = []
    data = content if isinstance(content, bytes) else content.encode()
    done = import_records(palace, io.BytesIO(data), on_bad=bad.append, **options)
    return done, bad


def rows(palace, columns="text, wing, room", order="id"):
    with palace.reader() as connection:
        return connection.execute(f"select {columns} from drawers order by {order}").fetchall()


def metadata(palace):
    return [json.loads(row[0]) for row in rows(palace, "metadata")]


RECORD = {"content": "A text", "project": "w", "topic": "r", "source": "/x/y.md", "colour": "red", "n": 3}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (json.dumps([RECORD]), "a.json"),
        (json.dumps([RECORD], indent=2), "-"),
        (json.dumps({"about": [1, 2], "records": [RECORD]}), "a.json"),
        (json.dumps(RECORD), "a.json"),
        (json.dumps(RECORD, indent=2), "-"),
        (json.dumps(RECORD) + "\n", "a.ndjson"),
        (json.dumps(RECORD), "-"),
        ("\ufeff" + json.dumps([RECORD]), "a.json"),
        (json.dumps([RECORD]).encode("utf-16"), "a.json"),
    ],
)
def test_every_shape_of_json_gives_the_same_drawer(palace, content, name):
    done, bad = put(palace, content, name=name)
    assert (done.records, bad) == (1, [])
    assert rows(palace, "text, wing, room, source_file, added_by") == [
        ("A text", "w", "r", "/x/y.md", "import")
    ]
    assert metadata(palace) == [{"colour": "red", "n": 3}]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('Body,Wing,"Source File",extra\r\n"A, ""text""\r\nof lines",w,/x,1\r\n', "a.csv"),
        ('body\twing\tsource-file\textra\n"A, ""text""\r\nof lines"\tw\t/x\t1\n', "a.tsv"),
        ('body;wing;source_file;extra\n"A, ""text""\r\nof lines";w;/x;1', "-"),
        ('\ufeffbody,wing,source_file,extra\n"A, ""text""\r\nof lines",w,/x,1', "a.csv"),
    ],
)
def test_tables(palace, content, name):
    done, bad = put(palace, content, name=name)
    assert (done.records, bad) == (1, [])
    assert rows(palace, "text, wing, source_file") == [('A, "text"\r\nof lines', "w", "/x")]
    assert metadata(palace) == [{"extra": "1"}]


def test_a_tsv_file_without_quotes(palace):
    done, bad = put(palace, 'text\twing\n"Hello" she said\tw\n', name="a.tsv")
    assert not bad
    assert rows(palace, "text") == [('"Hello" she said',)]


def test_bad_lines_of_ndjson_lose_no_other(palace):
    lines = [
        b'{"text": "one"}',
        b'{"text": "broken"',
        b"[1, 2]",
        b'{"note": "no text"}',
        b'{"text": "bytes \xff"}',
        b'{"text": 5}',
        b'{"text": "x", "wing": ["a"]}',
        b'{"text": "x", "chunk_index": "third"}',
        b"",
        b'{"text": "x", "n": ' + b"9" * 5000 + b"}",
        b'{"text": "x", "deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"text": "last"}',
    ]
    done, bad = put(palace, b"\n".join(lines), name="a.ndjson")
    assert [row[0] for row in rows(palace)] == ["one", "last"]
    assert [row.line for row in bad if row.line not in (10, 11)] == [2, 3, 4, 5, 6, 7, 8]
    assert (done.records, done.bad_rows) == (2, len(bad))
    reasons = {row.line: row.reason for row in bad}
    assert "not JSON" in reasons[2]
    assert "a list, not an object" in reasons[3]
    assert "--map" in reasons[4]
    assert "0xff" in reasons[5]
    assert reasons[6] == "text: it is a number, not a text"
    assert reasons[7] == "wing: it is a list, not a text"
    assert "'third' is not a whole number" in reasons[8]


def test_bad_rows_of_csv_lose_no_other(palace):
    content = b'id,text,wing\n1,"fine",w\n2,"open quote,w\n3,"two\nlines",w\n4,a,b,c\n5,,w\n6,caf\xe9,w\n\n7,"x"y,w\n8,short\n'
    done, bad = put(palace, content, name="a.csv")
    assert rows(palace, "drawer_id, text, wing") == [
        ("1", "fine", "w"),
        ("3", "two\nlines", "w"),
        ("8", "short", None),
    ]
    assert [row.line for row in bad] == [3, 6, 7, 8, 10]
    assert "quotes" in bad[0].reason
    assert "4 cells" in bad[1].reason
    assert "no text" in bad[2].reason
    assert "0xe9" in bad[3].reason


def test_a_broken_array_keeps_what_came_before_and_says_where_it_ends(palace):
    done, bad = put(
        palace, '[\n{"text": "one"},\n{"text": "two"},\n{"text": oops},\n{"text": "four"}\n]', name="a.json"
    )
    assert [row[0] for row in rows(palace)] == ["one", "two"]
    assert bad[0].line == 4
    assert "missing" in bad[0].reason


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('{"text": "one"}\n{"text": "two", "n": %s}\n', 2),
        ('[{"text": "one"},\n{"text": "two",\n"n": -%s}]', 3),
        ('{"records": [{"text": "one"},\n {"text": "two",\n"n": %s}]}', 3),
        ('{"text": "two",\n"n": %s}', 2),
    ],
)
def test_a_number_of_thousands_of_digits_is_told_with_its_line(palace, content, line):
    try:
        _, bad = put(palace, content % ("9" * 5000))
    except BadInput as error:
        said = error.message
    else:
        said = f"line {bad[0].line}, {bad[0].reason}"
        assert [row[0] for row in rows(palace)] == ["one"]
    assert f"line {line}, a number of 5,00" in said
    assert "digits, more than 4,000" in said
    assert "sys." not in said


def test_an_array_with_bad_elements(palace):
    done, bad = put(palace, b'[{"text": "one"},\n 7,\n {"text": "\xff"},\n {"text": "four"}]', name="a.json")
    assert [row[0] for row in rows(palace)] == ["one", "four"]
    assert [row.line for row in bad] == [2, 3]


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        ("id,name\n1,x\n", "a.csv", "--map COLUMN=text"),
        ("{", "a.json", "cannot be read"),
        ("nothing", "a.json", "cannot be read"),
        ('{"a": 1}{"b": 2}'.encode("utf-16")[:-1], "a.json", "utf-16"),
    ],
)
def test_a_file_that_cannot_be_understood(palace, content, name, words):
    try:
        done, bad = put(palace, content, name=name)
    except BadInput as error:
        assert words in error.message
    else:
        assert bad, "nothing was said"
    assert rows(palace) == []


def test_lone_surrogates_are_replaced_and_counted(palace):
    good = "\n".join(json.dumps({"text": f"row {number}"}) for number in range(499))
    done, bad = put(
        palace, '{"text": "bad \\ud800 surrogate", "k\\udfff": "v\\ud800"}\n' + good, name="a.ndjson"
    )
    assert not bad
    assert done.report.added == 500
    assert done.report.replaced_characters == 3
    assert rows(palace, "text")[0] == ("bad \ufffd surrogate",)
    assert metadata(palace)[0] == {"k\ufffd": "v\ufffd"}


def test_surrogate_pairs_of_json_are_one_letter(palace):
    done, _ = put(palace, '{"text": "\\ud83d\\ude00"}', name="a.ndjson")
    assert rows(palace, "text") == [("😀",)]
    assert done.report.replaced_characters == 0


def test_nul_and_huge_fields(palace):
    huge = "word " * 60_000
    for name, content in (("a.csv", f'text,x\n"{huge}",a\0b\n'), ("a.ndjson", json.dumps({"text": "a\0b"}))):
        done, bad = put(palace, content, name=name)
        assert not bad
    assert rows(palace, "text") == [(huge,), ("a\0b",)]
    assert metadata(palace)[0] == {"x": "a\0b"}


def test_metadata_stays_json(palace):
    put(
        palace,
        '{"text": "x", "a": NaN, "b": 1e999, "c": {"d": [null, true]}, "metadata": {"e": 1}}',
        name="a.ndjson",
    )
    assert metadata(palace) == [{"a": "NaN", "b": "inf", "c": {"d": [None, True]}, "e": 1}]
    with palace.reader() as connection:
        assert connection.execute("select json_valid(metadata) from drawers").fetchone()[0] == 1


def test_metadata_of_an_exported_table_is_opened(palace):
    exported = {"id": 4, "drawer_id": "d4", "text": "x", "metadata": '{"heading": "H"}', "added_by": "mine"}
    put(palace, json.dumps([exported]), name="a.json")
    assert rows(palace, "drawer_id, added_by") == [("d4", "import")]
    assert metadata(palace) == [{"heading": "H", "id": 4, "added_by": "mine"}]


def test_importing_again_adds_nothing(palace):
    content = (
        '{"text": "same"}\n{"text": "same"}\n{"text": "other", "wing": "w"}\n{"id": 7, "text": "with id"}\n'
    )
    first, _ = put(palace, content, name="a.ndjson", wing="default")
    again, _ = put(palace, content, name="a.ndjson", wing="default")
    grown, _ = put(palace, '{"text": "new"}\n' + content, name="a.ndjson", wing="default")
    assert (first.report.added, again.report.added, again.report.unchanged, grown.report.added) == (
        4,
        0,
        4,
        1,
    )
    assert {row[1] for row in rows(palace)} == {"default", "w"}


def test_an_id_used_twice_in_a_file_is_reported_not_overwritten(palace):
    for content in ('[{"id": 1, "text": "one"}, {"id": 1, "text": "two"}]', "id,text\n1,one\n1,two\n"):
        _, bad = put(palace, content)
        assert len(bad) == 1
        assert "already used on line" in bad[0].reason
    assert rows(palace, "text") == [("one",)]


def test_an_id_prefix_keeps_two_files_apart(palace):
    put(palace, "id,text\n1,one\n", id_prefix="a:")
    put(palace, "id,text\n1,two\n", id_prefix="b:")
    assert rows(palace, "drawer_id, text") == [("a:1", "one"), ("b:1", "two")]


def test_columns_can_be_mapped(palace):
    content = "abstract,team,date,text\nThe abstract,blue,2026-03-14,a note\n"
    put(palace, content, columns={"Abstract": "text", "team": "wing", "date": "metadata"}, room="papers")
    assert rows(palace) == [("The abstract", "blue", "papers")]
    assert metadata(palace) == [{"date": "2026-03-14", "text": "a note"}]
    with pytest.raises(BadParameter, match="a column can be mapped to"):
        put(palace, content, columns={"abstract": "words"})


def test_dates(palace):
    lines = [
        {"text": "iso", "created_at": "2026-03-14T09:00:00Z"},
        {"text": "seconds", "timestamp": 1_700_000_000},
        {"text": "milliseconds", "timestamp": "1700000000000"},
        {"text": "words", "date": "last spring", "content_date": "2020"},
    ]
    _, bad = put(palace, json.dumps(lines))
    assert not bad
    assert rows(palace, "filed_at, content_date") == [
        ("2026-03-14T09:00:00Z", None),
        ("2023-11-14T22:13:20+00:00", None),
        ("2023-11-14T22:13:20+00:00", None),
        ("last spring", "2020"),
    ]


@pytest.mark.parametrize(
    "date", [2020, 20260314, "20260314", "202603141530", 202603141530, -5, 0, "2020", 1e18]
)
def test_a_number_that_is_no_clock_stays_as_it_is(palace, date):
    _, bad = put(palace, json.dumps([{"text": "x", "date": date}]))
    assert not bad
    assert rows(palace, "filed_at") == [(str(date),)]


def test_whole_numbers(palace):
    given = [3, "3", "3.0", 3.0, "", None, "x", 3.5, 1e300, True, [3], 10**400]
    _, bad = put(
        palace, json.dumps([{"text": str(at), "chunk_index": value} for at, value in enumerate(given)])
    )
    assert rows(palace, "chunk_index") == [(3,), (3,), (3,), (3,), (None,), (None,)]
    assert len(bad) == 6


def test_names_of_columns_may_be_written_in_any_way(palace):
    put(
        palace,
        '[{"Text": "x", "drawerID": "d", "sourceFile": "/s", "Created At": "2026-01-01", "chunk-index": 1}]',
    )
    assert rows(palace, "drawer_id, source_file, filed_at, chunk_index") == [("d", "/s", "2026-01-01", 1)]
    assert metadata(palace) == [{}]


def test_metadata_may_be_deep_but_not_bottomless(palace):
    deep, deeper = 1, 1
    for _ in range(50):
        deep = [deep]
    for _ in range(400):
        deeper = {"a": [deeper]}
    _, bad = put(palace, json.dumps([{"text": "deep", "x": deep}, {"text": "deeper", "x": deeper}]))
    assert rows(palace, "text") == [("deep",)]
    assert [row.reason for row in bad] == ["nested too deeply"]


def test_names_of_wings_and_rooms_are_any_text(palace):
    names = ["café-notes", "日本語", "O'Brien", "a/b", '"; drop', " ", "\u202eabc", "2024"]
    put(palace, json.dumps([{"text": str(i), "wing": name, "room": name} for i, name in enumerate(names)]))
    put(palace, json.dumps([{"text": "number", "wing": 2024}, {"text": "blank", "wing": "", "room": None}]))
    assert [row[1] for row in rows(palace)] == [*names, "2024", None]


def test_an_empty_text_is_a_text_in_json(palace):
    _, bad = put(palace, '[{"text": ""}, {"content": null}]')
    assert rows(palace, "text") == [("",)]
    assert [row.reason.split(":")[0] for row in bad] == ["no text"]


def test_nothing_to_import(palace):
    for content in ("", "[]", "text\n", '{"records": []}', "\n\n"):
        done, bad = put(palace, content)
        assert (done.records, bad) == (0, [])


def test_a_long_file_is_read_as_a_stream(palace):
    """The reader never holds more than a part of an NDJSON file."""

    class Endless(io.RawIOBase):
        taken = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            line = b'{"text": "again"}\n'
            data = (line * (len(buffer) // len(line) + 1))[: len(line) * (len(buffer) // len(line))]
            buffer[: len(data)] = data
            Endless.taken += len(data)
            return len(data)

    reader = read_rows(io.BufferedReader(Endless()), "a.ndjson")
    assert [next(reader).line for _ in range(1000)] == list(range(1, 1001))
    assert Endless.taken < 1_000_000


# Any text that a file can hold; surrogates are another test's.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
names = st.one_of(st.none(), texts)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(texts, names, names), max_size=8), st.sampled_from(["json", "ndjson"]))
def test_any_text_survives_json(tmp_path_factory, records, form):
    listed = [{"text": text, "wing": wing, "room": room} for text, wing, room in records]
    content = (
        json.dumps(listed)
        if form == "json"
        else "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in listed)
    )
    got = [row.value for row in read_rows(io.BytesIO(content.encode()), f"a.{form}")]
    assert got == listed


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(texts, texts), min_size=1, max_size=8),
    st.sampled_from(["csv", "tsv"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_text_survives_csv(records, form, newline):
    # By hand: csv writes no NUL before Python 3.11.
    content = "".join(
        ("\t" if form == "tsv" else ",").join('"' + cell.replace('"', '""') + '"' for cell in row) + newline
        for row in [("text", "wing"), *records]
    )
    got = list(read_rows(io.BytesIO(content.encode()), f"a.{form}"))
    assert not [row for row in got if isinstance(row, BadRow)]
    assert [(row.value.get("text", ""), row.value.get("wing", "")) for row in got] == records


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["a.json", "a.ndjson", "a.csv", "a.tsv", ""]))
def test_no_bytes_break_the_reader(data, name):
    try:
        found = list(read_rows(io.BytesIO(data), name))
    except BadInput:
        return
    assert all(row.line >= 1 for row in found)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=9,
    )
)
def test_any_json_is_a_drawer_or_a_reason(tmp_path_factory, value):
    with Palace.create(tmp_path_factory.getbasetemp() / "any.db") as palace:
        done, bad = put(
            palace,
            json.dumps(
                [value, {"text": "good", "extra": value}, {"text": value}, {"text": "t", "wing": value}]
            ),
        )
        assert done.records + done.bad_rows == 4
        with sqlite3.connect(palace.path) as connection:
            assert (
                connection.execute("select count(*) from drawers where not json_valid(metadata)").fetchone()[
                    0
                ]
                == 0
            )


def test_a_date_that_means_the_present_is_kept_as_the_text_that_it_is(tmp_path):
    lines = [{"text": "a good note"}, {"text": "another", "date": "now"}]
    with Palace.create(tmp_path / "p.db") as palace:
        stream = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
        assert import_records(palace, stream, name="notes.ndjson").bad_rows == 0
        with palace.reader() as connection:
            assert connection.execute("select filed_at from drawers where text = 'another'").fetchone() == (
                "now",
            )
