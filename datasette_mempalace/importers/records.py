"""Turns rows of JSON, NDJSON, CSV or TSV into drawers: one record, one drawer, its text to the character.

Columns find their field by name (`columns`); what has no field is kept in the drawer's metadata (`values`). A record that
cannot be used is counted with its line and reason and stops nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any

from ..drawers import Drawer, Report, put_drawers
from ..errors import BadInput
from ..interchange import MARK, is_end_of_hits, is_line_of_export
from ..text import make_id, text_hash
from .columns import NAMES, Columns
from .formats import BadRow, Row, read_rows, told_format
from .values import ADDED_BY, Unusable, Values, kind_of

if TYPE_CHECKING:
    from ..palace import Palace


@dataclass
class Imported:
    """What an import did.

    Attributes:
        report: what changed in the palace, and how many characters had to be replaced.
        records: how many records were good.
        bad_rows: how many were not.
    """

    report: Report = field(default_factory=Report)
    records: int = 0
    bad_rows: int = 0


def import_records(palace: Palace, stream: IO[bytes], **options: Any) -> Imported:
    """Put every record of a file into a palace. It embeds nothing.

    Args:
        palace: an open palace.
        stream: the file, binary.
        options: as `Records` has them.
    Returns:
        what was done.
    Raises:
        BadInput: when the file as a whole cannot be understood; BadParameter when `columns` names no field.
    """
    return Records(stream, **options).put_into(palace)


class Records:
    """A file of records, read as far as the first drawer: what is wrong with it as a whole is told before a palace is needed.

    Args:
        stream: the file, binary.
        name: its name, whose ending tells the format.
        form: the format, where name and content do not tell it.
        wing, room: for records that name none.
        columns: column name to field name, for columns with names of their own.
        id_prefix: put before every id that the file gives.
        on_bad: called with each bad row at once.
    Attributes:
        done: what was done so far.
        is_empty: whether no record makes a drawer.
    Raises:
        BadInput: when the file as a whole cannot be understood; BadParameter when `columns` names no field.
    """

    def __init__(
        self,
        stream: IO[bytes],
        *,
        name: str = "",
        form: str | None = None,
        wing: str | None = None,
        room: str | None = None,
        columns: Mapping[str, str] | None = None,
        id_prefix: str = "",
        on_bad: Callable[[BadRow], None] | None = None,
    ):
        self.done = Imported()
        self._reader = RecordReader(wing, room, columns, id_prefix)
        known = self._reader.columns
        check = known.check if told_format(name, form) else known.check_guessed
        drawers = self._read(read_rows(stream, name, form, check), on_bad)
        first = list(islice(drawers, 1))
        self.is_empty = not first
        self._drawers = chain(first, drawers)

    def put_into(self, palace: Palace) -> Imported:
        """Put every record into an open palace. It embeds nothing; returns what was done."""
        self.done.report = put_drawers(palace, self._drawers)
        self.done.report.replaced_characters += self._reader.values.replaced
        return self.done

    def _read(
        self, rows: Iterator[Row | BadRow], on_bad: Callable[[BadRow], None] | None
    ) -> Iterator[Drawer]:
        for number, row in enumerate(rows):
            if number == 0 and isinstance(row, Row) and is_line_of_export(row.value):
                raise BadInput(
                    "These are the lines of an export, and they are not led by its first line, which tells how to read the "
                    f'others (closets and vectors, too): put the line with "{MARK}" first again, one object a line as '
                    "NDJSON, or export anew."
                )
            bad = row if isinstance(row, BadRow) else None
            if isinstance(row, Row):
                if is_end_of_hits(row.value):
                    continue
                try:
                    drawer = self._reader.drawer(row)
                except Unusable as error:
                    bad = BadRow(row.line, str(error))
                else:
                    self.done.records += 1
                    yield drawer
            if bad:
                self.done.bad_rows += 1
                if on_bad:
                    on_bad(bad)


class RecordReader:
    """Makes drawers of records.

    It remembers which ids a file has given, about 100 bytes a record, so that no record silently takes the place of
    another and equal records without an id stay apart.

    Args:
        wing, room: for records that name none.
        columns: column name to field name.
        id_prefix: put before every id that a record has.
    """

    def __init__(
        self,
        wing: str | None = None,
        room: str | None = None,
        columns: Mapping[str, str] | None = None,
        id_prefix: str = "",
    ):
        self.defaults = {"wing": wing or None, "room": room or None}
        self.columns = Columns(columns)
        self.values = Values()
        self.id_prefix = id_prefix
        self._ids: dict[int, int] = {}

    def drawer(self, row: Row) -> Drawer:
        """The drawer of one record.

        Raises:
            Unusable: with the reason.
        """
        if not isinstance(row.value, dict):
            raise Unusable(f"it is {kind_of(row.value)}, not an object with a text")
        fields, rest = self.columns.sort(row.value)
        values: dict[str, Any] = {name: self.values.field(name, value) for name, value in fields.items()}
        text = values.pop("text", None)
        if text is None:
            raise Unusable(
                f"no text: none of {', '.join(NAMES['text'])} is there or filled; --map COLUMN=text names another"
            )
        for name, value in self.defaults.items():
            values[name] = values.get(name) or value
        metadata = self.values.metadata(rest)
        given = values.pop("drawer_id", None)
        drawer = Drawer(text=text, added_by=ADDED_BY, metadata=metadata, **values)
        drawer.drawer_id = self._known_id(given, drawer, row.line) if given else self._new_id(drawer)
        return drawer

    def _known_id(self, given: str, drawer: Drawer, line: int) -> str:
        drawer_id = self.id_prefix + given
        earlier = self._ids.get(_short(drawer_id))
        if earlier is not None:
            raise Unusable(f"the id {given!r} was already used on line {earlier}; each record needs its own")
        self._ids[_short(drawer_id)] = line
        return drawer_id

    def _new_id(self, drawer: Drawer) -> str:
        """An id made from all that a record says, so that it is the same next time; equal records are numbered."""
        parts = (
            drawer.wing, drawer.room, drawer.source_file, drawer.chunk_index, drawer.filed_at, drawer.authored_at,
            drawer.content_date, drawer.text, json.dumps(drawer.metadata, sort_keys=True),
        )  # fmt: skip
        first = make_id("drawer", *parts)
        count = self._ids[_short(first)] = self._ids.get(_short(first), 0) + 1
        return first if count == 1 else make_id("drawer", *parts, count)


def _short(text: str) -> int:
    return int(text_hash(text)[:16], 16)
