"""A palace served by a real Datasette, in a process of its own, for as long as a test session lasts."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS_TO_START = 60
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextlib.contextmanager
def plain(*words):
    """Datasette with the plugin and nothing else; gives its base URL.

    Args:
        words: database files and options of the command line.
    """
    port = free_port()
    command = [sys.executable, "-m", "datasette", "serve", *map(str, words), "--port", str(port)]
    with _running(command, port) as base:
        yield base


@contextlib.contextmanager
def data_app(database):
    """The data app as `make demo` serves it: by scripts/serve_demo.py; gives its base URL."""
    port = free_port()
    command = [sys.executable, str(ROOT / "scripts" / "serve_demo.py"), str(database)]
    with _running(command, port) as base:
        yield base


def data_app_options():
    """What turns a plain Datasette into the data app."""
    options = ["--template-dir", ROOT / "templates", "--metadata", ROOT / "metadata.yml"]
    return options if version("datasette").startswith("0.") else [*options, "--config", ROOT / "metadata.yml"]


def free_port():
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def _running(command, port):
    environment = {**os.environ, "PORT": str(port), "PYTHONPATH": os.environ.get("PYTHONPATH") or str(ROOT)}
    base = f"http://127.0.0.1:{port}"
    # A file, not a pipe: nobody reads what it prints until it has stopped, and a full pipe would stop it.
    with tempfile.TemporaryFile("w+") as printed:
        server = subprocess.Popen(command, env=environment, stdout=printed, stderr=subprocess.STDOUT)
        try:
            _wait(server, base, printed)
            yield base
        finally:
            server.terminate()
            server.wait(timeout=30)


def _wait(server, base, printed):
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        if server.poll() is not None:
            printed.seek(0)
            raise AssertionError(f"The server stopped: {printed.read()}")
        try:
            DIRECT.open(f"{base}/-/versions.json", timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"No answer from {base} within {SECONDS_TO_START} seconds.")
