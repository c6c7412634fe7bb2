"""The doctor: finds real damage, mends it, and leaves a healthy palace alone."""

import json
import shutil

import chromadb
import pytest
from chromadb.config import Settings as ChromaSettings
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli
from datasette.utils.sqlite import sqlite3

from building import find, make_palace, one, texts
from datasette_mempalace import cli as commands
from datasette_mempalace.config import Settings
from datasette_mempalace.doctor import attempt, examine, is_well, look_over, mend
from datasette_mempalace.palace import Palace

commands.register(datasette_cli)


@pytest.fixture
def palace(tmp_path):
    with make_palace(
        tmp_path / "p.db", [("the red fox", "w"), ("the blue whale", "w")], mirror=True
    ) as palace:
        yield palace


def all_rows(palace, query):
    with palace.reader() as connection:
        return connection.execute(query).fetchall()


def forget_in_chroma(path, row_id):
    client = chromadb.PersistentClient(str(path), settings=ChromaSettings(anonymized_telemetry=False))
    client.get_collection("palace-p_drawers", embedding_function=None).delete(ids=[row_id])
    client.close()


def ill(palace):
    return [finding.check for finding in examine(palace) if not finding.ok]


def damage(palace, statement):
    connection = sqlite3.connect(palace.path)
    with connection:
        connection.execute(statement)
    connection.close()


def finding(palace, check, **given):
    return next(finding for finding in examine(palace, **given) if finding.check == check)


def test_a_healthy_palace_is_well_and_stays_as_it_is(palace):
    assert ill(palace) == []
    assert is_well(examine(palace))
    assert mend(palace) == []
    assert [found for found in look_over(palace, None, 100) if not found.ok] == []


NEGATED = "(select substr(vector, 1, 1532) || x'0000803f' from drawer_vectors where id = 2)"  # its length is about 1.4
NAN = "zeroblob(1532) || x'0000c07f'"
DAMAGE = {
    "full-text index of drawers": "insert into drawers_fts(drawers_fts, rowid, text) values ('delete', 1, 'the red fox')",
    "vectors missing": "insert into drawers(text) values ('waits for a vector')",
    "vectors unusable": "insert or replace into drawer_vectors values (1, x'0102', 'x')",
    "change log": "delete from drawer_changes where seq = 3",
    "vectors orphaned": "insert into drawer_vectors select 99, vector, text_hash from drawer_vectors where id = 1",
}


@pytest.mark.parametrize("check", DAMAGE)
def test_damage_is_found_and_mended(palace, check):
    damage(palace, DAMAGE[check])
    assert check in ill(palace)
    assert mend(palace)
    assert ill(palace) == []
    assert texts(find(palace, "fox", n_results=1)) == ["the red fox"]


def test_a_mirror_that_is_gone_is_found_and_filled(palace):
    palace.close()
    shutil.rmtree(palace.mirror_path)
    with Palace.open(palace.path) as again:
        assert ill(again) == ["mirror"]
        assert mend(again) == ["The mirror was filled anew."]
        assert ill(again) == []


@pytest.mark.parametrize(
    "vector",
    ["zeroblob(1536)", "zeroblob(1540)", f"cast({NAN} as blob)", f"cast({NEGATED} as blob)", "'text'", "7"],
)
def test_what_is_no_vector_of_a_text_is_found_and_made_again(palace, vector):
    before = one(palace, "select vector from drawer_vectors where id = 1")
    damage(palace, f"update drawer_vectors set vector = {vector} where id = 1")
    assert finding(palace, "vectors unusable").says == "1 vector is not as the model makes them"
    assert "vectors unusable" in [found.check for found in look_over(palace, None, 100) if not found.ok]
    mend(palace)
    assert ill(palace) == []
    assert one(palace, "select vector from drawer_vectors where id = 1") == before


def test_a_blank_text_has_a_vector_of_zeros_and_is_well(palace):
    damage(palace, "insert into drawers(text) values (' ')")
    mend(palace)
    assert ill(palace) == []


