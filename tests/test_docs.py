"""The documentation is true: what exists is described, what is described exists, and the examples run."""

import json
import re
import shlex
import shutil
import subprocess
import textwrap
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from cogapp import Cog
from datasette.utils import resolve_env_secrets
from sqlite_utils.cli import cli as sqlite_utils_cli

from conftest import LONG
from datasette_mempalace import duplicates, search_table, similar, similar_table
from datasette_mempalace.cli import mempalace, register
from datasette_mempalace.config import Settings, read_settings
from datasette_mempalace.request import PARAMETERS
from datasette_mempalace.sql_functions import register as register_functions
from datasette_mempalace.views import ROUTES
from datasette_mempalace.views.api import CSV_COLUMNS
from datasette_mempalace.views.openapi import document, path_of

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
DOCS = {path.name: path.read_text("utf-8") for path in [README, *sorted((ROOT / "docs").glob("*.md"))]}
PACKAGE = ROOT / "datasette_mempalace"
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
# Values for the parameters of the SQL examples; the sample palace has hits for them.
VALUES = {
    "q": "login token", "also": "password", "words": "login token", "wing": "acme-app", "room": "", "n_results": "5",
    "since": "2026-01-01", "drawer_id": "1",
}  # fmt: skip

if "mine" not in mempalace.commands:
    register(SimpleNamespace(add_command=lambda command: None))


def blocks(language, *names):
    """The code blocks of a language, each as a test parameter named after its document."""
    return [
        pytest.param(textwrap.dedent(match["code"]), id=f"{name}-{number}")
        for name in names or DOCS
        for number, match in enumerate(FENCE.finditer(DOCS[name]), 1)
        if match["language"] == language
    ]


def section(name, heading):
    """The part of a document under a heading, up to the next one of that level."""
    level = heading.split(" ")[0]
    found = re.search(rf"^{re.escape(heading)}$(.*?)(?=^{level} |\Z)", DOCS[name], re.MULTILINE | re.DOTALL)
    assert found, f"{name} has no heading {heading!r}"
    return found[1]


def first_cells(text):
    """What stands in code in the first cells of a section's tables."""
    cells = re.findall(r"^\| ((?:[^|\\]|\\\|)*?) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def in_code(text):
    """Everything that stands in code, word by word."""
    return {word for part in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"[\w.-]+", part)}


# What is made from the code

MARKERS = "<!--cog cog--> <!--end-->"


@pytest.mark.parametrize("name", [name for name in DOCS if "<!--cog" in DOCS[name]])
def test_what_is_made_from_the_code_is_not_stale(name, tmp_path, capsys):
    copy = tmp_path / name
    shutil.copy(ROOT / "docs" / name, copy)
    arguments = ["cog", "--check", "--diff", "-I", str(ROOT / "scripts"), f"--markers={MARKERS}", str(copy)]
    assert Cog().main(arguments) == 0, f"run make reference: {capsys.readouterr().out}"


# Settings


def as_written(default):
    """A default as YAML has it."""
    if default is None:
        return "none"
    value = list(default) if isinstance(default, tuple) else default
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def test_every_setting_is_described_with_its_default():
    described = section("configuration.md", "## All settings")
    settings = {
        field.name: getattr(Settings(), field.name) for field in fields(Settings) if field.name != "given"
    }
    for name, default in settings.items():
        assert f"| `{name}` | {as_written(default)} |" in described
    assert first_cells(described) == set(settings)


@pytest.mark.parametrize("code", blocks("yaml"))
def test_settings_in_examples_are_allowed(code):
    import yaml

    content = resolve_env_secrets(yaml.safe_load(code), {"CHROMA_API_KEY": "a secret"})
    for part in [content, *content.get("databases", {}).values()]:
        read_settings(part.get("plugins", {}).get("datasette-mempalace"))


# The HTTP API


def test_every_parameter_is_described():
    assert first_cells(section("api.md", "## Parameters")) == set(PARAMETERS)


QUESTIONS = [
    {"q": "lighthouse keeper lamp", "explain": 1},
    {"q": LONG},
    {"q": "tokne", "wing": "acme-ap", "vector_disabled": 1},
]


@pytest.fixture
async def answers(served):
    """Answers that have every key between them."""
    found = []
    for question in QUESTIONS:
        response = await served.client.get(f"/palace/-/mempalace.json?{urlencode(question)}")
        assert response.status_code == 200, response.text
        found.append(response.json())
    assert any(hit["also_in"] for hit in found[1]["results"])
    assert any(hit["context"] for hit in found[0]["results"])
    assert found[2]["unknown_words"]
    assert found[2]["did_you_mean"]
    return found


