"""The command that writes a palace out: export."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ..errors import BadInput
from ..text import counted
from . import common, working
from .common import Failure, PalaceCommand, config_option, note, palace_argument, wait_for_model
from .scope import note_near_names, parameters_of, refuse_empty, scope_options

if TYPE_CHECKING:
    from ..exporters.readable import Readable
    from ..exporters.selection import Selection, View
    from ..palace import Palace

FORMATS = ("ndjson", "csv", "markdown")
ENDINGS = {".ndjson": "ndjson", ".jsonl": "ndjson", ".csv": "csv"}
Tell = Callable[[int, int], None]


@click.command(cls=PalaceCommand, interrupted="No half of an export was left as if it were whole.")
@palace_argument
@click.argument("output", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format, where OUTPUT's ending does not tell it; a name without one is a folder of Markdown.",
)
@click.option(
    "--vectors", is_flag=True, help="With the stored vectors (NDJSON), so that nothing is embedded again."
)
@click.option(
    "--query", metavar="WORDS", help="Only the hits of this search, best first, and copies of them last."
)
@click.option("--n-results", metavar="N", help="How many of them.  [default: the setting max_n_results]")
@scope_options
@click.option("--force", is_flag=True, help="Replace OUTPUT where it is there already.")
@config_option
def export(
    palace: Path,
    output: Path,
    form: str | None,
    vectors: bool,
    query: str | None,
    n_results: str | None,
    force: bool,
    config: Path | None,
    **options: Any,
) -> None:
    """Write drawers of PALACE to OUTPUT (- for standard output): NDJSON, CSV, or a folder of Markdown.

    \b
      datasette mempalace export notes.db notes.ndjson --vectors
      datasette mempalace export notes.db travel.csv --wing travel
      datasette mempalace export notes.db notes

    NDJSON is read back by `import` to an equal palace: every column, closets, and with --vectors the vectors. CSV is for
    spreadsheets, Markdown for reading. OUTPUT appears when it is whole.
    """
    chosen = _form(output, form)
    common.require(
        not any(
            _is_same(output, f"{file}{ending}")
            for file in (palace, palace.resolve())
            for ending in ("", "-wal", "-shm", "-journal", ".chroma")
        ),
        "output", str(output), "it belongs to the palace itself",
    )  # fmt: skip
    common.require(not vectors or chosen == "ndjson", "vectors", True, "only NDJSON has room for vectors")
    common.require(
        n_results is None or query is not None, "n_results", n_results, "it goes with a search: add --query"
    )
    refuse_empty(options)
    if query is not None and not query.strip():
        raise BadInput("--query has no words to search for; leave it out to export without a search.")
    with common.open_palace(palace, config) as opened, working.steps() as bars:
        parameters = parameters_of(opened, options) | {
            "q": query,
            "n_results": n_results or opened.settings.max_n_results,
        }
        selection = _selection(opened, parameters)
        from ..exporters.selection import viewed

        with viewed(opened, selection) as view, _blamed(output):
            said = _write(view, output, chosen, vectors, force, bars.of("Exporting"))
        bars.close()
        note(said)


def _form(output: Path, form: str | None) -> str:
    if str(output) == "-":
        common.require(form != "markdown", "format", form, "Markdown needs a folder to be written into")
        return form or "ndjson"
    found = form or ENDINGS.get(output.suffix.lower())
    if found is None and output.suffix:
        raise BadInput(
            f"{output} does not end like any of the formats; name one with --format: {', '.join(FORMATS)}."
        )
    return found or "markdown"


def _is_same(output: Path, file: str) -> bool:
    """Whether an output is one of the palace's own files, by whatever name."""
    return output.absolute() == Path(file).absolute() or (
        output.exists() and Path(file).exists() and output.samefile(file)
    )


def _selection(palace: Palace, parameters: dict[str, Any]) -> Selection:
    """The drawers that the options describe; a search is done here."""
    from ..exporters.selection import Selection
    from ..request import parse_request
    from ..searcher import run_search
    from .showing import remarks

    asked = parse_request(parameters, palace.settings, strict=True, allow_blank=True)
    if not asked.query:
        note_near_names(palace, asked.scope)
        return Selection(asked.scope)
    wait_for_model(palace)
    answer = run_search(palace, asked)
    for line in remarks(answer):
        note(line)
    hits = [hit["id"] for hit in answer["results"]]
    copies = [copy["id"] for hit in answer["results"] for copy in hit["also_in"]]
    return Selection(asked.scope, tuple(dict.fromkeys([*hits, *copies])))


def _write(view: View, output: Path, form: str, vectors: bool, force: bool, tell: Tell) -> str:
    """Write in the format that was chosen; returns what was done as a sentence."""
    from ..exporters import manifest, markdown, ndjson, table
    from ..exporters.target import new_folder

    if form == "markdown":
        with new_folder(output, force, manifest.why_not_replaced) as folder:
            return _told(markdown.write(view, folder, tell))
    with _stream(output, force) as out:
        if form == "csv":
            return _told(table.write(view, out, tell))
        header = ndjson.write(view, out, tell, vectors)
    return f"Exported {counted(header.drawers, 'drawer')} and {counted(header.closets, 'closet')}."


@contextmanager
def _blamed(output: Path) -> Iterator[None]:
    """What the system refuses while an export is written, a full disk most often, told of where it was to go."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # the reader has gone
        left = "what came out is incomplete" if str(output) == "-" else "nothing was left or replaced there"
        name = "Standard output" if str(output) == "-" else output
        raise Failure(f"{name} could not be written: {error.strerror or error}; {left}.") from None


@contextmanager
def _stream(output: Path, force: bool) -> Iterator[IO[str]]:
    from ..exporters.target import new_file

    if str(output) != "-":
        with new_file(output, force) as out:
            yield out
        return
    out = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="", write_through=False)
    try:
        yield out
        out.flush()
    finally:
        out.detach()


def _told(done: Readable) -> str:
    files = f" as {counted(done.files, 'file')}" if done.files > 1 else ""
    changed = ""
    if done.changed:
        changed = f" {counted(done.changed, 'value')} with bytes that are no text, shown as U+FFFD; NDJSON keeps them."
    return f"Exported {counted(done.drawers, 'drawer')}{files}.{changed}"


COMMANDS = (export,)
