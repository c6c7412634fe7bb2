"""A real Chroma server for tests, on loopback."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

from datasette_mempalace.config import read_settings

SECRET = "Bearer xyzzy-plugh-secret"


class ChromaServer:
    """A `chroma run` of our own on loopback, which can be halted, killed and started again."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = None

    def start(self):
        command = [Path(sys.executable).with_name("chroma"), "run", "--path", self.folder]
        with (self.folder.parent / "chroma.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*map(str, command), "--host", "127.0.0.1", "--port", str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder.parent,
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/api/v2/heartbeat", timeout=2).raise_for_status()
                return
            except httpx.HTTPError:
                assert time.monotonic() < deadline, "chroma run did not start"
                assert self.process.poll() is None
                time.sleep(0.05)

    def halt(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def settings(self, **more):
        place = {
            "mode": "server",
            "host": "127.0.0.1",
            "port": self.port,
            "headers": {"Authorization": SECRET},
        }
        return read_settings({"chroma": place, **more})
