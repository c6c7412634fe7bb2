"""The command that brings in a palace of MemPalace's: import-palace."""

from __future__ import annotations

from pathlib import Path

import click

from . import common, working
from .common import PalaceCommand, config_option, harmless, note, palace_argument, settings_for


@click.command(name="import-palace", cls=PalaceCommand, interrupted=common.KEPT)
@palace_argument
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--collection", metavar="NAME", help="The collection of drawers, where it is not MemPalace's usual one."
)
@click.option(
    "--knowledge-graph",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The knowledge graph, where it does not lie with the palace.",
)
@click.option(
    "--re-embed", is_flag=True, help="Ignore the stored vectors, and embed the texts with PALACE's own model."
)
@click.option("--prune", is_flag=True, help="Take out what was imported before and is no longer in FOLDER.")
@config_option
def import_palace(
    palace: Path,
    folder: Path | None,
    collection: str | None,
    knowledge_graph: Path | None,
    re_embed: bool,
    prune: bool,
    config: Path | None,
) -> None:
    """Import the MemPalace palace in FOLDER: drawers, closets and their stored vectors, nothing embedded again.

    PALACE is made if it does not exist. FOLDER is the one that holds chroma.sqlite3; without it, where MemPalace keeps
    its palace. It is only read, from a copy, and may be in use. Importing it again brings the differences; drawers that
    were filed here by other means are never touched.
    """
    from ..importers.mempalace import Found
    from ..importers.mempalace import import_palace as import_it

    def tell(found: Found) -> None:
        note("\n".join(found.lines()))

    settings = settings_for(palace, config)
    with working.steps() as bars:
        done = import_it(
            palace,
            folder,
            settings=settings,
            collection=collection,
            knowledge_graph=knowledge_graph,
            re_embed=re_embed,
            prune=prune,
            progress=bars,
            on_found=tell,
        )
        bars.close()
        click.echo(harmless("\n".join(done.lines(str(palace)))))
        with common.open_palace(palace, config) as opened:
            if re_embed:
                working.finish(opened, bars)
                return
            said = working.mirror(opened, bars)
            if said:
                note(said)


COMMANDS = (import_palace,)