def keys_in(value, *without):
    """All keys of JSON, at any depth, but not what is under `without`."""
    if isinstance(value, list):
        return set().union(*(keys_in(item, *without) for item in value))
    if isinstance(value, dict):
        inner = [keys_in(item, *without) for key, item in value.items() if key not in without]
        return set(value).union(*inner)
    return set()


async def test_every_key_of_an_answer_is_described(answers):
    described = section("api.md", "## An answer")
    for answer in answers:
        assert keys_in(answer, "results", "did_you_mean") <= in_code(described)
    assert first_cells(described) == set().union(*answers)


def test_every_route_is_described():
    described = first_cells(section("api.md", "# JSON and CSV"))
    assert {path_of(pattern) for pattern, _ in ROUTES} <= described


def test_whatever_openapi_names_is_described():
    described = in_code(DOCS["api.md"] + DOCS.get("pages.md", ""))
    components = document(ROUTES)["components"]
    for name, schema in components["schemas"].items():
        assert property_names(schema) <= described, name
    assert {parameter["name"] for parameter in components["parameters"].values()} - {"filters"} <= described


def property_names(schema):
    """The keys of every object in a JSON Schema."""
    if isinstance(schema, list):
        return set().union(*map(property_names, schema))
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", ())).union(*map(property_names, schema.values()))


async def test_every_key_of_a_hit_is_described(answers):
    described = section("api.md", "## A hit")
    hits = [hit for answer in answers for hit in answer["results"]]
    assert keys_in(hits) <= in_code(described)
    assert first_cells(described) == set().union(*hits)


async def test_everything_that_is_said_of_drawers_is_described(served):
    for heading, path, parameters in (
        ("## A drawer", "drawer/1.json", ["as", "similar"]),
        ("## Similar drawers", "similar.json?drawer_id=1", similar.PARAMETERS),
        ("## Duplicates", "duplicates.json?min_characters=1&threshold=1", duplicates.request.PARAMETERS),
    ):
        answer = (await served.client.get(f"/palace/-/mempalace/{path}")).json()
        assert answer["ok"], answer
        described = in_code(section("api.md", heading))
        assert keys_in(answer, "drawer", "filters", "similar") <= described, heading
        assert set(parameters) <= described, heading


def test_every_csv_column_is_described():
    assert set(CSV_COLUMNS) <= in_code(section("api.md", "## CSV"))


async def test_the_error_shown_is_the_error_given(served):
    (shown,) = re.findall(r"```json\n(.*?)```", section("api.md", "## Errors"), re.DOTALL)
    response = await served.client.get("/palace/-/mempalace.json?q=x&n_results=0")
    assert response.json() == json.loads(shown)


# SQL


def test_every_sql_function_is_described():
    made = {}
    connection = SimpleNamespace(
        execute=lambda *given: SimpleNamespace(fetchone=lambda: (0,)),
        create_function=lambda name, count, *rest, **options: made.setdefault(name, []).append(count),
    )
    register_functions(connection, None)
    shown = dict(re.findall(r"^\| `(\w+)\((.*?)\)` \|", DOCS["sql.md"], re.MULTILINE))
    assert shown.keys() == made.keys()
    for name, arguments in shown.items():
        assert arguments.count(",") + 1 == max(made[name]), name


def test_every_option_of_mempalace_search_is_described():
    described = section("sql.md", "## mempalace_search")
    assert set(PARAMETERS) - {"q"} <= in_code(described)


async def rows_of(datasette, code, database="palace"):
    """What Datasette answers to an SQL example: its rows, or its error. The demo's wings stand for those of the tests' palace."""
    code = code.replace("'python-language', 'python-library'", "'acme-app', 'acme_app'")
    parameters = {"sql": code, "_shape": "array", **VALUES}
    response = await datasette.client.get(f"/{database}.json?{urlencode(parameters)}", follow_redirects=True)
    if "from mempalace_search(:q, null, null, 0)" in code:
        assert response.status_code == 400, "the example of an error is one"
        return [response.json()["error"]]
    assert response.status_code == 200, response.text
    return response.json()


# The tutorial's example asks the tutorial's own palace.
@pytest.mark.parametrize("code", blocks("sql", *sorted(DOCS.keys() - {"tutorial.md"})))
async def test_sql_examples_run_and_return_rows(make_datasette, palace_path, code):
    rows = await rows_of(make_datasette(palace_path, settings={"sql_time_limit_ms": 20_000}), code)
    assert rows
    shown = [value for row in rows for value in (row.values() if isinstance(row, dict) else [row])]
    problems = [
        value for value in shown if str(value).startswith(('{"ok": false', "mempalace_search: n_results"))
    ]
    assert bool(problems) == ("null, null, 0)" in code), "only the examples of an error are some"


SQL_QUERIES = FENCE.findall(section("sql.md", "## Queries"))


