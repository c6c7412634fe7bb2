"""Nobody in: who may not see a palace learns nothing of its drawers, on any face, and no search is run for them.

One table says what each face answers under each rule; a route without a row in it fails the test.
"""

import re
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml

from building import full_of, make_palace
from datasette_mempalace import searcher
from datasette_mempalace.compat import IS_ONE
from datasette_mempalace.palace import Palace
from datasette_mempalace.pitfalls import permission_pitfalls
from datasette_mempalace.vectors import embed_pending
from datasette_mempalace.views import ROUTES

PROJECT = Path(__file__).resolve().parent.parent
# Stands in texts, names, sources, headings and closets, and in no request but those that must name a source or an author.
SECRET = "xyzzyvault"
# Stands in a closet alone.
CLOSET_SECRET = "Plughvault"
PALACE = "/palace/-/mempalace"
NOWHERE = "/-/mempalace/nothing"
ROOT = {"id": "root"}
ACTORS = {"anonymous": None, "signed in": {"id": "anna"}, "root": ROOT}
RULES = {
    "no rule": {},
    "instance": {"allow": ROOT},
    "database": {"databases": {"palace": {"allow": ROOT}}},
    "drawers": {"databases": {"palace": {"tables": {"drawers": {"allow": ROOT}}}}},
    "execute-sql": {"databases": {"palace": {"allow_sql": ROOT}}},
}
CLOSETS_RULE = {"databases": {"palace": {"tables": {"closets": {"allow": ROOT}}}}}

# What is answered to whoever a rule keeps out:
#   shown   200, and the secret is in it: nothing is denied
#   linked  200 or a redirect, with a link to the palace and no secret
#   hidden  200, with neither
#   403     refused, and nothing of ours was read
#   core    Datasette's own, outside of this plugin's reach: the secret can be read there (README, Permissions)
GUARDED = ("shown", 403, 403, 403, "shown")
OF_CORE = ("shown", 403, 403, "core", "shown")
OF_SQL = ("shown", 403, 403, "core", 403)
SQL = "/palace/-/query.json?sql=" if IS_ONE else "/palace.json?sql="

