"""The command that searches: search."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from ..config import RANKINGS, STRATEGIES
from ..errors import BadInput, BadParameter
from ..filters import is_filter
from . import common, showing
from .common import PalaceCommand, config_option, palace_argument

# JSON escapes C0 itself; DEL, C1 and the marks that reorder text would still reach the terminal.
_OBEYED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@click.command(cls=PalaceCommand)
@palace_argument
@click.argument("words", nargs=-1)
@click.option("--query", metavar="WORDS", help="The words, instead of as arguments.")
@click.option("--wing", multiple=True, help="Only this wing. Repeatable.")
@click.option("--room", multiple=True, help="Only this room. Repeatable.")
@click.option(
    "--source-file",
    multiple=True,
    metavar="PATH",
    help="Only this source: its stored path, or a mined file as seen from here. Repeatable.",
)
@click.option("--since", metavar="DATE", help="Only filed on or after this date.")
@click.option("--before", metavar="DATE", help="Only filed before this date.")
@click.option("--n-results", metavar="N", help="How many hits, 1 to 1,000.  [default: 10]")
@click.option("--max-distance", metavar="D", help="Only hits within this cosine distance, 0 (no limit) to 2.")
@click.option("--candidate-strategy", metavar="|".join(STRATEGIES), help="Where candidates come from.")
@click.option("--ranking", metavar="|".join(RANKINGS), help="How they are ranked.")
@click.option("--words-only", is_flag=True, help="Search by words alone, without the embedding model.")
@click.option("--next", "next_", metavar="TOKEN", help="Go on behind the hits already shown.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only where a column is so, as in added_by=anna or filed_at__gte=2026-03. Repeatable.",
)
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
    source_file: tuple[str, ...],
    filters: tuple[str, ...],
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
                "There are no words to search for: give them behind the palace, as in "
                f"datasette mempalace search {palace} spare key, or with --query."
            )
        parameters = {
            name: list(value) if isinstance(value, tuple) else value for name, value in options.items()
        }
        parameters |= {
            "q": asked,
            "source_file": list(common.stored_sources(opened, source_file)),
            "vector_disabled": words_only,
            "next": next_,
            **column_filters(filters),
        }
        request = parse_request(parameters, opened.settings, strict=True)
        if not words_only:
            common.wait_for_model(opened)
        answer = run_search(opened, request)
    if as_json:
        click.echo(as_json_text(answer))
        return
    for line in showing.remarks(answer):
        common.note(line)
    click.echo(showing.page(answer, showing.Look.of_terminal()), nl=bool(answer["results"]))


def column_filters(filters: tuple[str, ...]) -> dict[str, list[str]]:
    """The filters given as NAME=VALUE, as parameters; a name that comes twice has two values."""
    found: dict[str, list[str]] = {}
    for given in filters:
        name, separator, value = given.partition("=")
        if not separator or not is_filter(name):
            raise BadParameter("filter", given, "it must be a column and a value, as in added_by=anna")
        found.setdefault(name, []).append(value)
    return found


def as_json_text(answer: dict[str, Any]) -> str:
    """The answer, with nothing in it that a terminal would obey."""
    text = json.dumps(answer, indent=2, ensure_ascii=False)
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


COMMANDS = (search,)