@pytest.mark.parametrize("place", range(0, len(SQL_QUERIES), 2))
async def test_sql_queries_stand_in_both_forms(make_datasette, palace_path, place):
    (_, _, table), (_, _, function) = SQL_QUERIES[place : place + 2]
    assert ("json_each" in table, "json_each" in function) == (False, True)
    datasette = make_datasette(palace_path, settings={"sql_time_limit_ms": 20_000})
    assert await rows_of(datasette, table) == await rows_of(datasette, function)


def test_every_column_of_the_table_is_described():
    described = in_code(section("sql.md", "## mempalace_search as a table"))
    assert set(search_table.PARAMETERS) <= described
    assert set(search_table.SHAPE.narrowing) <= described
    assert {word for words in search_table.SHAPE.narrowing.values() for word in words} <= set(
        re.findall(r"`([^`]+)`", section("sql.md", "### What narrows the search"))
    )


def test_every_column_and_argument_of_similar_drawers_is_described():
    assert set(similar_table.PARAMETERS) <= in_code(section("sql.md", "## mempalace_similar"))
    assert set(similar_table.COLUMNS) <= in_code(section("api.md", "## Similar drawers"))


# The command line


def test_every_command_and_option_is_described():
    for name, command in mempalace.commands.items():
        described = section("cli.md", f"## {name}")
        options = {
            option
            for parameter in command.params
            for option in parameter.opts
            if option.startswith("--") and option not in ("--config", "--help")
        }
        shown = {word for cell in first_cells(described) for word in cell.split() if word.startswith("--")}
        assert shown == options, name
        assert any(parameter.name == "config" for parameter in command.params), "said to be in every command"
    assert {f"[`{name}`](#{name})" for name in mempalace.commands} == set(
        re.findall(r"\[`[\w-]+`\]\(#[\w-]+\)", DOCS["cli.md"])
    )


def command_lines(*names):
    """Every `datasette mempalace ...` in the bash blocks, without what is piped into it."""
    found = []
    for parameter in blocks("bash", *names):
        for line in parameter.values[0].splitlines():
            line = line.rpartition("| ")[2] if " | datasette" in line else line
            if line.startswith("datasette mempalace ") and "COMMAND" not in line:
                found.append(line)
    return found


@pytest.mark.parametrize("line", command_lines())
def test_command_lines_are_understood(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metadata.yml").write_text("{}")
    _, _, name, *arguments = shlex.split(line)
    mempalace.commands[name].make_context(name, arguments)


NEEDS_MORE = (
    "mcp",
    "demo",
    "import-palace",
)  # an agent, minutes, a palace of MemPalace's; each has tests of its own


@pytest.mark.parametrize(
    "line", [line for line in command_lines("cli.md") if line.split()[2] not in NEEDS_MORE]
)
def test_examples_of_the_command_line_run(line, tmp_path, palace_named, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if " --embedder " not in line:  # that one makes a palace
        palace_named("notes.db")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "shed.md").write_text("The spare key hangs behind the flower pot.")
    (tmp_path / "letters.csv").write_text("text,wing\nThe ferry leaves at nine.,travel\n")
    (tmp_path / "metadata.yml").write_text("{}")
    words = shlex.split(line)[2:]
    done = CliRunner().invoke(mempalace, words, input='{"text": "The ferry leaves at nine."}\n')
    assert done.exit_code == 0 or words[0] == "doctor", done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)


# The agents' address takes POST alone.
URLS = sorted(
    {
        url
        for text in DOCS.values()
        for url in re.findall(r"http://127\.0\.0\.1:8001(/(?!-/mempalace/mcp)[^\s'\"`)]+)", text)
    }
)


@pytest.mark.parametrize("url", URLS)
async def test_addresses_lead_somewhere(url, make_datasette, palace_named):
    response = await make_datasette(palace_named("notes.db"), palace_named("household.db")).client.get(url)
    assert response.status_code == 200, response.text[:300]


def run_line(line):
    """Run one line of the quickstart: echo and mkdir as a shell does, our own commands in this process."""
    line, _, target = line.partition(" > ")
    first, _, second = line.partition(" | ")
    words = shlex.split(second or first)
    if words[0] == "mkdir":
        return Path(words[1]).mkdir()
    if words[0] == "echo":
        return Path(target).write_text(" ".join(words[1:]) + "\n")
    if words[0] == "sqlite-utils":
        text = " ".join(shlex.split(first)[1:])
        return CliRunner().invoke(sqlite_utils_cli, words[1:], input=text, catch_exceptions=False).output
    assert words[0] == "datasette"
    if words[1] != "mempalace":
        return None
    given = " ".join(shlex.split(first)[1:]) + "\n" if second else None
    done = CliRunner().invoke(mempalace, words[2:], input=given)
    assert done.exit_code == 0, f"{line}: {done.output}"
    return done.output


