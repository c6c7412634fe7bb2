"""Throws any string at any parameter of a real server, and looks whether it ever stumbles.

Two parts: schemathesis, from the served OpenAPI description (statuses, content types, headers and bodies as they are
described), and random parameters for every page that the description does not cover. What counts as a failure: a status of
500 or more, an answer that is not as described, one that takes longer than 20 seconds, memory that keeps growing, or a
server that has ended. Prints a summary in JSON, and ends with 1 where something failed.

    python scripts/fuzz.py --requests 2000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from datasette_mempalace.drawers import Drawer, put_drawers
from datasette_mempalace.palace import Palace
from datasette_mempalace.request import PARAMETERS
from datasette_mempalace.vectors import embed_pending
from server import Server

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,unsupported_method,allow_header_conformance"
)
SECONDS = 20  # for one answer
FIRST = "/palace/-/mempalace.json?q=lamp"  # what the server must answer before anything else is asked
GROWTH = 1.35  # of memory between the warm server and the end
NAMES = [
    "plain",
    "café",
    "日本語",
    "O'Brien",
    "a/b",
    '"; drop',
    "<b>x</b>",
    "100% & more?",
    "=1+1",
    "\u202eleft",
    "😀",
]
WORDS = [
    *NAMES, "", " ", "lamp keeper", "NOT", "AND (", '"', "*", "'", "\0", "\r\nSet-Cookie: x=1", "\x1b[31m", "\ud800", "%", "%00", "..",
    "-1", "0", "1", "10", "1e3", "nan", "inf", "9" * 30, "true", "null", "[]", "{}", "[1,", "2026-01-01", "2026-13-45", "0001-01-01",
    "x" * 3000, "a " * 2000, "日" * 500, "select 1", "{{7*7}}", "${x}", "../../etc/passwd", "drawers", "id", "metadata.a.b",
]  # fmt: skip
PAGES = (
    "/{p}/-/mempalace", "/{p}/-/mempalace.json", "/{p}/-/mempalace.csv", "/{p}/-/mempalace.ndjson", "/-/mempalace",
    "/{p}/drawers", "/{p}/drawers.json", "/{w}/-/mempalace", "/{w}/-/mempalace.json",
)  # fmt: skip
OPERATORS = (
    "",
    "__exact",
    "__not",
    "__contains",
    "__gt",
    "__in",
    "__isnull",
    "__glob",
    "__like",
    "__date",
    "__nope",
)
# Schemathesis may put anything where a database's name stands; what our routes do not match is Datasette's own page.
# It also writes addresses that are longer than uvicorn takes, which then answers by itself.
HOOKS = """
import re
import urllib.parse
import schemathesis

@schemathesis.hook
def filter_case(context, case):
    given = {name: str(value) for name, value in (case.path_parameters or {}).items()}
    asked = urllib.parse.urlencode(case.query or {}, doseq=True, errors="surrogatepass")
    return (
        given.get("what", "wings") in ("wings", "rooms", "sources", "halls", "authors")
        and all(re.fullmatch(r"[^/.?#\\\\]+", value) for value in given.values())
        and len(asked) < 60_000
    )
