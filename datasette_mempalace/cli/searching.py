"""The command that searches: search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..config import RANKINGS, STRATEGIES
from ..errors import BadInput, BadParameter
from . import common, showing
from .common import PalaceCommand, config_option, palace_argument
from .scope import parameters_of, scope_options


@click.command(cls=PalaceCommand)
@palace_argument
@click.argument("words", nargs=-1)
@click.option("--query", metavar="WORDS", help="The words, instead of as arguments.")
@scope_options
@click.option("--n-results", metavar="N", help="How many hits, 1 to 1,000.  [default: 10]")
@click.option("--max-distance", metavar="D", help="Only hits within this cosine distance, 0 (no limit) to 2.")
@click.option("--candidate-strategy", metavar="|".join(STRATEGIES), help="Where candidates come from.")
@click.option("--ranking", metavar="|".join(RANKINGS), help="How they are ranked.")
@click.option("--words-only", is_flag=True, help="Search by words alone, without the embedding model.")
@click.option("--next", "next_", metavar="TOKEN", help="Go on after the hits already shown.")
@click.option("--explain", is_flag=True, help="Say how each hit was found and what its score is made of.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@config_option
def search(
    palace: Path,
    words: tuple[str, ...],
    query: str | None,
    as_json: bool,
    config: Path | None,
    words_only: bool,
    next_: str | None,
    **options: Any,
) -> None:
    """Search PALACE by meaning and by words.

    \b
      datasette mempalace search notes.db spare key
      datasette mempalace search notes.db --query "spare key" --wing home --json

    Exits with 0 also when there are no hits, with 2 when an option has a value that is not allowed.
    """
    from ..request import parse_request
    from ..searcher import run_search

    if query is not None and words:
        raise BadParameter("query", query, "the words must be given once: as arguments or with --query")
    asked = query if query is not None else " ".join(words)
    with common.open_palace(palace, config) as opened:
        if not asked.strip():
            raise BadInput(
                "There are no words to search for: give them after the palace, as in "
                f"datasette mempalace search {palace} spare key, or with --query."
            )
        parameters = parameters_of(opened, options) | {
            "q": asked,
            "vector_disabled": words_only,
            "next": next_,
        }
        request = parse_request(parameters, opened.settings, strict=True)
        if not words_only:
            common.wait_for_model(opened)
        answer = run_search(opened, request)
    if as_json:
        click.echo(showing.as_json(answer))
        return
    for line in showing.remarks(answer):
        common.note(line)
    click.echo(showing.page(answer, showing.Look.of_terminal()), nl=bool(answer["results"]))


COMMANDS = (search,)
