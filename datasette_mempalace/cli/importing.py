"""The command that puts records in: import."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ..errors import BadInput, BadParameter
from ..importers.formats import FORMATS, BadRow
from ..text import counted
from . import common, working
from .common import FAILED, PalaceCommand, config_option, note, palace_argument
from .working import Steps

if TYPE_CHECKING:
    from ..importers.records import Imported
    from ..interchange import Header

SHOWN = 50
STEP = "Importing"
BEGINNING = 65_536


@click.command(name="import", cls=PalaceCommand, interrupted=common.KEPT)
@palace_argument
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--wing", help="Wing of records that name none.")
@click.option("--room", help="Room of records that name none.")
@click.option(
    "--map", "mapping", multiple=True, metavar="COLUMN=FIELD", help="What a column means. Repeatable."
)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="Format, where the name or content does not tell it."
)
@click.option("--id-prefix", default="", help="Put before every id, so that two files may both count from 1.")
@click.option("--re-embed", is_flag=True, help="Ignore the vectors of an export, and embed its texts.")
@config_option
def import_(
    palace: Path,
    file: Path,
    wing: str | None,
    room: str | None,
    mapping: tuple[str, ...],
    form: str | None,
    id_prefix: str,
    re_embed: bool,
    config: Path | None,
) -> None:
    """File the records of FILE (- for standard input): JSON, NDJSON, CSV or TSV. One record becomes one drawer.

    PALACE is made if it does not exist. The text is the column text, content, document, body or message; id, wing,
    room, source_file and dates are found by name, too, and every other column is kept in the drawer's metadata. A
    record with the id of a drawer replaces it; records without an id are added once, however often they are imported.

    A record that cannot be used is reported with its line and loses no other; the exit code is then 1.

    What `export` has written as NDJSON is read back as it was, closets and vectors too.
    """
    from ..importers.decoding import as_utf8
    from ..importers.restoring import find_header

    with _opened(file) as (raw, bars):
        beginning = as_utf8(raw)
        if not beginning.peek(BEGINNING).strip():
            raise BadInput(
                f"{'Standard input' if str(file) == '-' else file} is empty, so there is nothing to import."
            )
        stream = io.BufferedReader(beginning)
        header = find_header(beginning) if form in (None, "ndjson") else None
        if header is not None:
            for name, value in (("wing", wing), ("room", room), ("map", mapping), ("id_prefix", id_prefix)):
                common.require(not value, name, value, "an export is read back as it is")
            _restore(palace, config, stream, header, bars, re_embed)
            return
        common.require(not re_embed, "re_embed", True, "only an export has vectors that could be left")
        options = {
            "form": form,
            "wing": wing,
            "room": room,
            "columns": _columns(mapping),
            "id_prefix": id_prefix,
        }
        _import(palace, config, stream, bars, name=file.name, **options)


def _import(palace: Path, config: Path | None, stream: IO[bytes], bars: Steps, **options: Any) -> None:
    from ..importers.records import Records

    shown = _BadRows()
    records = Records(stream, on_bad=shown, **options)
    if records.is_empty and records.done.bad_rows and not palace.exists():
        bars.close()
        shown.tell()
        note(f"No record of the file can be used, so {palace} was not made.")
        raise click.exceptions.Exit(FAILED)
    with common.make_palace(palace, config) as opened:
        done = records.put_into(opened)
        bars.close()
        shown.tell()
        click.echo(_sentence(done))
        if done.report.updated:
            note("Updated drawers had the same ids; --id-prefix keeps files apart whose ids are alike.")
        working.finish(opened, bars)
    if done.bad_rows:
        raise click.exceptions.Exit(FAILED)


def _restore(
    palace: Path, config: Path | None, stream: IO[bytes], header: Header, bars: Steps, re_embed: bool
) -> None:
    """Read an export back."""
    from ..embedding import embedder_from
    from ..importers.restoring import refuse_other_model, restore

    if not palace.exists() and not re_embed:  # before it is made, and bound to a model
        model = embedder_from(common.settings_for(palace, config).embedder).model
        refuse_other_model(header, model, str(palace))
    shown = _BadRows()
    with common.make_palace(palace, config) as opened:
        done = restore(opened, stream, vectors=not re_embed, on_bad=shown)
        bars.close()
        shown.tell()
        click.echo(working.told(done.drawers))
        if header.closets:
            click.echo(working.told(done.closets, "Closets"))
        if done.related:
            lines = counted(done.related, "line")
            click.echo(f"Origins, hallways, tunnels and knowledge graph of what was imported: {lines}.")
        if done.vectors:
            click.echo(f"Vectors taken: {done.vectors:,}.")
        if done.useless_vectors:
            useless = counted(done.useless_vectors, "vector was", "vectors were")
            note(
                f"{useless} not usable (of another text or length, or "
                f"none that a model makes), and will be made anew."
            )
        if done.missing:
            note(
                f"The file was cut off: {counted(done.missing, 'line')} that its first line promises are missing."
            )
        working.finish(opened, bars)
    if done.bad_rows or done.missing:
        raise click.exceptions.Exit(FAILED)


def _columns(mapping: tuple[str, ...]) -> dict[str, str]:
    columns = {}
    for given in mapping:
        column, equals, field = given.rpartition("=")
        if not equals or not column or not field:
            raise BadParameter("map", given, "it must be COLUMN=FIELD, such as abstract=text")
        columns[column] = field
    return columns


def _sentence(done: Imported) -> str:
    bad = f" and {counted(done.bad_rows, 'record')} that could not be used" if done.bad_rows else ""
    return f"Read {counted(done.records, 'record')}{bad}. {working.told(done.report)}"


class _BadRows:
    """Collects bad rows and shows the first of them."""

    def __init__(self) -> None:
        self.rows: list[BadRow] = []
        self.count = 0

    def __call__(self, row: BadRow) -> None:
        self.count += 1
        if self.count <= SHOWN:
            self.rows.append(row)

    def tell(self) -> None:
        for row in self.rows:
            note(f"Line {row.line}: {row.reason}.")
        if self.count > len(self.rows):
            note(f"… and {counted(self.count - len(self.rows), 'more line')} that could not be used.")


@contextmanager
def _opened(file: Path) -> Iterator[tuple[IO[bytes], Steps]]:
    """The file, binary, and the progress bars; reading the file moves its bar."""
    with working.steps() as bars:
        if str(file) == "-":
            yield sys.stdin.buffer, bars
            return
        if file.is_dir() or not file.exists():
            what = "is a folder; mine it instead" if file.is_dir() else "does not exist"
            raise BadInput(f"{file} {what}.")
        size = file.stat().st_size
        with file.open("rb") as raw:
            yield io.BufferedReader(_Watched(raw, bars, size)), bars


class _Watched(io.RawIOBase):
    """A file that tells how far it has been read."""

    def __init__(self, raw: IO[bytes], bars: Steps, size: int):
        self._raw, self._bars, self._size, self._read = raw, bars, size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._read += len(data)
        if self._size:
            self._bars(STEP, min(self._read, self._size), self._size)
        return len(data)


COMMANDS = (import_,)
