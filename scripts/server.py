"""A Datasette in a process of its own, on a free port, for programs that ask a real server: fuzzing and load."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


class Server:
    """A server that has answered once; it ends with the block.

    Attributes:
        url: where it is.
        log: the file of what it says, beside the palace.
        process: the process.
    """

    def __init__(self, path: Path, first: str, sql_time_limit_ms: int):
        """Start it.

        Args:
            path: the palace's database.
            first: the address that is asked until it is answered, so that the model is loaded.
            sql_time_limit_ms: Datasette's setting.
        """
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url, self.first = f"http://127.0.0.1:{port}", first
        self.log = path.with_name("log.txt")
        command = [sys.executable, "-m", "datasette", str(path), "-p", str(port)]
        command += ["--setting", "sql_time_limit_ms", str(sql_time_limit_ms)]
        self.process = subprocess.Popen(command, stdout=self.log.open("wb"), stderr=subprocess.STDOUT)

    def __enter__(self) -> Server:
        for _ in range(300):
            try:
                urllib.request.urlopen(self.url + self.first, timeout=30).read()
                return self
            except OSError:
                time.sleep(0.2)
        self.process.kill()
        raise SystemExit(f"The server did not start:\n{self.log.read_text('utf-8', 'replace')}")

    def __exit__(self, *problem: object) -> None:
        self.process.terminate()
        self.process.wait(60)

    def memory(self) -> int:
        """Megabytes that the process holds; 0 where the system does not say."""
        status = Path(f"/proc/{self.process.pid}/status")
        found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text()) if status.exists() else None
        return int(found[1]) // 1024 if found else 0
