"""The command that throws the mirror away and fills it again: rebuild."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from ..text import counted
from . import common, working
from .common import PalaceCommand, config_option, palace_argument


@click.command(cls=PalaceCommand)
@palace_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_option
def rebuild(palace: Path, as_json: bool, config: Path | None) -> None:
    """Throw the Chroma mirror of PALACE away, and fill it again from the stored vectors.

    Nothing is embedded, and no drawer is touched. A server finds a damaged mirror by itself; this is for doing it at
    once, or after moving to a Chroma server. Refused while another process writes the mirror.
    """
    with common.open_palace(palace, config) as opened, working.steps() as bars:
        report = opened.mirror.rebuild(bars.of("Mirroring"))
        place = opened.mirror.store.place
    if as_json:
        found = asdict(report)
        del found["skipped_reason"]
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo(
            f"The mirror {place} was filled anew: {counted(report.upserted, 'vector')} in {report.seconds:.1f} seconds."
        )


COMMANDS = (rebuild,)