def test_vectors_of_another_model_are_found(palace):
    damage(
        palace,
        "update drawer_vectors set vector = (select vector from drawer_vectors where id = 2) where id = 1",
    )
    found = finding(palace, "vectors and model")
    assert found.says.startswith("of 2 texts taken at random, 1 would get another vector")


@pytest.mark.parametrize("trigger", ["drawers_ai", "closets_log_replace", "drawer_vectors_log_delete"])
def test_missing_triggers_are_named_and_made_again(palace, trigger):
    damage(palace, f"drop trigger {trigger}")
    assert finding(palace, "triggers").says.startswith(f"missing: {trigger};")
    mend(palace)
    assert ill(palace) == []


@pytest.mark.parametrize(
    "index", ["idx_drawers_drawer_id", "idx_drawers_places", "idx_drawers_filed_at_moment"]
)
def test_missing_indexes_are_named_and_made_again(palace, index):
    damage(palace, f"drop index {index}")
    assert finding(palace, "indexes").says == f"missing: {index}; searches and pages are slower without them"
    assert mend(palace) == ["1 index was made again."]
    assert ill(palace) == []


def test_an_index_that_cannot_be_made_is_told(palace):
    damage(palace, "drop index idx_drawers_drawer_id")
    damage(palace, "insert into drawers(drawer_id, text) values ('twice', 'one'), ('twice', 'two')")
    done, problem = attempt(palace)
    assert done == []
    assert problem == (
        "The index idx_drawers_drawer_id cannot be made again: UNIQUE constraint failed: drawers.drawer_id."
    )


def test_what_happened_while_triggers_were_missing_is_put_right(palace):
    sql = [row[0] for row in all_rows(palace, "select sql from sqlite_master where type = 'trigger'")]
    for (trigger,) in all_rows(palace, "select name from sqlite_master where type = 'trigger'"):
        damage(palace, f"drop trigger {trigger}")
    damage(palace, "update drawers set text = 'a green heron' where id = 1")
    damage(palace, "delete from drawers where id = 2")
    damage(palace, "insert into drawers(text) values ('a grey mole')")
    bad = {"full-text index of drawers", "triggers", "vectors stale"}
    assert set(ill(palace)) >= bad
    mend(palace)
    assert ill(palace) == []
    assert texts(find(palace, "heron bird", n_results=1)) == ["a green heron"]
    assert texts(find(palace, "mole", n_results=5)) == ["a grey mole", "a green heron"]
    assert sorted(sql) == sorted(
        row[0] for row in all_rows(palace, "select sql from sqlite_master where type = 'trigger'")
    )


def test_a_mirror_that_forgot_is_found_and_filled_anew(palace):
    palace.mirror.sync()
    palace.close()
    forget_in_chroma(palace.mirror_path, "2")
    with Palace.open(palace.path) as again:
        # Opening it has set it aside already, as any process does that may own it.
        assert not finding(again, "mirror").ok
        assert mend(again) == ["The mirror was filled anew."]
        assert ill(again) == []


def test_a_mirror_that_another_process_owns_is_not_asked(palace):
    palace.mirror.sync()
    with Palace.open(palace.path) as other:
        found = finding(other, "mirror")
    assert found.ok
    assert "another process" in found.cause.lower()


def test_a_position_ahead_of_the_log_is_found_and_mended(palace):
    damage(palace, "update mempalace_settings set value = '9999' where key = 'mirror_position'")
    assert "the mirror is said to hold 9,999" in finding(palace, "change log").says
    mend(palace)
    assert ill(palace) == []


def test_a_write_ahead_log_matters_where_nothing_can_be_written(palace):
    damage(palace, "insert into drawers(text) values ('lies in the log')")
    found = finding(palace, "write-ahead log")
    assert found.ok
    assert "serving it with -i, lacks them" in found.says
    with Palace.open(palace.path, read_only=True) as reading:
        assert "write-ahead log" in ill(reading)
    mend(palace)
    assert finding(palace, "write-ahead log").says == "empty: the file alone is the whole palace"


