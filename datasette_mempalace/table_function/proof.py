"""Whether table-valued functions work here: everything is tried in a child process before it is used in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from .shapes import Condition, Rows, Shape, TableError

SELF_TEST_SECONDS = 10
# Not by the name of the package that this one lies in, which would import all that belongs to it.
_CHILD = """
import importlib, json, sys, types
folder, module, sys.path[:] = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
alone = sys.modules["alone"] = types.ModuleType("alone")
alone.__path__ = [folder]
proof = importlib.import_module("alone.proof")
sys.stdout.write(proof.self_test(importlib.import_module(module)))
"""
_lock = threading.Lock()
_reasons: dict[Any, str | None] = {}


def why_off(sqlite3: Any) -> str | None:
    """Why table-valued functions cannot be used with a sqlite3 module here; None when they can.

    The first call tries them in a process of its own, some hundredths of a second long; what it found holds for this
    process: Python, SQLite and this code stay the same while it runs.
    """
    with _lock:
        if sqlite3 not in _reasons:
            try:
                _reasons[sqlite3] = _why_not_python() or _why_not_library(sqlite3)
            except Exception as error:  # whatever it is, the server goes on without
                _reasons[sqlite3] = f"{type(error).__name__}: {error}"
        return _reasons[sqlite3]


def _why_not_python() -> str | None:
    if sys.implementation.name != "cpython":
        return f"they are tried with CPython alone, and this is {sys.implementation.name}"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "they are not tried without Python's global lock"
    is_python = os.path.basename(sys.executable or "").lower().startswith("python")
    if getattr(sys, "frozen", False) or not is_python:
        return "there is no Python to try them in a process of its own"
    return None


def _why_not_library(sqlite3: Any) -> str | None:
    """Try everything in a child process first, since a mistake here would not be an exception but a crash."""
    command = [sys.executable, "-I", "-S", "-c", _CHILD, str(Path(__file__).parent), sqlite3.__name__]
    command.append(json.dumps([str(folder) for folder in sys.path]))
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SELF_TEST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the self-test took longer than {SELF_TEST_SECONDS} seconds"
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"the self-test failed: {last or f'it ended with code {done.returncode}'}"
    from .glue import library_of

    tried, used = done.stdout.decode().strip(), library_of(sqlite3).source
    return None if tried == used else f"the self-test used SQLite {tried}, but this process uses {used}"


def self_test(sqlite3: Any) -> str:
    """Use a table-valued function in every way that matters.

    Returns:
        SQLite's source id.
    Raises:
        RuntimeError: when something is not as it should be.
    """
    from .glue import library_of, register

    shape = Shape(
        "numbers", {"n": "integer", "square": "integer", "words": "text"}, ("count", "word"), "n",
        {"square": frozenset({"in", ">"})}, order="n",
    )  # fmt: skip
    seen: list[Any] = []

    def numbers(arguments: dict[str, Any], conditions: tuple[Condition, ...], limit: int | None) -> Rows:
        seen.append((conditions, limit))
        if arguments["count"] < 0:
            raise TableError("count: too small")
        return Rows([{"n": n, "square": n * n, "words": ["é"]} for n in range(arguments["count"])])

    library = library_of(sqlite3)
    for _ in range(3):
        connection = sqlite3.connect(":memory:")
        kept = register(sqlite3, connection, shape, numbers)

        def rows(query: str, connection: Any = connection) -> list[Any]:
            return [tuple(row) for row in connection.execute(query)]

        query = "select square, words, word from numbers(4, 'x') where square > 0 order by n limit 2"
        _expect(rows(query), [(1, '["é"]', "x"), (4, '["é"]', "x")])
        _expect(rows("select n from numbers(9) where square in (4, 9)"), [(2,), (3,)])
        if library.takes_lists:
            among, above = Condition("square", "in", (4, 9)), Condition("square", ">", 0)
            _expect(seen[-2:], [((above,), 2), ((among,), None)])
        _expect(rows("select b.n from numbers(2) a left join numbers(1) b on b.n = a.n"), [(0,), (None,)])
        try:
            rows("select * from numbers(-1)")
        except sqlite3.OperationalError as error:
            _expect(str(error), "numbers: count: too small")
        else:
            raise RuntimeError("an error was lost")
        connection.close()
        del kept
    return library.source


def _expect(found: Any, wanted: Any) -> None:
    if found != wanted:
        raise RuntimeError(f"{found!r} instead of {wanted!r}")
