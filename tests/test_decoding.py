"""Files of records as editors, PowerShell and gzip leave them: read as what they were, or refused before a palace is made."""

import codecs
import gzip
import json
import os
import sqlite3
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from building import make_palace
from datasette_mempalace.cli import mempalace, register
from test_exporting import contents

if "import" not in mempalace.commands:
    register(SimpleNamespace(add_command=lambda command: None))

SAVED_AS = {
    "UTF-8 with its mark": lambda data: codecs.BOM_UTF8 + data,
    "UTF-8 with two": lambda data: codecs.BOM_UTF8 * 2 + data,
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "UTF-16, the other way round": lambda data: codecs.BOM_UTF16_BE + data.decode().encode("utf-16-be"),
    "UTF-16 with line ends of Windows": lambda data: data.decode().replace("\n", "\r\n").encode("utf-16"),
    "UTF-32": lambda data: data.decode().encode("utf-32"),
    "gzip": gzip.compress,
    "gzip of UTF-16": lambda data: gzip.compress(data.decode().encode("utf-16")),
}
TEXT = "Grüße, 東京 🦊"
RECORDS = {
    "json": json.dumps([{"text": TEXT}], ensure_ascii=False, indent=1),
    "ndjson": json.dumps({"text": TEXT}, ensure_ascii=False) + "\n",
    "csv": f'text,wing\n"{TEXT}",\n',
}


def run(*arguments, **options):
    return CliRunner().invoke(mempalace, [str(argument) for argument in arguments], **options)


@pytest.fixture(scope="module")
def palace(tmp_path_factory):
    path = tmp_path_factory.mktemp("decoding") / "palace.db"
    make_palace(path, [(TEXT, "w"), ("two", "w")]).close()
    return path


@pytest.mark.parametrize("saved_as", SAVED_AS)
def test_an_export_is_read_back_however_it_was_saved(tmp_path, palace, saved_as):
    data = SAVED_AS[saved_as](run("export", palace, "--vectors").stdout_bytes)
    (tmp_path / "notes.ndjson").write_bytes(data)
    for name, file, given in (("file.db", tmp_path / "notes.ndjson", None), ("piped.db", "-", data)):
        done = run("import", tmp_path / name, file, input=given)
        assert (done.exit_code, "Vectors taken: 2." in done.stdout) == (0, True), done.output
        assert contents(tmp_path / name) == contents(palace)


@pytest.mark.parametrize("form", [*RECORDS, "csv of an export"])
@pytest.mark.parametrize("saved_as", SAVED_AS)
def test_records_are_read_however_they_were_saved(tmp_path, palace, form, saved_as):
    plain = (
        RECORDS[form].encode() if form in RECORDS else run("export", palace, "--format", "csv").stdout_bytes
    )
    data = SAVED_AS[saved_as](plain)
    file = tmp_path / f"a.{form.partition(' ')[0]}{'.gz' if 'gzip' in saved_as else ''}"
    file.write_bytes(data)
    for name, source, given in (("file.db", file, None), ("piped.db", "-", data)):
        done = run("import", tmp_path / name, source, input=given)
        assert done.exit_code == 0, done.output
        connection = sqlite3.connect(tmp_path / name)
        assert (TEXT,) in connection.execute("select text from drawers").fetchall()
        connection.close()


LONG = b"".join(b'{"text": "%d"}\n' % number for number in range(20_000))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (LONG.decode().encode("utf-16") + b"\x00", "utf-16"),
        (LONG.decode().encode("utf-16") + b"\x00\xd8", "utf-16"),
        (LONG.decode().encode("utf-32")[:-2], "utf-32"),
        (gzip.compress(LONG, mtime=0)[:-20], "cannot be unpacked"),
        (gzip.compress(LONG, mtime=0)[:-8] + bytes(8), "cannot be unpacked"),
        (b"\x1f\x8b\x08 is no gzip at all", "cannot be unpacked"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "no text: byte 0x89"),
        (b"SQLite format 3\x00\x10\x00", "no text: byte 0x00"),
        (b"PK\x03\x04\x14\x00", "no text: byte 0x03"),
        ("text,größe\na,b\n".encode("latin-1"), "no text: byte 0xf6"),
        ("text\na\n".encode("utf-16-le"), "without its mark"),
        ('{"mempalace_export": 1}\n'.encode("utf-16-be"), "without its mark"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a"])
def test_what_cannot_be_decoded_is_told_without_its_bytes_and_makes_no_palace(tmp_path, data, says, name):
    (tmp_path / name).write_bytes(data)
    for file, given in ((tmp_path / name, None), ("-", data)):
        done = run("import", tmp_path / "p.db", file, input=given)
        assert (done.exit_code, says in done.stderr) == (2, True), done.output
        assert done.stderr.isascii()
        assert done.stderr.replace("\n", "").isprintable()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "data", [b"", b" \n\r\n", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, gzip.compress(b"", mtime=0)]
)
def test_an_empty_file_is_told_and_makes_no_palace(tmp_path, data):
    (tmp_path / "a.csv").write_bytes(data)
    for file, given in ((tmp_path / "a.csv", None), ("-", data), (os.devnull, None)):
        done = run("import", tmp_path / "p.db", file, input=given)
        assert (done.exit_code, "is empty, so there is nothing to import" in done.stderr) == (2, True), (
            done.output
        )
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_what_is_packed_over_and_over_is_refused(tmp_path):
    data = b'{"text": "one"}\n'
    for _ in range(3):
        data = gzip.compress(data, mtime=0)
    done = run("import", tmp_path / "three.db", "-", input=data)
    assert done.exit_code == 0, done.output
    for _ in range(2_000):
        data = gzip.compress(data, 1, mtime=0)
    done = run("import", tmp_path / "many.db", "-", input=data)
    assert (done.exit_code, "more than 3 times over; unpack it first" in done.stderr) == (2, True), (
        done.output
    )
    assert not (tmp_path / "many.db").exists()


def test_a_small_file_that_unpacks_to_hundreds_of_megabytes_is_refused(tmp_path):
    with gzip.open(tmp_path / "a.gz", "wb", 1) as file:
        file.write(b'{"text": "')
        for _ in range(260):
            file.write(b" abc" * 2**18)
    done = run("import", tmp_path / "p.db", tmp_path / "a.gz")
    assert (done.exit_code, "unpack it yourself" in done.stderr) == (2, True), done.output
    assert [path.name for path in tmp_path.iterdir()] == ["a.gz"]
