"""The command that builds a palace to try things with: demo."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import click

from ..errors import BadInput
from ..text import counted
from . import common, working
from .common import PalaceCommand, config_option, palace_argument

MARKER = "demo"


@click.command(cls=PalaceCommand, interrupted="Nothing was left; the same command again begins anew.")
@palace_argument
@config_option
def demo(palace: Path, config: Path | None) -> None:
    """Build PALACE from Python's own documentation: a palace to try, of text that every machine has.

    It takes a minute or two. A demo palace that is there already is left as it is. The documentation is under the
    licence of the Python Software Foundation, as each drawer's metadata says.
    """
    if palace.exists():
        _require_demo(palace, config)
        click.echo(f"The demo palace {palace} is there already.")
        return
    common.require(palace.resolve().parent.is_dir(), "PALACE", str(palace), "its folder must exist")
    started = time.monotonic()
    # The palace is built in a folder of its own, under its own name (the mirror's collections are named after it), and
    # moved when it is whole: where the file exists, it is finished.
    workshop = palace.parent / f".{palace.name}.building"
    shutil.rmtree(workshop, ignore_errors=True)
    workshop.mkdir()
    try:
        told = _build(workshop / palace.name, config)
        _move(workshop, palace)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    click.echo(f"Built the demo palace {palace} in {time.monotonic() - started:.0f} seconds. {told}")
    click.echo(f"Now try: {_datasette()} mempalace search {palace} wait for several tasks at the same time")


def _datasette() -> str:
    """How to call this Datasette: by its name where that finds it, else by its path."""
    here = Path(sys.executable).parent / "datasette"
    found = shutil.which("datasette")
    return "datasette" if found and Path(found).parent == here.parent else os.path.relpath(here)


def _require_demo(palace: Path, config: Path | None) -> None:
    from ..schema import get_setting

    with common.open_palace(palace, config) as opened, opened.reader() as connection:
        if get_setting(connection, MARKER) is None:
            raise BadInput(f"{palace} exists and is not a demo palace; give another name.")


def _build(palace: Path, config: Path | None) -> str:
    """Build the whole palace in a new file; returns what was done."""
    import platform

    from ..importers.python_docs import file_python_docs
    from ..palace import Palace
    from ..schema import set_setting
    from ..vectors import embed_pending

    with Palace.create(palace, common.settings_for(palace, config)) as made, working.steps() as bars:
        report = file_python_docs(made, bars.of("Reading"))
        embedded = embed_pending(made, bars.of("Embedding"))
        said = working.mirror(made, bars)
        bars.close()
        if said:
            common.note(said)
        with made.writer() as connection:
            set_setting(connection, MARKER, f"Python {platform.python_version()}")
        made.checkpoint()
    return f"It holds {counted(report.added, 'drawer')}; {counted(embedded, 'text')} were embedded."


def _move(workshop: Path, palace: Path) -> None:
    """Move what was built into place, the database last."""
    for companion in sorted(workshop.iterdir()):
        target = palace.parent / companion.name
        if companion.name != palace.name:
            if target.is_dir():
                shutil.rmtree(target)
            os.replace(companion, target)
    os.replace(workshop / palace.name, palace)


COMMANDS = (demo,)
