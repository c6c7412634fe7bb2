"""Build the demo palace so that a half-built one is never taken for a finished one.

    build_demo.py demo/palace.db

The palace is built in a folder of its own and moved into place when it is whole: its companions (the Chroma mirror)
first, the database last. Where the database exists, the palace is finished.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path


def build(target: Path) -> None:
    """Build the demo palace and move it to `target`.

    Raises:
        subprocess.CalledProcessError: the command that builds the palace failed.
    """
    workshop = target.parent / ".building"
    shutil.rmtree(workshop, ignore_errors=True)  # what an interrupted build left
    workshop.mkdir(parents=True)
    fresh = workshop / target.name
    subprocess.run([sys.executable, "-m", "datasette", "mempalace", "demo", str(fresh)], check=True)
    checkpoint(fresh)
    for companion in sorted(workshop.iterdir()):
        if companion != fresh:
            move(companion, target.parent / companion.name)
    move(fresh, target)
    workshop.rmdir()


def checkpoint(database: Path) -> None:
    """Write the WAL back into the database and drop it, so that the database is one file again."""
    with closing(sqlite3.connect(database)) as connection:
        mode = connection.execute("pragma journal_mode").fetchone()[0]
        busy, *_ = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
    if mode == "wal" and busy:
        raise SystemExit(f"{database} is in use by another process; stop it, then run make again.")


def move(source: Path, target: Path) -> None:
    """Put `source` in the place of `target`, whatever an interrupted move left there."""
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    os.replace(source, target)


def main() -> int:
    target = Path(sys.argv[1])
    try:
        build(target)
    except subprocess.CalledProcessError as error:
        print(f"The demo palace could not be built: see above. {target} was not made.", file=sys.stderr)
        print("Run make again to start over; `make clean` first installs everything afresh.", file=sys.stderr)
        return error.returncode or 1
    except KeyboardInterrupt:
        print(f"\nStopped. {target} was not made; run make again to start over.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
