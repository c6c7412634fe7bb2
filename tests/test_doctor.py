"""The doctor: finds real damage, mends it, and leaves a healthy palace alone."""

import json
import shutil

import pytest
from click.testing import CliRunner
from datasette.cli import cli as datasette_cli
from datasette.utils.sqlite import sqlite3

from building import find, make_palace, texts
from datasette_mempalace import cli as commands
from datasette_mempalace.config import Settings
from datasette_mempalace.doctor import TRIGGERS, attempt, examine, is_well, mend
from datasette_mempalace.palace import Palace

commands.register(datasette_cli)


@pytest.fixture
def palace(tmp_path):
    with make_palace(
        tmp_path / "p.db", [("the red fox", "w"), ("the blue whale", "w")], mirror=True
    ) as palace:
        yield palace


def ill(palace):
    return [finding.check for finding in examine(palace) if not finding.ok]


def damage(palace, statement):
    connection = sqlite3.connect(palace.path)
    with connection:
        connection.execute(statement)
    connection.close()


def test_a_healthy_palace_is_well_and_stays_as_it_is(palace):
    assert ill(palace) == []
    assert is_well(examine(palace))
    assert mend(palace) == []


DAMAGE = {
    "full-text index of drawers": "insert into drawers_fts(drawers_fts, rowid, text) values ('delete', 1, 'the red fox')",
    "vectors missing": "insert into drawers(text) values ('waits for a vector')",
    "vectors unusable": "insert or replace into drawer_vectors values (1, x'0102', 'x')",
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


def test_missing_triggers_are_named(palace):
    damage(palace, "drop trigger drawers_log_insert")
    finding = next(finding for finding in examine(palace) if finding.check == "triggers")
    assert "drawers_log_insert" in finding.says
    with palace.reader() as connection:
        made = {row[0] for row in connection.execute("select name from sqlite_master where type = 'trigger'")}
    assert made == TRIGGERS - {"drawers_log_insert"}


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
        finding = next(finding for finding in examine(opened) if finding.check == "table in SQL")
        assert finding.ok
        assert "the setting table_function is false" in finding.says


def test_a_palace_that_can_only_be_read_is_examined(palace):
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
    assert "NOT OK  vectors missing: 1 text has no vector; run doctor with --fix" in told.output
    fixed = run("--fix", "--json")
    assert fixed.exit_code == 0
    found = json.loads(fixed.stdout)
    assert found["well"]
    assert "1 text was embedded." in found["done"]
    assert {"check", "ok", "says", "help"} == set(found["findings"][0])