"""


def main() -> int:
    """Serve a palace, throw things at it, and say how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=2000, help="how many, about (2000)")
    parser.add_argument("--seconds", type=int, default=3600, help="how long the second part may take (3600)")
    parser.add_argument("--seed", type=int, default=0, help="for the same requests again")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(make_palace(Path(folder) / "palace.db"), FIRST, 5_000) as server,
    ):
        warm_up = pages(server, 200, given.seed + 1)
        memory = [server.memory()]
        failures = warm_up
        failures += pages(server, given.requests // 10, given.seed)
        memory.append(server.memory())
        described, said = described_api(
            server, given.requests - given.requests // 10, given.seconds, given.seed
        )
        failures += described
        memory.append(server.memory())
        if server.process.poll() is not None:
            failures.append(f"the server ended with {server.process.returncode}")
        if memory[-1] > memory[0] * GROWTH:
            failures.append(f"memory grew from {memory[0]} to {memory[-1]} MB")
    print(
        json.dumps(
            {"memory_mb": memory, "schemathesis": said, "failures": failures[:20]},
            indent=2,
            ensure_ascii=False,
        )
    )
    return 1 if failures else 0


def make_palace(path: Path) -> Path:
    """A small palace of awkward names."""
    with Palace.create(path) as palace:
        put_drawers(
            palace,
            (
                Drawer(
                    f"The lamp keeper of {name} trims lamp {number} & writes <b>it</b> down.",
                    wing=name if number % 7 else None,
                    room=f"room {name}" if number % 3 else None,
                    source_file=f"/notes/{name}.md",
                    chunk_index=number,
                    filed_at=f"2026-{1 + number % 12:02d}-01T09:00:00",
                    metadata={"heading": name, "a": {"b": number}},
                )
                for number in range(20)
                for name in NAMES
            ),
        )
        embed_pending(palace)
        palace.checkpoint()
    return path


def pages(server: Server, requests: int, seed: int) -> list[str]:
    """Random parameters for every page; returns what failed."""
    chance = random.Random(seed)

    def address() -> str:
        path = chance.choice(PAGES)
        word = urllib.parse.quote(chance.choice(WORDS).encode("utf-8", "surrogatepass"), safe="")
        # A dot or a slash would lead to a page that is not ours.
        path = path.replace("{p}", "palace").replace("{w}", word.replace(".", "").replace("%2F", "") or "x")
        names = [
            "q",
            *PARAMETERS,
            "_mempalace",
            "_mempalace_options",
            "all",
            "metadata.a.b",
            "wing",
            "added_by",
        ]
        # On its own pages Datasette itself stumbles over some filters: a number beyond 64 bits, a broken list.
        operators = OPERATORS if "/-/mempalace" in path else ("",)
        pairs = [("q", chance.choice(WORDS))] if chance.random() < 0.7 else []
        for _ in range(chance.randrange(5)):
            pairs.append(
                (
                    chance.choice(names) + (chance.choice(operators) if chance.random() < 0.3 else ""),
                    chance.choice(WORDS),
                )
            )
        query = "&".join(
            "=".join(urllib.parse.quote(part.encode("utf-8", "surrogatepass"), safe="") for part in pair)
            for pair in pairs
        )
        return f"{server.url}{path}?{query}"

    def ask(url: str) -> str | None:
        try:
            with urllib.request.urlopen(url, timeout=SECONDS) as response:
                response.read()
                return None
        except urllib.error.HTTPError as error:
            error.read()
            return f"{error.code}: {url}" if error.code >= 500 else None
        except (OSError, ValueError) as error:
            return f"{error}: {url}"

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, [address() for _ in range(requests)]))
    return [answer for answer in answers if answer]


def described_api(server: Server, requests: int, seconds: int, seed: int) -> tuple[list[str], str]:
    """Schemathesis on the served description; returns what failed, and what it says in the end."""
    program = shutil.which("schemathesis", path=str(Path(sys.executable).parent)) or "schemathesis"
    with urllib.request.urlopen(server.url + "/-/mempalace/openapi.json", timeout=SECONDS) as response:
        operations = len(json.load(response)["paths"])
    hooks = server.log.with_name("fuzz_hooks.py")
    hooks.write_text(HOOKS)
    command = [
        program, "run", server.url + "/-/mempalace/openapi.json", "--checks", CHECKS, "--request-timeout", str(SECONDS),
        "--max-examples", str(max(requests // operations, 1)), "--seed", str(seed), "--workers", "2", "--phases", "coverage,fuzzing",
        "--suppress-health-check", "all", "--no-color", "--warnings", "off", "--generation-database", "none", "--max-time", str(seconds),
    ]  # fmt: skip
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "fuzz_hooks"}
    environment["PYTHONPATH"] = os.pathsep.join([str(hooks.parent), environment.get("PYTHONPATH", "")])
    done = subprocess.run(command, capture_output=True, text=True, cwd=hooks.parent, env=environment)
    said = done.stdout[done.stdout.rfind("SUMMARY") - 30 :]
    return ([] if done.returncode == 0 else [done.stdout[-6000:] + done.stderr[-2000:]]), said


if __name__ == "__main__":
    raise SystemExit(main())
