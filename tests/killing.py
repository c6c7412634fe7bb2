"""A palace that is worked on by real processes which are killed, and what must be true of it afterwards.

`World` has one palace for many kills, so that what one leaves behind meets the next. Every choice comes from a seed.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

from datasette.utils.sqlite import sqlite3

from changing_palace import TEXTS, ChangingPalace
from datasette_mempalace.compat import IS_ONE
from killed_palace import KilledPalace

ROOT = Path(__file__).resolve().parent.parent
WORDS = (
    "harbour lamp ledger token bread archive cluster signal heron invoice lantern meadow engine copper river "
    "pocket violin winter garden bridge paper needle orchard compass kettle saddle marble feather"
).split()
SETTINGS = {"plugins": {"datasette-mempalace": {"sync_seconds": 0.1}}}
ALLOWED = {"databases": {"palace": {"permissions": {"insert-row": True, "update-row": True}}}}
RECORDS = 1_100


class World(KilledPalace):
    """A palace, the commands that work on it, and what has been acknowledged so far.

    Args:
        folder: an empty folder for everything.
        seed: of every choice.
    """

    def __init__(self, folder, seed):
        self.folder, self.random = folder, random.Random(seed)
        self.palace = folder / "palace.db"
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.config = folder / "metadata.json"
        self.config.write_text(json.dumps({**SETTINGS, **(ALLOWED if IS_ONE else {})}))
        self.acknowledged = {}  # drawer_id to text: what a writer was told is stored
        self.records = {}  # drawer_id to text: what the file of records says last
        self.deleted = []  # texts that a purge must leave nowhere
        self.serial = 0
        self.run("init")
        self.foreign = ChangingPalace(folder / "foreign", [self.text() for _ in range(TEXTS)], self.random)
        commands = ("mine", "import", "sync", "rebuild", "import-palace", "purge")
        self.seconds = {what: self._time(what) for what in commands}
        self.seconds["server"] = self.seconds["sync"]

    # What the processes do

    def text(self):
        """A text that has not been there before."""
        self.serial += 1
        return f"Note {self.serial}: {' '.join(self.random.choices(WORDS, k=12))}."

    def edit_notes(self):
        """Change, add and remove some of the files that are mined."""
        for _ in range(12):
            file = self.notes / f"{self.random.randrange(60)}.md"
            if file.exists() and self.random.random() < 0.3:
                file.unlink()
            else:
                file.write_text("\n\n".join(self.text() for _ in range(self.random.randrange(1, 12))))

    def write_records(self):
        """A file of records: many that are stored already, some that replace others, some new."""
        file = self.folder / "records.ndjson"
        with file.open("w") as out:
            common = [self.text() for _ in range(self.random.randrange(20, 120))]
            for number in range(RECORDS):
                self.records[f"record-{number}"] = self.random.choice(common)
                record = {"id": f"record-{number}", "text": self.records[f"record-{number}"]}
                out.write(json.dumps(record) + "\n")
        return file

    def change_rows(self):
        """Change the palace by plain SQL, each change committed and so acknowledged."""
        with closing(sqlite3.connect(self.palace, timeout=30)) as connection:
            for _ in range(self.random.randrange(20, 150)):
                self.insert(connection)
            ids = [row[0] for row in connection.execute("select id from drawers where added_by = 'sql'")]
            self.random.shuffle(ids)
            with connection:
                for row_id in ids[:10]:
                    text = self.text()
                    connection.execute("update drawers set text = ? where id = ?", [text, row_id])
                    self.acknowledged[self._name(connection, row_id)] = text
                for row_id in ids[10:20]:
                    self.deleted.append(self.acknowledged.pop(self._name(connection, row_id)))
                    connection.execute("delete from drawers where id = ?", [row_id])
                for row_id in ids[20:30]:
                    connection.execute(
                        "update drawers set wing = 'moved', room = null where id = ?", [row_id]
                    )

    def insert(self, connection):
        """One drawer by plain SQL, acknowledged by its commit."""
        text = self.text()
        name = f"sql-{self.serial}"
        with connection:
            connection.execute(
                "insert into drawers(drawer_id, text, wing, room, added_by) values (?, ?, 'sql', 'room', 'sql')",
                [name, text],
            )
        self.acknowledged[name] = text

    def post(self, url):
        """One drawer through Datasette's write API, acknowledged by its answer."""
        text = self.text()
        row = {"drawer_id": f"api-{self.serial}", "text": text, "wing": "api", "added_by": "api"}
        request = urllib.request.Request(
            f"{url}/palace/drawers/-/insert",
            json.dumps({"rows": [row]}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            assert response.status == 201
        self.acknowledged[row["drawer_id"]] = text

    # Kills

    def _time(self, what):
        """How long a command takes here that nobody kills."""
        arguments = self._arguments(what)
        started = time.monotonic()
        self.run(arguments[0], *arguments[2:])
        return time.monotonic() - started

    def kill_in(self, what):
        """Start a process, kill it and all its children at a random moment.

        Args:
            what: "mine", "import", "import-palace", "sync", "rebuild", "purge" or "server".
        Returns:
            whether it was killed before it ended, and how far it had come.
        """
        if what == "server":
            return self._kill_server()
        arguments = self._arguments(what)
        before = self._state()
        process = self._start(["mempalace", *arguments])
        started = time.monotonic()
        try:
            process.wait(self.random.uniform(0.1, 1.1) * self.seconds[what])
        except subprocess.TimeoutExpired:
            self.look()
            self._kill(process)
            return True, self._phase(before)
        assert process.returncode == 0, process.stderr.read()
        # It has said that it is done: so long it takes, and all of it is acknowledged.
        self.seconds[what] = (self.seconds[what] + time.monotonic() - started) / 2
        self.look()
        return False, "done"

    def _arguments(self, what):
        if what == "mine":
            self.edit_notes()
            return ["mine", str(self.palace), str(self.notes), "--wing", "notes"]
        if what == "import":
            return ["import", str(self.palace), str(self.write_records()), "--wing", "records"]
        if what == "import-palace":
            self.foreign.write(600)
            return [what, str(self.palace), str(self.foreign.folder)]
        self.change_rows()
        return [what, str(self.palace)]

    def _kill_server(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        before = self._state()
        process = self._start(
            [str(self.palace), "-p", str(port), "-m" if not IS_ONE else "-c", str(self.config)]
        )
        self._wait_for(f"{url}/palace/-/mempalace.json?q=lamp", process)
        deadline = time.monotonic() + self.random.uniform(0.1, 1.1) * self.seconds["server"]
        with closing(sqlite3.connect(self.palace, timeout=30)) as connection:
            while time.monotonic() < deadline:
                self.post(url) if IS_ONE and self.random.random() < 0.5 else self.insert(connection)
                time.sleep(self.random.choice((0, 0, 0.05, 0.3)))
        self.look()
        self._kill(process)
        return True, self._phase(before)

    def _wait_for(self, url, process):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert process.poll() is None, process.stderr.read()
            try:
                with urllib.request.urlopen(url, timeout=30) as response:
                    assert response.status == 200
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise AssertionError("the server did not come")

    def run(self, *arguments):
        """A command that nobody kills; returns what it printed."""
        process = self._start(["mempalace", arguments[0], str(self.palace), *arguments[1:]])
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, (arguments, out, err)
        return out

    def _start(self, arguments):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "datasette", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def _kill(self, process):
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)

    # What is known before and after

    def look(self):
        """What another process can read is committed, so that it must not be lost by a kill that follows."""
        with closing(sqlite3.connect(self.palace, timeout=30)) as connection:
            self.seen = [
                (name, text)
                for name, text, by, source in connection.execute(
                    "select drawer_id, text, added_by, source_file from drawers"
                )
                if by in ("sql", "api") or self._is_final(name, text, source)
            ]
            self.seen_vectors = dict(connection.execute("select text_hash, vector from drawer_vectors"))

    def _is_final(self, name, text, source):
        """Whether a command that goes on has no reason to replace a drawer: it says what its file says."""
        if source is None:
            return text in (self.records.get(name), self.foreign.drawers.get(name))
        return Path(source).exists() and text in Path(source).read_text()

    def _state(self):
        with closing(sqlite3.connect(self.palace, timeout=30)) as connection:
            return connection.execute(
                "select (select max(seq) from drawer_changes), (select count(*) from drawer_vectors),"
                " (select value from mempalace_settings where key = 'mirror_position')"
            ).fetchone()

    def _phase(self, before):
        """How far a process had come when it was killed."""
        changes, vectors, position = self._state()
        if position != before[2]:
            return "mirrored"
        if vectors != before[1]:
            return "embedded"
        return "written" if changes != before[0] else "started"

    @staticmethod
    def _name(connection, row_id):
        return connection.execute("select drawer_id from drawers where id = ?", [row_id]).fetchone()[0]
