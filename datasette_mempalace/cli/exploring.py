"""The commands that look around: similar and duplicates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..text import counted
from . import common, showing
from .common import PalaceCommand, config_option, palace_argument
from .scope import note_near_names, parameters_of, scope_options
from .working import steps


@click.command(cls=PalaceCommand)
@palace_argument
@click.argument("drawer_id")
@scope_options
@click.option("--n-results", metavar="N", help="How many drawers.  [default: 10]")
@click.option(
    "--max-distance", metavar="D", help="Only drawers within this cosine distance, 0 (no limit) to 2."
)
@click.option("--nearest-first", is_flag=True, help="Do not put the drawers of other sources first.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@config_option
def similar(
    palace: Path,
    drawer_id: str,
    nearest_first: bool,
    as_json: bool,
    config: Path | None,
    **options: Any,
) -> None:
    """Show the drawers of PALACE that are most like the one named DRAWER_ID.

    \b
      datasette mempalace similar notes.db drawer_5d77f2b18c21
      datasette mempalace similar notes.db 280 --wing home --json

    DRAWER_ID is a drawer's drawer_id, or the id of its row. Drawers of other sources come first.
    """
    from ..similar import parse_similar, run_similar

    with common.open_palace(palace, config) as opened:
        given = parameters_of(opened, options) | {
            "drawer_id": drawer_id,
            "other_sources_first": not nearest_first,
        }
        request = parse_similar(given, opened.settings, strict=True)
        answer = run_similar(opened, request)
        note_near_names(opened, request.search.scope)
    if as_json:
        click.echo(showing.as_json(answer))
        return
    if answer["vector"] == "embedded":
        common.note("The drawer has no vector yet; one was made for this answer.")
    if not answer["results"]:
        common.note(f"Among {counted(answer['in_scope'], 'drawer')} there is no other one with a vector.")
    look = showing.Look.of_terminal()
    click.echo(
        "\n\n".join(showing.similar_hit(hit, look) for hit in answer["results"]), nl=bool(answer["results"])
    )


@click.command(cls=PalaceCommand)
@palace_argument
@scope_options
@click.option(
    "--threshold",
    metavar="S",
    help="The least similarity, 0.5 to 1; 1 finds equal texts alone.  [default: 0.95]",
)
@click.option("--min-characters", metavar="N", help="Leave out shorter texts.  [default: 40]")
@click.option("--n-results", metavar="N", help="How many clusters.  [default: 20]")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@config_option
def duplicates(palace: Path, as_json: bool, config: Path | None, **options: Any) -> None:
    """Show clusters of drawers in PALACE that say the same. Nothing is changed.

    \b
      datasette mempalace duplicates notes.db
      datasette mempalace duplicates notes.db --wing home --threshold 1

    Every drawer is held against every other one, which takes minutes for 100,000.
    """
    from ..duplicates import run_duplicates
    from ..duplicates.request import parse_duplicates

    with common.open_palace(palace, config) as opened:
        request = parse_duplicates(parameters_of(opened, options), opened.settings, strict=True)
        with steps() as bars:
            answer = run_duplicates(opened, request, pairs=None, progress=bars.of("Comparing"))
        note_near_names(opened, request.search.scope)
    if as_json:
        click.echo(showing.as_json(answer))
        return
    look = showing.Look.of_terminal()
    found = counted(answer["found"], "cluster")
    common.note(
        f"{found} with {counted(answer['drawers_found'], 'drawer')}, "
        f"of {counted(answer['looked_at'], 'drawer')} looked at."
    )
    if answer["without_vector"]:
        common.note(
            f"{counted(answer['without_vector'], 'drawer')} without a vector could not be looked at; "
            "run datasette mempalace sync."
        )
    if len(answer["clusters"]) < answer["found"]:
        common.note(f"The largest {len(answer['clusters'])} are shown; --n-results shows more.")
    shown = [showing.cluster(cluster, look) for cluster in answer["clusters"]]
    click.echo("\n\n".join(shown), nl=bool(shown))


COMMANDS = (similar, duplicates)
