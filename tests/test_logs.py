"""A log line tells what happened and cannot be forged by what somebody has written."""

import ast
import logging
from pathlib import Path

import pytest

import datasette_mempalace
from building import make_palace
from datasette_mempalace.logs import get_logger, one_line
from datasette_mempalace.registry import palace_databases

PACKAGE = Path(datasette_mempalace.__file__).parent
FORGED = "x\n2026-01-01 INFO all is well\r\x1b[2K\x9b1m\u202e\u2028\x00\ud800"
logger = get_logger("datasette_mempalace.test")


# `glue` stands alone, so that a child process can try it out; what it logs is its own name and faults of its own.
ELSEWHERE = {"logs.py", "glue.py"}


def test_every_logger_is_made_in_one_place():
    for path in PACKAGE.rglob("*.py"):
        if path.name in ELSEWHERE:
            continue
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        assert not [call for call in calls if ast.unparse(call.func) == "logging.getLogger"], path


@pytest.mark.parametrize("given", [FORGED, ValueError(FORGED), Path(FORGED.replace("\0", ""))], ids=type)
def test_a_text_stays_in_its_line(caplog, given):
    logger.warning("%s: %s of %d", given, "plain é 日本", 3)
    (record,) = caplog.records
    assert record.getMessage().endswith(": plain é 日本 of 3")
    assert record.getMessage().isprintable()
    assert "\\x1b[2K" in record.getMessage()
    assert Path(record.pathname).name == "test_logs.py"


def test_a_traceback_is_indented_below_its_message(caplog):
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("it failed for %s", FORGED)
    first, *others = caplog.records[0].getMessage().splitlines()
    assert first.startswith("it failed for x\\n2026-01-01")
    assert "Traceback" in others[0]
    assert all(line.startswith("    ") and line.isprintable() for line in others)


def test_below_its_level_nothing_is_formatted():
    class Heavy:
        def __str__(self):
            raise AssertionError("formatted")

    logging.getLogger("datasette_mempalace.test").setLevel(logging.ERROR)
    try:
        logger.warning("%s", Heavy())
    finally:
        logging.getLogger("datasette_mempalace.test").setLevel(logging.NOTSET)


def test_what_can_be_printed_is_left_alone():
    assert one_line("C:\\notes é 日本語 😀 100%") == "C:\\notes é 日本語 😀 100%"


async def test_the_name_of_a_file_forges_no_line(make_datasette, tmp_path, caplog):
    """The name of a database, which stands in a warning, is that of its file."""
    path = tmp_path / "a\n2026 ERROR forged\x1b[0m.db"
    path.write_bytes(b"no database" * 100)
    assert await palace_databases(make_datasette(path)) == []
    assert "cannot be looked at" in caplog.text
    assert all(record.getMessage().isprintable() for record in caplog.records)


def test_a_log_shows_no_text_of_a_drawer(tmp_path, caplog):
    with (
        caplog.at_level(logging.DEBUG, "datasette_mempalace"),
        make_palace(tmp_path / "p.db", [("xyzzyvault is here", "w", "r")], mirror=True),
    ):
        pass
    assert "xyzzyvault" not in caplog.text
