"""The commands that put texts in and take them out: init, mine, delete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import BadInput, BadParameter
from ..importers.reading import MAX_BYTES
from ..text import counted
from . import common, working
from .common import PalaceCommand, config_option, note, palace_argument
from .scope import note_near_names, refuse_empty, stored_sources

if TYPE_CHECKING:
    from ..importers.files import Mined
    from ..palace import Palace
    from ..scope import Scope


@click.command(cls=PalaceCommand)
@palace_argument
@click.option(
    "--embedder", metavar="NAME", help="Embedding model: one of Chroma's functions, such as ollama."
)
@click.option(
    "--embedder-config", metavar="JSON", help='Its settings, such as {"model_name": "nomic-embed-text"}.'
)
@config_option
def init(palace: Path, embedder: str | None, embedder_config: str | None, config: Path | None) -> None:
    """Make the palace PALACE, or bring an older one up to date.

    What is in PALACE already stays, other tables too. The embedding model is recorded when the palace is made and
    cannot be changed later.
    """
    from ..palace import Palace

    chosen = _embedder(embedder, embedder_config)
    existed = palace.exists()
    with Palace.create(palace, common.settings_for(palace, config, chosen)) as made:
        click.echo(
            f"{palace} is {'up to date' if existed else 'made'}; its embedding model is {made.embedder.model}."
        )
        missing = made.embedder.missing()
        if missing:
            note(f"Note: {missing}.")


def _embedder(name: str | None, settings: str | None) -> dict[str, Any] | None:
    """The embedder from the options; a name that nobody knows would bind the palace to nothing."""
    if settings and not name:
        raise BadInput("--embedder-config needs --embedder NAME beside it.")
    if not name:
        return None
    try:
        mapping = json.loads(settings or "{}")
    except ValueError as error:
        raise BadParameter("embedder-config", settings, f"it must be a JSON object ({error})") from None
    if not isinstance(mapping, dict):
        raise BadParameter("embedder-config", settings, "it must be a JSON object")
    from ..embedding import Embedder

    Embedder(name, mapping).refuse_unknown()
    return {"name": name, "config": mapping}


@click.command(cls=PalaceCommand, interrupted=common.KEPT)
@palace_argument
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--wing", help="Wing to file in; else the folder's name.")
@click.option("--room", help="Room to file in; else the first folder below FOLDER, or general.")
@click.option(
    "--max-bytes",
    metavar="N",
    type=click.IntRange(min=1),
    default=MAX_BYTES,
    show_default=True,
    help="Leave out files with more bytes.",
)
@config_option
def mine(
    palace: Path, folder: Path, wing: str | None, room: str | None, max_bytes: int, config: Path | None
) -> None:
    """File the text files of FOLDER: notes, documentation, source code.

    PALACE is made if it does not exist. Mining a folder again brings the palace in step with it: what changed is
    replaced, what is gone is removed, and nothing is embedded twice. .gitignore files are respected; symbolic links
    are not followed; files that tools write or that commonly hold secrets are left out.
    """
    from ..importers.files import mine as mine_folder
    from ..importers.files import readable_folder

    readable_folder(folder)  # before a palace is made for nothing
    with common.make_palace(palace, config) as opened, working.steps() as bars:
        done = mine_folder(opened, folder, wing=wing, room=room, max_bytes=max_bytes, progress=bars)
        bars.close()
        _tell_mined(done)
        if not done.files:
            note(
                f"No text was found to read in {folder}: mine takes files of notes, documentation, source code."
            )
        working.finish(opened, bars, done.embedded, done.problem)


def _tell_mined(done: Mined) -> None:
    click.echo(
        common.harmless(
            f"Read {counted(done.files, 'file')} into the wing {done.wing!r}. {working.told(done.report)}"
        )
    )
    if done.gone:
        click.echo(f"{counted(done.gone, 'file')} no longer there: taken out of the palace.")
    if done.stale:
        click.echo(
            f"{counted(done.stale, 'file')} could not be read this time: what was filed earlier was kept."
        )
    for reason, count in done.skipped.most_common():
        names = ", ".join(done.examples[reason])
        more = ", …" if count > len(done.examples[reason]) else ""
        click.echo(common.harmless(f"Left out {count:,}: {reason} ({names}{more})."))


@click.command(cls=PalaceCommand)
@palace_argument
@click.option("--drawer-id", "drawer_ids", multiple=True, help="A drawer. Repeatable.")
@click.option("--wing", "wings", multiple=True, help="Drawers of this wing. Repeatable.")
@click.option("--room", "rooms", multiple=True, help="Drawers of this room. Repeatable.")
@click.option(
    "--source-file", "sources", multiple=True, help="Drawers of this source, by its full path. Repeatable."
)
@click.option("--all", "everything", is_flag=True, help="Every drawer of the palace.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def delete(
    palace: Path,
    drawer_ids: tuple[str, ...],
    wings: tuple[str, ...],
    rooms: tuple[str, ...],
    sources: tuple[str, ...],
    everything: bool,
    yes: bool,
    config: Path | None,
) -> None:
    """Delete drawers, with their vectors and closets. Several options narrow each other.

    Exits with 1 when a drawer that was named does not exist; the others are deleted all the same.
    """
    from ..drawers import delete_drawers

    given = {"drawer-id": drawer_ids, "wing": wings, "room": rooms, "source-file": sources}
    refuse_empty(given)
    if everything == any(given.values()):
        raise BadInput(
            "Say what to delete with --drawer-id, --wing, --room or --source-file, or give --all for every drawer"
            + ("; not both." if everything else ".")
        )
    with common.open_palace(palace, config) as opened, working.steps() as bars:
        scope, unknown = _scope(opened, drawer_ids, wings, rooms, sources)
        for drawer_id in unknown:
            note(f"There is no drawer {drawer_id!r}.")
        note_near_names(opened, scope)
        count = _count(opened, scope)
        if not count:
            click.echo("No drawers match, so nothing was deleted.")
        elif yes or click.confirm(f"Delete {counted(count, 'drawer')} from {palace}?", err=True, abort=True):
            click.echo(f"Deleted {counted(delete_drawers(opened, scope), 'drawer')}.")
            said = working.mirror(opened, bars)
            if said:
                note(said)
    if unknown:
        raise click.exceptions.Exit(common.FAILED)


def _scope(
    palace: Palace,
    drawer_ids: tuple[str, ...],
    wings: tuple[str, ...],
    rooms: tuple[str, ...],
    sources: tuple[str, ...],
) -> tuple[Scope, list[str]]:
    """The drawers meant, and those of `drawer_ids` that do not exist."""
    from ..scope import Scope

    if not drawer_ids:
        return Scope(wings, rooms, tuple(stored_sources(palace, sources))), []
    with palace.reader() as connection:
        rows = connection.execute(
            "select drawer_id, id from drawers where drawer_id in (select value from json_each(?))",
            [json.dumps(drawer_ids)],
        ).fetchall()
    known = dict(rows)
    scope = Scope(wings, rooms, tuple(stored_sources(palace, sources)), ids=tuple(known.values()))
    return scope, [drawer_id for drawer_id in dict.fromkeys(drawer_ids) if drawer_id not in known]


def _count(palace: Palace, scope: Scope) -> int:
    where, parameters = scope.where()
    # The condition comes from Scope, which binds every value.
    query = f"select count(*) from drawers where {where}"
    with palace.reader() as connection:
        found: int = connection.execute(query, parameters).fetchone()[0]
    return found


COMMANDS = (init, mine, delete)
