"""`datasette mempalace ...`: the command line. Each module adds commands to one group; they parse, call and tell.

Answers go to standard output, everything said beside them to standard error. Exit codes: 0 for done (a search without
hits, too), 1 for a failure or for rows that could not be used, 2 for input that is not allowed.
"""

from __future__ import annotations

import click

from .common import PalaceGroup


@click.group(name="mempalace", cls=PalaceGroup)
def mempalace() -> None:
    """Fill and search memory palaces: SQLite databases of verbatim texts.

    \b
    A first palace:
      datasette mempalace mine notes.db ~/notes
      datasette mempalace search notes.db "where did we keep the spare key"
      datasette notes.db
    """


def register(cli: click.Group) -> None:
    """Add the commands to Datasette's own.

    Args:
        cli: Datasette's group of commands.
    """
    from . import (
        agents,
        demo,
        exploring,
        exporting,
        importing,
        palaces,
        rebuilding,
        searching,
        storing,
        upkeep,
    )

    for module in (
        storing,
        importing,
        exporting,
        palaces,
        upkeep,
        rebuilding,
        searching,
        exploring,
        agents,
        demo,
    ):
        for command in module.COMMANDS:
            mempalace.add_command(command)
    cli.add_command(mempalace)