def test_rules_that_close_only_the_table_are_found(palace):
    closed = {"allow": {"id": "root"}}
    config = {"databases": {"p": {"tables": {"drawers": closed}}}}
    assert not finding(palace, "permissions", config=config).ok
    assert finding(palace, "permissions", config={"databases": {"p": closed}}).ok


def test_a_damaged_file_is_told(palace):
    page = one(palace, "select rootpage from sqlite_master where name = 'idx_drawers_room'")[0]
    size = one(palace, "pragma page_size")[0]
    palace.checkpoint()
    palace.close()
    with open(palace.path, "r+b") as file:
        file.seek((page - 1) * size + 8)
        file.write(b"\xff" * 64)
    with Palace.open(palace.path) as again:
        found = finding(again, "database file")
    assert not found.ok
    assert "malformed" in found.cause or "page" in found.cause


def test_a_missing_model_is_told_and_the_rest_is_still_examined(palace, tmp_path):
    damage(palace, "insert into drawers(text) values ('waits')")
    settings = Settings(embedder={"name": "all-MiniLM-L6-v2", "config": {"path": str(tmp_path / "nowhere")}})
    with Palace.open(palace.path, settings) as opened:
        assert {"embedding model", "vectors missing"} <= set(ill(opened))


def test_a_problem_while_mending_is_told(palace, monkeypatch):
    from datasette_mempalace.errors import EmbedderUnavailable

    def fails(*given):
        raise EmbedderUnavailable("no model today")

    damage(palace, "insert into drawers(text) values ('waits')")
    monkeypatch.setattr(palace.embedder, "embed", fails)
    assert attempt(palace) == ([], "no model today")


def test_why_there_is_no_table_in_sql_is_said(palace):
    with Palace.open(palace.path, Settings(table_function=False)) as opened:
        found = finding(opened, "table in SQL")
        assert found.ok
        assert found.cause == "because the setting table_function is false"


def test_a_palace_that_can_only_be_read_is_examined(palace):
    palace.checkpoint()
    with Palace.open(palace.path, read_only=True) as reading:
        assert ill(reading) == []


def test_the_command_tells_and_exits(palace):
    palace.close()

    def run(*options):
        return CliRunner().invoke(datasette_cli, ["mempalace", "doctor", palace.path, *options])

    assert run().exit_code == 0
    damage(palace, "insert into drawers(text) values ('waits for a vector')")
    told = run()
    assert told.exit_code == 1
    assert (
        "NOT OK  vectors missing: 1 text has no vector; run: datasette mempalace doctor PALACE --fix"
        in told.output
    )
    fixed = run("--fix", "--json")
    assert fixed.exit_code == 0
    found = json.loads(fixed.stdout)
    assert found["well"]
    assert "1 text was embedded." in found["done"]
    assert {"check", "ok", "says", "help", "cause"} == set(found["findings"][0])


def test_the_command_reads_the_permissions_of_a_configuration(palace, tmp_path):
    palace.close()
    config = tmp_path / "metadata.yml"
    config.write_text("databases: {p: {tables: {drawers: {allow: {id: root}}}}}")
    told = CliRunner().invoke(datasette_cli, ["mempalace", "doctor", palace.path, "--config", str(config)])
    assert told.exit_code == 1
    assert "NOT OK  permissions: In p only the table drawers is closed." in told.output


def test_what_is_no_palace_is_bad_usage(tmp_path):
    (tmp_path / "p.db").write_bytes(b"no database at all, just some text that is long enough" * 20)
    for path in (tmp_path / "p.db", tmp_path / "nowhere.db"):
        told = CliRunner().invoke(datasette_cli, ["mempalace", "doctor", str(path)])
        assert told.exit_code == 2
        assert "Traceback" not in told.output