def run_blocks(name, heading=None):
    """Run the bash blocks of a document; what our own commands say, a line's answer each."""
    text = section(name, heading) if heading else DOCS[name]
    return [
        run_line(line)
        for code in re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
        for line in code.splitlines()
    ]


def text_below(folder):
    return "".join(path.read_text() for path in Path(folder).rglob("*.md"))


async def test_the_tutorial(tmp_path, monkeypatch, make_datasette):
    monkeypatch.chdir(tmp_path)
    lines = command_lines("tutorial.md")
    told = [text for text in run_blocks("tutorial.md") if isinstance(text, str)]
    assert "Embedded 6 texts" in told[0]
    said = dict(zip(lines, told, strict=True))
    tool_hut, boiler, pets, spare_key = (said[line] for line in lines if " search " in line)
    assert tool_hut.index("third flower pot") < tool_hut.index("boiler")
    assert "serviced every October" in boiler
    assert "flower pot" not in boiler
    assert pets.index("feed the cat") < pets.index("boiler")
    assert "inside the well" in spare_key
    assert "flower pot" not in spare_key
    assert "feed the cat" in text_below("household-as-markdown")
    assert "Vectors taken" in said[lines[-1]]
    assert "Embedded" not in said[lines[-1]]
    (example,) = blocks("sql", "tutorial.md")
    datasette = make_datasette("household.db", settings={"sql_time_limit_ms": 20_000})
    rows = await rows_of(datasette, example.values[0], "household")
    assert rows[0]["room"] == "garden"
    assert "spare key of the shed" in rows[0]["text"]


def test_quickstart_and_the_python_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said = run_blocks("README.md", "## Quickstart")
    assert any(isinstance(text, str) and "flower pot" in text for text in said)
    examples = blocks("python")
    assert examples
    for example in examples:
        exec(compile(example.values[0], str(example.id), "exec"), {})
    assert "shed.md The spare key of the shed" in capsys.readouterr().out


# The house


def tracked(*patterns):
    """The files that are in the repository, or, outside of one, those that are there."""
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_every_module_is_named():
    named = in_code(section("architecture.md", "## Modules"))
    for path in tracked("datasette_mempalace/*.py"):
        module = path.parent.name if path.name == "__init__.py" and path.parent != PACKAGE else path.stem
        assert module in named, f"{path.relative_to(ROOT)} is not in docs/architecture.md"


def test_every_table_and_column_is_named(palace_path):
    import sqlite3

    named = in_code(section("architecture.md", "## Tables"))
    connection = sqlite3.connect(palace_path)
    tables = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")]
    for table in tables:
        if table.startswith("sqlite_") or re.search(r"_fts_(?!terms)", table):  # SQLite's and FTS5's own
            continue
        assert table in named
        if not re.search(r"_fts|^_", table):
            assert {row[1] for row in connection.execute(f"pragma table_info({table})")} <= named, table
    connection.close()


def test_every_page_is_in_the_site():
    trees = "".join(re.findall(r"```{toctree}\n(.*?)```", DOCS["index.md"], re.DOTALL))
    pages = {f"{entry}.md" for entry in re.findall(r"^([\w-]+)$", trees, re.MULTILINE)}
    assert DOCS.keys() - {"README.md", "index.md"} == pages, "put it into a toctree of docs/index.md"


def anchors(text):
    """The anchors of a document's headings, as GitHub makes them."""
    text = FENCE.sub("", text)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", DOCS)
def test_links_lead_somewhere(name):
    here = README if name == "README.md" else ROOT / "docs" / name
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", DOCS[name])):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (here.parent / path).resolve() if path else here
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target.read_text("utf-8")), link


def test_nothing_tells_of_the_machine_it_was_written_on():
    places = {str(ROOT), str(Path.home())} | {str(folder) for folder in ROOT.parents if len(folder.parts) > 1}
    shared = {"/usr", "/opt", "/srv", "/var", "/home", "/tmp", "/app", "/src", "/mnt"}
    own = re.compile(
        "|".join(rf"(?<![\w./-]){re.escape(place)}/" for place in sorted(places - shared)) or r"(?!)"
    )
    host = re.compile(r"(?:https?:)?//[\w.-]*(?:pypi|pythonhosted|registry|artifactory|nexus|npmjs)[\w.-]*")
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        for pattern in (own, host, re.compile(r"(?<![\w./-])/(?:home|Users)/\w+/|(?<![\w./-])/tmp/\w")):
            found = pattern.search(text)
            assert not found, f"{path.relative_to(ROOT)}: {found[0]}"