# fmt: off
FACES = {
    # face:                     (path,                                                        under each of RULES)
    "search page":              (f"{PALACE}?q=lamp+keeper",                                    *GUARDED),
    "page with explanations":   (f"{PALACE}?q=lamp+keeper&explain=1",                          *GUARDED),
    "overview":                 (PALACE,                                                       *GUARDED),
    "page of a wrong value":    (f"{PALACE}?q=lamp&n_results=0",            400, 403, 403, 403, 400),
    "suggested word":           (f"{PALACE}?q=xyzzyvaulx",                                     *GUARDED),
    "suggested wing":           (f"{PALACE}?q=lamp&wing=xyzzyvaul",                            *GUARDED),
    "JSON":                     (f"{PALACE}.json?q=lamp+keeper",                               *GUARDED),
    "JSON facets":              (f"{PALACE}.json?q=lamp+keeper&n_results=1&facets=1",          *GUARDED),
    "JSON suggested word":      (f"{PALACE}.json?q=xyzzyvaulx",                                *GUARDED),
    "JSON suggested wing":      (f"{PALACE}.json?q=lamp&wing=xyzzyvaul",                       *GUARDED),
    "JSON of a wrong value":    (f"{PALACE}.json?n_results=0",              400, 403, 403, 403, 400),
    "CSV":                      (f"{PALACE}.csv?q=lamp+keeper",                                *GUARDED),
    "CSV of all":               (f"{PALACE}.csv?q=lamp+keeper&all=1",                          *GUARDED),
    "NDJSON":                   (f"{PALACE}.ndjson?q=lamp+keeper",                             *GUARDED),
    "status":                   (f"{PALACE}/status?doctor=1",               "linked", 403, 403, 403, "linked"),
    "status JSON":              (f"{PALACE}/status.json?doctor=1",          "linked", 403, 403, 403, "linked"),
    "drawer":                   (f"{PALACE}/drawer/1?q=lamp&as=rendered",                      *GUARDED),
    "drawer JSON":              (f"{PALACE}/drawer/1.json",                                    *GUARDED),
    "unknown drawer":           (f"{PALACE}/drawer/nobody",                 404, 403, 403, 403, 404),
    "no page":                  (f"{PALACE}/nothing",                       404, 403, 403, 403, 404),
    "no JSON":                  (f"{PALACE}/nothing.json",                  404, 403, 403, 403, 404),
    "no page of ours":          (NOWHERE,                                   404, 403, 404, 404, 404),
    "similar":                  (f"{PALACE}/similar?drawer_id=1",                              *GUARDED),
    "similar JSON":             (f"{PALACE}/similar.json?drawer_id=1",                         *GUARDED),
    "similar to nothing":       (f"{PALACE}/similar.json",                  400, 403, 403, 403, 400),
    "duplicates":               (f"{PALACE}/duplicates?threshold=0.5",                         *GUARDED),
    "duplicates JSON":          (f"{PALACE}/duplicates.json?threshold=0.5",                    *GUARDED),
    "duplicates CSV":           (f"{PALACE}/duplicates.csv?threshold=0.5",                     *GUARDED),
    "OpenAPI":                  ("/-/mempalace/openapi.json", "hidden", 403, "hidden", "hidden", "hidden"),
    "overview JSON":            (f"{PALACE}/overview.json",                                    *GUARDED),
    "timeline JSON":            (f"{PALACE}/timeline.json?added_by=xyzzyvault",                *GUARDED),
    "timeline JSON of a search": (f"{PALACE}/timeline.json?q=lamp&added_by=xyzzyvault",         *GUARDED),
    "timeline CSV":             (f"{PALACE}/timeline.csv?added_by=xyzzyvault",                 *GUARDED),
    "list":                     (f"{PALACE}/rooms",                                            *GUARDED),
    "list JSON":                (f"{PALACE}/sources.json",                                     *GUARDED),
    "list CSV":                 (f"{PALACE}/authors.csv",                                      *GUARDED),
    "source":                   (f"{PALACE}/source?source_file=/xyzzyvault/xyzzyvault-0.md",   *GUARDED),
    "source JSON":              (f"{PALACE}/source.json?source_file=/xyzzyvault/xyzzyvault-0.md", *GUARDED),
    "agents' tool":             ("POST /-/mempalace/mcp",     "shown", 403, "hidden", "hidden", "shown"),
    "list of palaces":          ("/-/mempalace",             "linked", 403, "hidden", "hidden", "linked"),
    "front page":               ("/",                         "shown", 403, "hidden", "hidden", "shown"),
    "database page":            ("/palace",                     "linked", 403, 403, "hidden", "linked"),
    "table page":               ("/palace/drawers?_mempalace=lamp+keeper",                     *GUARDED),
    "table page, facets":       ("/palace/drawers?_mempalace=lamp+keeper&_facet=wing",         *GUARDED),
    "table JSON":               ("/palace/drawers.json?_mempalace=lamp+keeper",                *GUARDED),
    "table CSV":                ("/palace/drawers.csv?_mempalace=lamp+keeper&_stream=1",       *GUARDED),
    "row page":                 ("/palace/drawers/1",                                          *GUARDED),
    "other table, filtered":    ("/palace/notes?_mempalace=lamp+keeper",                       *GUARDED),
    "other table, filtered CSV": ("/palace/notes.csv?_mempalace=lamp+keeper",                   *GUARDED),
    "other table":              ("/palace/notes",                                              *OF_CORE),
    "closets":                  ("/palace/closets",                                            *OF_CORE),
    "SQL function":             (SQL + "select+mempalace_search('lamp+keeper')",               *OF_SQL),
    "SQL function, similar":    (SQL + "select+mempalace_similar(1)",                          *OF_SQL),
    "SQL table, similar":       (SQL + "select+*+from+mempalace_similar(1)",                   *OF_SQL),
    "SQL table":                (SQL + "select+*+from+mempalace_search('lamp+keeper')",        *OF_SQL),
    "SQL of one's own":         (SQL + "select+*+from+drawers",                                *OF_SQL),
}
# fmt: on
# What tells a closet's text to whoever may read closets; under a rule for that table alone, no face but SQL does.
SQL_OF_CLOSETS = {"SQL function", "SQL table"}
TELL_CLOSETS = SQL_OF_CLOSETS | {
    "search page", "page with explanations", "suggested word", "overview", "overview JSON", "JSON", "JSON suggested word",
    "NDJSON", "drawer", "drawer JSON", "row page", "closets",
}  # fmt: skip
EXPECTED = {
    (face, rule): (path, dict(zip(RULES, expected, strict=True))[rule])
    for face, (path, *expected) in FACES.items()
    for rule in RULES
}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "mempalace_search", "arguments": {"query": "lamp keeper"}},
}


