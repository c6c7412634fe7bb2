"""The command line: what each command says, its exit codes, and that no problem ends in a traceback."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli

from building import make_palace
from datasette_mempalace import cli as commands
from datasette_mempalace.cli import showing
from datasette_mempalace.cli.common import harmless
from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.errors import EmbedderUnavailable, MempalaceError
from datasette_mempalace.palace import Palace
from datasette_mempalace.request import parse_request
from datasette_mempalace.schema import get_setting
from datasette_mempalace.searcher import run_search
from datasette_mempalace.vectors import embed_pending

commands.register(datasette_cli)


def run(*arguments, input=None, **options):
    """Run a command; it must not end in a traceback."""
    result = CliRunner(**options).invoke(datasette_cli, ["mempalace", *map(str, arguments)], input=input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert "This should not happen" not in result.output
    return result


def drawers(path, columns="text"):
    with Palace.open(path) as palace, palace.reader() as connection:
        return connection.execute(f"select {columns} from drawers order by id").fetchall()


@pytest.fixture
def notes(tmp_path):
    """A folder of notes."""
    folder = tmp_path / "notes"
    (folder / "home").mkdir(parents=True)
    (folder / "home" / "keys.md").write_text("# Keys\n\nThe spare key lies under the blue flower pot.")
    (folder / "work.md").write_text("# Work\n\nInvoices are copied to the archive every night.")
    return folder


@pytest.fixture
def palace(tmp_path, notes):
    path = tmp_path / "notes.db"
    assert run("mine", path, notes).exit_code == 0
    return path


def test_init_is_idempotent_and_says_what_it_made(tmp_path):
    path = tmp_path / "new.db"
    first, second = run("init", path), run("init", path)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "is made; its embedding model is all-MiniLM-L6-v2" in first.output
    assert "is up to date" in second.output


def test_init_in_another_database_keeps_its_tables(tmp_path):
    import sqlite3

    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table mine(x)")
    assert run("init", path).exit_code == 0
    with sqlite3.connect(path) as connection:
        names = {row[0] for row in connection.execute("select name from sqlite_master")}
    assert {"mine", "drawers"} <= names


def test_init_with_an_embedder(tmp_path):
    path = tmp_path / "new.db"
    result = run(
        "init", path, "--embedder", "ollama", "--embedder-config", '{"model_name": "nomic-embed-text"}'
    )
    assert result.exit_code == 0, result.output
    with Palace.open(path) as palace, palace.reader() as connection:
        assert json.loads(get_setting(connection, "embedder"))["config"] == {"model_name": "nomic-embed-text"}
    assert run("init", path, "--embedder", "default").exit_code == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--embedder", "no-such"], "embedder: 'no-such' is not allowed; it must be one of all-MiniLM-L6-v2"),
        (["--embedder", "ollama", "--embedder-config", "[]"], "it must be a JSON object"),
        (["--embedder", "ollama", "--embedder-config", "{"], "it must be a JSON object"),
        (["--embedder-config", "{}"], "needs --embedder"),
    ],
)
def test_init_with_a_wrong_embedder_makes_nothing(tmp_path, options, words):
    result = run("init", tmp_path / "new.db", *options)
    assert result.exit_code == 2
    assert words in result.output
    assert os.listdir(tmp_path) == []


def test_mine_tells_what_it_did(tmp_path, notes):
    (notes / "picture.png").write_bytes(b"\x89PNG\0")
    (notes / ".env").write_text("SECRET=1")
    path = tmp_path / "notes.db"
    first = run("mine", path, notes)
    assert first.exit_code == 0
    assert "Made the palace" in first.stderr
    assert "Read 2 files into the wing 'notes'. Drawers: 2 added." in first.stdout
    assert "Left out 1: binary (picture.png)." in first.stdout
    assert "Left out 1: may hold secrets (.env)." in first.stdout
    assert "Embedded 4 texts." in first.stdout
    again = run("mine", path, notes)
    assert "Drawers: 2 unchanged." in again.stdout
    assert "Embedded" not in again.stdout
    (notes / "work.md").unlink()
    assert "1 file no longer there" in run("mine", path, notes).stdout


def test_mine_of_no_folder(tmp_path):
    (tmp_path / "a.md").write_text("A note.")
    for name, words in (("nowhere", "does not exist"), ("a.md", "is a file, not a folder")):
        result = run("mine", tmp_path / "x.db", tmp_path / name)
        assert result.exit_code == 2
        assert words in result.output
        assert not (tmp_path / "x.db").exists()


def test_mine_of_a_folder_without_texts_says_so(tmp_path, palace, notes):
    (tmp_path / "bare").mkdir()
    assert "No text was found to read" in run("mine", tmp_path / "x.db", tmp_path / "bare").stderr
    assert "No text was found" not in run("mine", palace, notes).stderr


def test_import_reports_bad_rows_and_stores_the_rest(tmp_path):
    path = tmp_path / "p.db"
    (tmp_path / "a.ndjson").write_text('{"text": "one"}\n{"broken\n{"text": "three \\ud800"}\n')
    result = run("import", path, tmp_path / "a.ndjson", "--wing", "w")
    assert result.exit_code == 1
    assert "Line 2: not JSON" in result.stderr
    assert "Read 2 records and 1 record that could not be used. Drawers: 2 added." in result.stdout
    assert "1 character that no text can hold became U+FFFD." in result.stdout
    assert drawers(path, "text, wing") == [("one", "w"), ("three \ufffd", "w")]


def test_import_from_standard_input(tmp_path):
    path = tmp_path / "p.db"
    result = run(
        "import", path, "-", "--map", "note=text", "--map", "team=wing", input="note,team\nhello,blue\n"
    )
    assert result.exit_code == 0, result.output
    assert drawers(path, "text, wing") == [("hello", "blue")]
    assert (
        "1 unchanged"
        in run(
            "import", path, "-", "--map", "note=text", "--map", "team=wing", input="note,team\nhello,blue\n"
        ).output
    )


def test_import_says_that_it_replaced_drawers(tmp_path):
    path = tmp_path / "p.db"
    assert "--id-prefix" not in run("import", path, "-", input="id,text\n1,one\n").stderr
    assert "--id-prefix" in run("import", path, "-", input="id,text\n1,two\n").stderr
    assert run("import", path, "-", "--id-prefix", "b-", input="id,text\n1,three\n").exit_code == 0
    assert drawers(path, "drawer_id, text") == [("1", "two"), ("b-1", "three")]


def test_import_shows_only_the_first_bad_rows(tmp_path):
    (tmp_path / "a.ndjson").write_text("{\n" * 80)
    result = run("import", tmp_path / "p.db", tmp_path / "a.ndjson")
    assert result.exit_code == 1
    assert result.stderr.count("Line ") == 50
    assert "30 more lines" in result.stderr


@pytest.mark.parametrize(
    "text",
    ["The spare key of the shed hangs, as ever, behind the pot.\n", 'text": "x"}\n', "# Shed\n\nA\tnote.\n"],
)
def test_import_of_what_is_no_table_says_what_may_have_been_meant(tmp_path, text):
    (tmp_path / "shed.md").write_text(text)
    for file, given in ((tmp_path / "shed.md", None), ("-", text)):
        result = run("import", tmp_path / "p.db", file, input=given)
        assert result.exit_code == 2
        assert "neither JSON nor CSV with a column text, content" in result.stderr
        assert "datasette mempalace mine PALACE FOLDER" in result.stderr
        assert len(result.stderr.splitlines()) <= 2
    assert not (tmp_path / "p.db").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "{new}", "{dir}/nowhere.csv"],
        ["import", "{new}", "{dir}/prose.txt"],
        ["import", "{new}", "{dir}/broken.json"],
        ["import", "{new}", "{dir}/unusable.ndjson"],
        ["import", "{new}", "{dir}/a.csv", "--map", "text=colour"],
        ["import", "{new}", "{dir}/a.csv", "--map", "text=metadata"],
        ["import", "{new}", "{dir}/a.csv", "--re-embed"],
        ["import", "{new}", "{dir}/a.csv", "--config", "{dir}/bad-setting.json"],
        ["import", "{new}", "{dir}/newer.ndjson"],
        ["mine", "{new}", "{dir}/nowhere"],
        ["mine", "{new}", "{dir}/a.csv"],
        ["mine", "{new}", "{dir}/notes", "--max-bytes", "0"],
        ["import-palace", "{new}", "{dir}/notes"],
        ["init", "{new}", "--embedder", "nobody"],
        *(
            [*command, "--config", "{dir}/unknown-embedder.json"]
            for command in (
                ["init", "{new}"],
                ["mine", "{new}", "{dir}/notes"],
                ["import", "{new}", "{dir}/a.csv"],
                ["init", "{dir}/other.db"],
                ["demo", "{new}"],
            )
        ),
    ],
)
def test_what_is_refused_makes_no_palace(tmp_path, notes, arguments):
    for name, content in {
        "prose.txt": "The spare key hangs behind the pot.\n",
        "broken.json": '[{"text": ',
        "unusable.ndjson": '{"colour": "red"}\n{"text": [1]}\n',
        "a.csv": "text\nA note\n",
        "newer.ndjson": '{"mempalace_export": 99}\n',
        "bad-setting.json": '{"plugins": {"datasette-mempalace": {"max_n_results": "many"}}}',
        "unknown-embedder.json": '{"plugins": {"datasette-mempalace": {"embedder": "no-such"}}}',
    }.items():
        (tmp_path / name).write_text(content)
    sqlite3.connect(tmp_path / "other.db").execute("create table notes (id)").connection.close()
    before = sorted(tmp_path.rglob("*"))
    result = run(*(argument.format(new=tmp_path / "new.db", dir=tmp_path) for argument in arguments))
    assert result.exit_code in (1, 2), result.output
    assert sorted(tmp_path.rglob("*")) == before
    assert sqlite3.connect(tmp_path / "other.db").execute("select name from sqlite_master").fetchall() == [
        ("notes",)
    ]
    if "unknown-embedder" in arguments[-1]:
        assert "embedder: 'no-such' is not allowed; it must be one of all-MiniLM-L6-v2" in result.stderr
        assert result.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{dir}/nowhere.csv"], "does not exist"),
        (["{dir}"], "is a folder; mine it"),
        (["{dir}/a.csv", "--map", "x"], "COLUMN=FIELD"),
        (["{dir}/a.csv", "--map", "x=colour"], "a column can be mapped to"),
        (["{dir}/a.csv"], "the columns are x, y"),
        (["{dir}/a.csv", "--format", "xlsx"], "xlsx"),
    ],
)
def test_import_of_bad_input(tmp_path, arguments, words):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    result = run(
        "import", tmp_path / "p.db", *[argument.replace("{dir}", str(tmp_path)) for argument in arguments]
    )
    assert result.exit_code == 2
    assert words in result.output


def test_delete_asks_counts_and_narrows(palace):
    assert run("delete", palace, "--wing", "notes", input="n\n").exit_code == 1
    assert len(drawers(palace)) == 2
    result = run("delete", palace, "--wing", "notes", "--room", "home", "--yes")
    assert "Deleted 1 drawer." in result.output
    assert [row[0][:6] for row in drawers(palace)] == ["# Work"]
    result = run("delete", palace, "--wing", "nope", "--yes")
    assert (result.exit_code, "No drawers match" in result.output) == (0, True)
    result = run("delete", palace, "--all", input="y\n")
    assert "Delete 1 drawer" in result.output
    assert drawers(palace) == []


def test_delete_by_id_and_source(palace, notes, monkeypatch):
    known = drawers(palace, "drawer_id")[0][0]
    result = run("delete", palace, "--drawer-id", known, "--drawer-id", "nope", "--yes")
    assert result.exit_code == 1
    assert "There is no drawer 'nope'." in result.stderr
    assert "Deleted 1 drawer." in result.stdout
    left = drawers(palace, "source_file")[0][0]
    monkeypatch.chdir(notes)
    assert (
        "Deleted 1 drawer." in run("delete", palace, "--source-file", os.path.relpath(left), "--yes").output
    )


@pytest.mark.parametrize(
    "options", [[], ["--all", "--wing", "notes"], ["--wing", ""], ["--drawer-id", ""], ["--yes"]]
)
def test_delete_never_means_everything_by_accident(palace, options):
    result = run("delete", palace, *options)
    assert result.exit_code == 2
    assert len(drawers(palace)) == 2


def test_sync_embeds_what_sql_has_written(palace):
    with Palace.open(palace) as opened:
        put_drawers(opened, [Drawer("a drawer that nobody embedded")])
    result = run("sync", palace)
    assert result.exit_code == 0
    assert "Embedded 1 text." in result.output
    assert "Mirror:" in result.output
    assert "Embedded 0 texts." in run("sync", palace).output


def test_sync_says_when_another_process_owns_the_mirror(palace):
    with Palace.open(palace) as serving:
        serving.mirror.open()
        result = run("sync", palace)
    assert result.exit_code == 0
    assert "owns the mirror" in result.output
    assert "It will mirror what was changed here." in result.output


def test_status(palace):
    found = json.loads(run("status", palace, "--json").output)
    assert (found["drawers"], found["wings"], found["rooms"], found["pending_vectors"]) == (2, 1, 2, 0)
    result = run("status", palace)
    assert result.exit_code == 0
    assert "2 in 1 wing and 2 rooms, from 2 sources" in result.output
    assert "all-MiniLM-L6-v2" in result.output


def test_search_for_people(palace):
    result = run("search", palace, "where", "is", "the", "spare", "key")
    assert result.exit_code == 0
    assert " 1. notes / home" in result.stdout
    assert "keys.md" in result.stdout
    assert "similarity" in result.stdout
    assert "BM25" in result.stdout
    assert "under the blue flower pot" in " ".join(result.stdout.split())
    assert "\x1b" not in result.output
    assert "\x01" not in result.output


def test_search_as_json_is_the_answer(palace, palace_path):
    options = [
        "--wing",
        "acme-app",
        "--wing",
        "acme_app",
        "--room",
        "auth",
        "--n-results",
        "3",
        "--ranking",
        "mempalace",
    ]
    given = {
        "q": "login token",
        "wing": ["acme-app", "acme_app"],
        "room": ["auth"],
        "n_results": 3,
        "ranking": "mempalace",
    }
    result = run("search", palace_path, "--query", "login token", *options, "--json")
    with Palace.open(palace_path) as opened:
        expected = run_search(opened, parse_request(given, opened.settings))
    got = json.loads(result.stdout)
    for answer in (got, expected):
        answer.pop("timings_ms")
    assert got == expected
    assert len(got["results"]) == 3


def test_search_goes_on_behind_what_was_shown(palace_path):
    first = json.loads(run("search", palace_path, "token", "--n-results", "3", "--json").stdout)
    second = json.loads(
        run("search", palace_path, "token", "--n-results", "3", "--next", first["next"], "--json").stdout
    )
    assert [hit["rank"] for hit in second["results"]] == [4, 5, 6]
    assert f"--next {first['next']}" in run("search", palace_path, "token", "--n-results", "3").stdout


def test_search_by_words_only_says_so(palace):
    result = run("search", palace, "spare key", "--words-only")
    assert result.exit_code == 0
    assert "Words only:" in result.stderr
    assert "words only" in result.stdout
    assert "similarity" not in result.stdout


def test_search_without_hits(palace, empty_path):
    for path, words in ((empty_path, "anything"), (palace, "zzzzqqqq")):
        result = run("search", path, words, "--wing", "nowhere")
        assert result.exit_code == 0
        assert result.stdout == ""
        assert "Nothing found" in result.stderr


def test_search_in_an_empty_palace_says_how_to_fill_it(palace, empty_path):
    said = run("search", empty_path, "anything").stderr
    assert "The palace is empty; fill it with: datasette mempalace mine PALACE FOLDER" in said
    assert "sync" not in said
    assert "empty" not in run("search", palace, "zzzzqqqq").stderr


def test_search_names_what_may_have_been_meant(palace_path):
    result = run("search", palace_path, "token", "--wing", "acme-ap")
    assert "There is no wing 'acme-ap'; did you mean 'acme-app'" in result.stderr


@pytest.mark.parametrize("command", [("mine",), ("mine", "notes.db"), ("search", "key")], ids=" ".join)
def test_a_folder_where_the_palace_belongs_is_told(tmp_path, command):
    name, *rest = command
    done = run(name, tmp_path, *rest)
    assert done.exit_code == 2
    assert (
        f"{str(tmp_path)!r} is a folder; the palace comes first, a database such as notes.db" in done.stderr
    )


@pytest.mark.parametrize(
    "command", [("delete", "--yes"), ("similar", 1), ("duplicates",)], ids=lambda command: command[0]
)
def test_commands_that_find_nothing_in_a_wing_name_what_may_have_been_meant(palace, command):
    name, *options = command
    told = "There is no wing 'nots'; did you mean 'notes'?"
    done = run(name, palace, *options, "--wing", "nots")
    assert (done.exit_code, told in done.stderr) == (0, True)
    assert "There is no" not in run(name, palace, *options, "--wing", "notes").stderr


@pytest.mark.parametrize("name", ["café-notes", "日本語", "O'Brien", "a/b", '"; drop'])
def test_search_in_wings_of_any_name(palace_path, name):
    answer = json.loads(run("search", palace_path, "token", "--wing", name, "--json").stdout)
    assert {hit["wing"] for hit in answer["results"]} == {name}


def test_empty_filters_are_none(palace_path):
    plain = json.loads(run("search", palace_path, "token", "--json").stdout)
    empty = json.loads(
        run(
            "search",
            palace_path,
            "token",
            "--wing",
            "",
            "--room",
            "",
            "--source-file",
            "",
            "--since",
            "",
            "--json",
        ).stdout
    )
    assert [hit["id"] for hit in empty["results"]] == [hit["id"] for hit in plain["results"]]


def test_search_in_a_date_window(palace_path):
    options = ["--since", "2026-04-01", "--before", "2026-05-01", "--json"]
    answer = json.loads(run("search", palace_path, "login", *options).stdout)
    assert answer["results"]
    assert all(hit["filed_at"].startswith("2026-04") for hit in answer["results"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--n-results", "0"], "n_results: '0' is not allowed; it must be a whole number from 1 to 1,000"),
        (["--n-results", "ten"], "n_results: 'ten'"),
        (["--max-distance", "3"], "max_distance: '3'"),
        (["--since", "yesterday"], "since: 'yesterday' is not allowed; it must be a date"),
        (["--since", "2026-04-02", "--before", "2026-04-01"], "must lie before the end"),
        (["--candidate-strategy", "best"], "it must be one of union, vector"),
        (["--ranking", "best"], "it must be one of palace, mempalace"),
        (["--query", "twice"], "the words must be given once"),
        (["--colour", "red"], "No such option"),
    ],
)
def test_search_with_bad_input(palace, options, words):
    result = run("search", palace, "key", *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in result.stderr


def test_search_without_words(palace):
    for words in ([], [" "], ["--query", ""]):
        result = run("search", palace, *words)
        assert result.exit_code == 2
        assert "no words to search for: give them after the palace" in result.stderr


@pytest.mark.parametrize(
    "command", [["search", "{}", "x"], ["status", "{}"], ["sync", "{}"], ["delete", "{}", "--all"]]
)
def test_no_palace(tmp_path, command):
    (tmp_path / "text.db").write_text("this is no database, only a text of some length " * 30)
    for name in ("nowhere.db", "text.db"):
        result = run(*[part.replace("{}", str(tmp_path / name)) for part in command])
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
    assert "datasette mempalace init" in run("status", tmp_path / "nowhere.db").stderr
    forgotten = run("search", tmp_path / "spare", "key").stderr
    assert "spare does not exist. The first argument is the palace" in forgotten
    assert not (tmp_path / "nowhere.db").exists()


def test_a_missing_model_is_told_and_the_texts_are_found_by_words(tmp_path, notes, monkeypatch):
    def missing(*_, **__):
        raise EmbedderUnavailable("The embedding model is not here.")

    monkeypatch.setattr("datasette_mempalace.importers.files.embed_pending", missing)
    monkeypatch.setattr("datasette_mempalace.vectors.embed_pending", missing)
    path = tmp_path / "p.db"
    for result in (run("mine", path, notes), run("import", path, "-", input='{"text": "flower"}')):
        assert result.exit_code == 1
        assert "found by their words" in result.stderr
        assert f"datasette mempalace sync {path}" in result.stderr
    assert "blue flower pot" in run("search", path, "flower", "--words-only").stdout


def test_a_palace_that_can_only_be_read(palace, monkeypatch):
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **rest: mode != os.W_OK and real(path, mode, **rest))
    result = run("delete", palace, "--all", "--yes")
    assert result.exit_code == 1
    assert "can only be read" in result.stderr


@pytest.mark.parametrize("form", ["yaml", "json", "database"])
def test_settings_come_from_datasettes_file(palace, tmp_path, form):
    block = {"datasette-mempalace": {"n_results": 1, "ranking": {"$env": "TEST_MEMPALACE_RANKING"}}}
    config = {"plugins": block}
    if form == "database":
        config = {"databases": {"notes": config}, "plugins": {"datasette-mempalace": {"n_results": 2}}}
    file = tmp_path / ("metadata.yml" if form == "yaml" else "datasette.json")
    text = "plugins:\n  datasette-mempalace:\n    n_results: 1\n    ranking:\n      $env: TEST_MEMPALACE_RANKING\n"
    file.write_text(text if form == "yaml" else json.dumps(config))
    result = run(
        "search",
        palace,
        "key archive",
        "--config",
        file,
        "--json",
        env={"TEST_MEMPALACE_RANKING": "mempalace"},
    )
    answer = json.loads(result.stdout)
    assert (answer["n_results"], answer["ranking"]) == (1, "mempalace")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("plugins: {datasette-mempalace: {n_result: 3}}", "did you mean n_results?"),
        ("plugins: [", "cannot be read"),
        ("- a list", "must hold a mapping"),
    ],
)
def test_wrong_settings(palace, tmp_path, content, words):
    (tmp_path / "bad.yml").write_text(content)
    result = run("search", palace, "key", "--config", tmp_path / "bad.yml")
    assert result.exit_code == 2
    assert words in result.stderr


def test_drawers_cannot_command_the_terminal(tmp_path):
    path = tmp_path / "p.db"
    evil = "\x1b[2J\x1b]0;title\x07 \x9b31m \u202egnp.exe key \r over"
    with Palace.create(path) as palace:
        put_drawers(
            palace, [Drawer(f"The key {evil}", wing=evil, room="r\nnext line", source_file=f"/x/{evil}")]
        )
        embed_pending(palace)
    result = run("search", path, "key", "--wing", evil)
    for output in (result.output, run("search", path, "key", "--json").output):
        assert not [sign for sign in "\x1b\x07\x9b\u202e\r" if sign in output]
    assert harmless("a\x1bb\tc\n") == "a␛b\tc\n"


def test_matches_are_bold_in_a_terminal():
    look = showing.Look(width=40, styled=True)
    lines = list(showing._passage("one \x01two\x02 three \x01" + "four " * 9 + "five\x02 six", look))
    assert "\x1b[33m\x1b[1mtwo\x1b[0m three" in lines[0]
    assert all("\x1b" in line for line in lines)
    assert lines[-1].endswith("six")
    plain = list(showing._passage("one \x01two\x02 three", showing.Look(width=40)))
    assert plain == ["    one two three"]


def test_hits_tell_where_else_their_text_lies(palace_path):
    out = run("search", palace_path, "nightly job copies every invoice", "--wing", "finance").stdout
    assert "also in finance / jobs" in out


def test_as_a_program(palace):
    """The command in a process of its own, in a terminal without UTF-8."""
    program = (
        "from datasette.cli import cli; from datasette_mempalace import cli as c; c.register(cli); cli()"
    )
    root = os.path.dirname(os.path.dirname(__file__))
    command = [sys.executable, "-c", program, "mempalace", "search", str(palace), "key"]
    plain = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, capture_output=True
    )
    assert plain.returncode == 0
    assert b"\\u2588" in plain.stdout
    assert plain.stderr == b""


def test_help_names_every_command():
    out = run("--help").output
    for command in ("init", "mine", "import", "delete", "sync", "search", "status", "demo"):
        assert f"  {command} " in out
        assert run(command, "--help").exit_code == 0


def test_search_names_a_chunk_of_several_and_a_closet_that_helped(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "short.md").write_text("The boiler is serviced every October.")
    (tmp_path / "notes" / "long.md").write_text(
        "\n\n".join(f"The engineer wrote line {n}. " * 9 for n in range(9))
    )
    path, config = tmp_path / "notes.db", tmp_path / "metadata.yml"
    run("mine", path, tmp_path / "notes")
    shown = run("search", path, "the boiler").output
    assert "chunk 1 of 1" not in shown
    assert re.search(r"long\.md · chunk \d of \d ", shown)
    assert "closet" not in shown, "it was near and changed nothing"
    config.write_text("plugins: {datasette-mempalace: {closet_boost_in_score: true}}")
    assert "lifted by a closet" in run("search", path, "the boiler", "--config", config).output


def test_search_explains_and_filters_by_column(palace):
    result = run(
        "search",
        palace,
        "spare key",
        "--explain",
        "--filter",
        "added_by=mine",
        "--filter",
        "chunk_index__lt=1",
    )
    assert result.exit_code == 0
    assert "nearest in meaning: number 1" in result.output
    assert "0.6 × similarity" in result.output
    assert "Nothing found" in run("search", palace, "spare key", "--filter", "added_by=nobody").output
    for wrong in ("added_by", "colour=red", "=x"):
        result = run("search", palace, "spare key", "--filter", wrong)
        assert result.exit_code == 2
        for told in ("COLUMN=VALUE", "added_by=anna", "drawer_id", "metadata.KEY"):
            assert told in result.stderr


def test_mine_says_what_it_kept_of_files_that_it_cannot_read_any_more(palace, notes):
    (notes / "work.md").write_bytes(b"\x00\x01\x02" * 400)
    result = run("mine", palace, notes)
    assert "1 file could not be read this time: what was filed earlier was kept." in result.output
    assert len(drawers(palace)) == 2


@pytest.mark.parametrize(("command", "argument"), [("search", "key"), ("similar", 1), ("duplicates", None)])
def test_every_command_that_looks_is_narrowed_by_the_same_options(
    palace, notes, monkeypatch, command, argument
):
    monkeypatch.chdir(notes)
    done = run(
        command, palace, *([] if argument is None else [argument]), "--json",
        "--wing", "notes", "--room", "home", "--source-file", "home/keys.md",
        "--since", "2020-01-01", "--before", "2020-02-01", "--filter", "added_by=anna",
    )  # fmt: skip
    answer = json.loads(done.stdout)
    filters = answer["filters"]
    assert (filters["wing"], filters["room"]) == (["notes"], ["home"])
    assert filters["source_file"] == [str(notes / "home" / "keys.md")]
    assert (filters["since"], filters["before"]) == ("2020-01-01", "2020-02-01")
    assert filters["added_by__exact"] == ["anna"]
    assert answer["in_scope"] == 0


@pytest.mark.parametrize(
    ("command", "where", "says"),
    [
        (
            ["mine", "{new}", "{dir}/notes"],
            "datasette_mempalace.vectors.embed_pending",
            "filed so far is kept",
        ),
        (
            ["import", "{new}", "{dir}/a.csv"],
            "datasette_mempalace.vectors.embed_pending",
            "filed so far is kept",
        ),
        (["sync", "{old}"], "datasette_mempalace.vectors.embed_pending", "embedded so far is kept"),
        (["demo", "{new}"], "datasette_mempalace.vectors.embed_pending", "begins anew"),
        (
            ["export", "{old}", "{dir}/out.csv"],
            "datasette_mempalace.exporters.table.write",
            "No half of an export",
        ),
        (["doctor", "{old}"], "datasette_mempalace.doctor.examine", "Interrupted."),
    ],
)
def test_ctrl_c_says_what_is_kept(tmp_path, notes, palace, monkeypatch, command, where, says):
    (tmp_path / "a.csv").write_text("text\nA note\n")

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, interrupt)
        patch.setattr("datasette_mempalace.importers.files.embed_pending", interrupt)
        patch.setattr("datasette_mempalace.importers.python_docs.file_python_docs", lambda *_: None)
        names = {"new": tmp_path / "new.db", "old": palace, "dir": tmp_path}
        arguments = [argument.format(**names) for argument in command]
        result = run(*arguments)
    assert (result.exit_code, says in result.stderr, "Aborted" in result.stderr) == (1, True, False), (
        result.output
    )
    assert not (tmp_path / "out.csv").exists()
    if "kept" in says:
        assert run(*arguments).exit_code == 0
        assert command[0] != "import" or drawers(tmp_path / "new.db", "text") == [("A note",)]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_real_ctrl_c_keeps_what_was_filed_and_the_same_command_goes_on(tmp_path):
    path, file = tmp_path / "new.db", tmp_path / "many.ndjson"
    file.write_text("".join(json.dumps({"text": f"note {n} " * 40}) + "\n" for n in range(2_000)))
    command = [sys.executable, "-m", "datasette", "mempalace", "import", str(path), str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not _has_vectors(path) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1]
    assert (process.returncode, "filed so far is kept; the same command again goes on" in said) == (
        1,
        True,
    ), said
    assert "Traceback" not in said
    assert _has_vectors(path)


def _has_vectors(path):
    try:
        with Palace.open(path, read_only=True) as palace, palace.reader() as connection:
            return connection.execute("select count(*) from drawer_vectors").fetchone()[0] > 0
    except MempalaceError:
        return False


def test_a_link_to_a_palace_has_the_mirror_of_the_palace(tmp_path):
    palace, link = tmp_path / "palace.db", tmp_path / "elsewhere" / "link.db"
    with make_palace(palace, [("the red fox",)], mirror=True):
        pass
    link.parent.mkdir()
    link.symlink_to(palace)
    result = run("status", link, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["mirror"]["path"] == f"{palace}.chroma"
    assert json.loads(result.stdout)["mirror"]["state"] == "in step"
    for command in (("sync", link), ("doctor", link), ("search", link, "fox")):
        result = run(*command)
        assert result.exit_code == 0, result.output
    assert [file.name for file in link.parent.iterdir()] == ["link.db"]
    result = run("export", link, f"{palace}.chroma", "--format", "markdown", "--force")
    assert result.exit_code == 2
    assert "belongs to the palace itself" in result.output
