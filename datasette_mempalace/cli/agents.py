"""The command that serves a palace to agents: mcp."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from . import common
from .common import Failure, PalaceCommand, config_option, palace_argument


@click.command(cls=PalaceCommand)
@palace_argument
@config_option
def mcp(palace: Path, config: Path | None) -> None:
    """Serve PALACE to an agent: the Model Context Protocol over standard input and output.

    A client starts this itself; it is configured with the command and its arguments. Every tool only reads.

    \b
      datasette mempalace mcp notes.db
    """
    # Standard output belongs to the protocol alone.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        from ..mcp import serve_stdio
    except ImportError as error:
        from ..agents.schemas import WITHOUT_SDK

        raise Failure(WITHOUT_SDK) from error
    with common.open_palace(palace, config) as opened:
        serve_stdio(opened)


COMMANDS = (mcp,)
