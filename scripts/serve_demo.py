"""Serve a palace as the data app: templates, metadata and plugin, on a free port.

    serve_demo.py demo/palace.db

Takes the port in PORT (8001), or the next free one; HOST (127.0.0.1) is the address to listen at. Prints the address
once the page answers. The same metadata.yml serves both versions of Datasette: 1.0 reads what is configuration from it
when it is passed with `-c` as well.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PORTS_TRIED = 50
SECONDS_TO_START = 60


def main() -> int:
    database = Path(sys.argv[1])
    host = os.environ.get("HOST") or "127.0.0.1"
    given = os.environ.get("PORT") or "8001"
    if not given.isdecimal() or not 1 <= int(given) <= 65535:
        raise SystemExit(f"PORT is {given!r}; it must be a number from 1 to 65535.")
    wanted = int(given)
    port = free_port(host, wanted)
    if port != wanted:
        print(f"Port {wanted} is taken; using {port}.", flush=True)
    server = subprocess.Popen(command(database, host, port))
    # `kill` on this process must not leave the server behind; Ctrl-C reaches both by itself.
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    try:
        announce(server, host, port, database.stem)
        return max(server.wait(), 0)
    except KeyboardInterrupt:
        server.wait()
        return 0


def free_port(host: str, wanted: int) -> int:
    """Return `wanted`, or the first free port after it, or any free one."""
    for port in [*range(wanted, min(wanted + PORTS_TRIED, 65536)), 0]:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            # As the server does: without it, a port that was just closed counts as taken for a minute.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise SystemExit(f"No free port at {host}: set HOST or PORT.")


def command(database: Path, host: str, port: int) -> list[str]:
    """Return the command line of Datasette for this palace."""
    metadata = str(HERE / "metadata.yml")
    words = [sys.executable, "-m", "datasette", "serve", str(database), "--host", host, "--port", str(port)]
    words += ["--template-dir", str(HERE / "templates"), "--metadata", metadata]
    if version("datasette").startswith("0."):
        # 0.65 takes no settings from a file: those of metadata.yml.
        return [*words, "--setting", "suggest_facets", "off", "--setting", "default_facet_size", "10"]
    return [*words, "--config", metadata]


def announce(server: subprocess.Popen[bytes], host: str, port: int, name: str) -> None:
    """Print the address when the server answers; say nothing if it stops first (it says why itself)."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
    base = f"http://{shown}:{port}"
    end = time.monotonic() + SECONDS_TO_START
    while server.poll() is None and time.monotonic() < end:
        if answers(f"{base}/-/versions.json"):
            print(f"\n  The palace:     {base}/{name}/-/mempalace", flush=True)
            print(f"  The data app:   {base}/\n\n  Stop with Ctrl-C.\n", flush=True)
            return
        time.sleep(0.1)


def answers(url: str) -> bool:
    """Return whether a Datasette answers at `url`, which names its versions."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=2) as response:
            return "datasette" in json.load(response)
    except (OSError, ValueError):  # nothing there yet, or something else on that port
        return False


if __name__ == "__main__":
    sys.exit(main())