@pytest.fixture(scope="module")
def secret_path(tmp_path_factory):
    """A palace whose every string holds the secret."""
    path = tmp_path_factory.mktemp("secret") / "palace.db"
    drawers = [
        full_of(
            SECRET,
            f"The lamp keeper of chapter {number} hides the key in the {SECRET}.",
            source_file=f"/{SECRET}/{SECRET}-{number % 2}.md",
            chunk_index=number,
            filed_at=f"2026-01-0{number + 1}T10:00:00",
        )
        for number in range(5)
    ]
    with make_palace(path, drawers) as palace:
        with palace.writer() as connection:
            connection.execute(
                "insert into closets (closet_id, source_file, text) select 'c', source_file, ? || drawer_id from drawers limit 1",
                [f"The lamp keeper of the {CLOSET_SECRET}|{SECRET}|→"],
            )
            connection.execute("create table notes (id integer primary key, drawer integer, note text)")
            connection.execute("insert into notes (drawer, note) select id, ? from drawers", [SECRET])
        embed_pending(palace)
        palace.checkpoint()
    return path


@pytest.fixture
def serve(make_datasette, secret_path):
    """A function that serves the palace with the data app's templates, under a rule."""

    def made(rule, **options):
        config = {
            **(RULES | {"closets": CLOSETS_RULE})[rule],
            "plugins": {"datasette-mempalace": {"tables": {"notes": "drawer"}}},
        }
        return make_datasette(secret_path, config=config, template_dir=str(PROJECT / "templates"), **options)

    return made


@pytest.fixture
def reads(monkeypatch):
    """What this plugin has read for requests: every connection of a palace's, every search on a connection of Datasette's."""
    seen = []
    reader, answer = Palace.reader, searcher._answer

    def counted_reader(self):
        if threading.current_thread().name != "mempalace-keeper":
            seen.append("a palace was read")
        return reader(self)

    def counted_answer(*arguments):
        seen.append("a search was run")
        return answer(*arguments)

    monkeypatch.setattr(Palace, "reader", counted_reader)
    monkeypatch.setattr(searcher, "_answer", counted_answer)
    return seen


async def ask(datasette, path, cookies):
    method, _, path = path.rpartition(" ")
    if method == "POST":
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        return await datasette.client.post(path, json=CALL, headers=headers, cookies=cookies)
    return await datasette.client.request(method or "GET", path, cookies=cookies)


def told(response):
    """Everything that an answer says."""
    return response.text + repr(list(response.headers.items()))


def found(response):
    """An answer in the words of the table."""
    text = told(response)
    if response.status_code not in (200, 302):
        return response.status_code
    if SECRET in text:
        return "shown"
    return "linked" if re.search(rf"{PALACE}['\"? ]", text) else "hidden"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("actor", ACTORS)
async def test_every_face_under_every_rule(serve, as_actor, reads, rule, actor):
    datasette = serve(rule)
    await datasette.invoke_startup()
    cookies = as_actor(datasette, **ACTORS[actor]) if ACTORS[actor] else {}
    wrong = []
    for face in FACES:
        path, expected = EXPECTED[face, "no rule" if actor == "root" else rule]
        reads.clear()
        response = await ask(datasette, path, cookies)
        got = found(response)
        if expected == "core":
            expected = "shown"
        if got != expected:
            wrong.append(f"{face}: {got}, not {expected}")
        if expected in (403, "hidden"):
            if SECRET in told(response):
                wrong.append(f"{face}: the secret was told")
            if reads:
                wrong.append(f"{face}: {reads[0]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("rule", ["instance", "database", "drawers"])
async def test_a_refusal_has_the_form_of_its_face(serve, rule):
    datasette = serve(rule)
    for face in FACES:
        path, expected = EXPECTED[face, rule]
        if expected != 403 or "/-/mempalace" not in path:
            continue
        response = await ask(datasette, path, {})
        kind = response.headers["content-type"]
        if ".csv" in path:
            assert kind.startswith("text/plain"), face
            assert len(response.text.splitlines()) == 1, face
        elif "json" in path or "mcp" in path:
            assert kind.startswith("application/json"), face
            assert response.json()["ok"] is False, face
            assert response.json()["status"] == 403, face
            assert set(response.json()) == {"ok", "error", "errors", "status", "title"}, face
        else:
            assert kind.startswith("text/html"), face
        if not path.startswith("POST"):
            head = await datasette.client.head(path)
            assert (head.status_code, head.text) == (403, ""), face


async def test_closets_alone_can_be_kept_back_and_the_ranking_stays(serve, as_actor):
    datasette = serve("closets")
    await datasette.invoke_startup()

    async def telling(cookies):
        answers = {face: await ask(datasette, path, cookies) for face, (path, *_) in FACES.items()}
        hits = answers["JSON"].json()["results"]
        told_by = {face for face, response in answers.items() if CLOSET_SECRET in told(response)}
        return told_by, [(hit["id"], hit["score"], hit["closet_boost"]) for hit in hits], answers["closets"]

    kept_back, ranked, refused = await telling({})
    told_to_root, ranked_for_root, _ = await telling(as_actor(datasette, **ROOT))
    assert told_to_root == TELL_CLOSETS
    assert kept_back == SQL_OF_CLOSETS
    assert refused.status_code == 403
    assert ranked == ranked_for_root
    assert any(boost for _, _, boost in ranked)


def test_every_route_has_a_row():
    paths = [path.rpartition(" ")[2].partition("?")[0] for path, *_ in FACES.values()]
    missing = [pattern for pattern, _ in ROUTES if not any(re.match(pattern, path) for path in paths)]
    assert missing == [], "add what these routes answer under each rule to FACES; most are GUARDED"


async def test_what_does_not_exist_is_refused_in_the_same_words(serve):
    """A drawer, a wing or a word that is there cannot be told from one that is not."""
    datasette = serve("drawers")
    for path in (f"{PALACE}.json", PALACE, f"{PALACE}.csv"):
        answers = [
            (await datasette.client.get(f"{path}?{urlencode(given)}")).text
            for given in (
                {"q": "lamp", "wing": SECRET},
                {"q": "lamp", "wing": "no such"},
                {"q": "lamp", "ids": "1"},
            )
        ]
        assert len(set(answers)) == 1


async def test_another_database_reaches_no_palace(serve, tmp_path):
    """Neither function nor table exists in `/_memory`, with --crossdb either, nor in a database that is no palace."""
    datasette = serve("no rule", memory=True, crossdb=True)
    await datasette.invoke_startup()
    at = "/_memory/-/query.json" if IS_ONE else "/_memory.json"
    for sql in (
        "select mempalace_search('lamp')",
        "select * from mempalace_search('lamp')",
        "select * from palace.mempalace_search('lamp')",
        "select mempalace_similarity(1, 'lamp')",
        "select mempalace_similar(1)",
        "select * from mempalace_similar(1)",
    ):
        response = await datasette.client.get(f"{at}?{urlencode({'sql': sql})}")
        assert response.status_code == 400, sql
        assert "no such" in response.text, sql
        assert SECRET not in told(response)


async def test_the_example_of_the_readme_closes_a_palace(make_datasette, secret_path):
    permissions = (PROJECT / "README.md").read_text("utf-8").partition("## Permissions")[2]
    example = yaml.safe_load(re.search(r"```yaml\n(.*?)```", permissions, re.DOTALL)[1])
    config = {"databases": {"palace": example["databases"]["notes"]}}
    assert permission_pitfalls(config, "palace") == []
    datasette = make_datasette(secret_path, config=config)
    await datasette.invoke_startup()
    tables = await datasette.get_database("palace").table_names()
    assert {"drawers", "drawers_fts", "drawers_fts_data", "closets", "drawer_vectors"} <= set(tables)
    paths = [f"/palace/{table}.json" for table in tables] + [path for path, *_ in FACES.values()]
    for path in paths:
        response = await ask(datasette, path, {})
        expected = (404,) if path == NOWHERE else (403, "hidden")
        assert found(response) in expected, path
