"""Turns rows of JSON, NDJSON, CSV or TSV into drawers: one record, one drawer, its text to the character.

Columns find their field by name; what has no field is kept in the drawer's metadata. A record that cannot be used is
counted with its line and reason and stops nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING, Any

from ..drawers import Drawer, Report, put_drawers
from ..errors import BadInput, BadParameter
from ..interchange import is_end_of_hits
from ..text import clean_text, make_id, text_hash
from .formats import BadRow, Row, read_rows, told_format

if TYPE_CHECKING:
    from ..palace import Palace

ADDED_BY = "import"
# The names a column may have for each field, the first present wins. Case, spaces and hyphens do not count.
NAMES: dict[str, tuple[str, ...]] = {
    "text": ("text", "content", "document", "body", "message"),
    "drawer_id": ("drawer_id", "id"),
    "wing": ("wing", "project", "collection", "notebook"),
    "room": ("room", "topic", "category", "section"),
    "source_file": ("source_path", "source_file", "source", "path", "file", "filename", "url"),
    "chunk_index": ("chunk_index",),
    "parent_drawer_id": ("parent_drawer_id",),
    "hall": ("hall",),
    "filed_at": ("filed_at", "created_at", "created", "timestamp", "datetime", "date"),
    "authored_at": ("authored_at", "written_at", "published_at", "sent_at"),
    "content_date": ("content_date",),
}
_DATES = frozenset({"filed_at", "authored_at", "content_date"})
_CLOCK = re.compile(r"[0-9]{10}(\.[0-9]+)?|[0-9]{13}")  # seconds or milliseconds since 1970, as text
_LARGEST = 2**53
_DEEPEST = 100


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


class _Unusable(Exception):
    """A record that makes no drawer; its text is the reason."""


def import_records(
    palace: Palace,
    stream: IO[bytes],
    *,
    name: str = "",
    form: str | None = None,
    wing: str | None = None,
    room: str | None = None,
    columns: Mapping[str, str] | None = None,
    id_prefix: str = "",
    on_bad: Callable[[BadRow], None] | None = None,
) -> Imported:
    """Put every record of a file into a palace. It embeds nothing.

    Args:
        palace: an open palace.
        stream: the file, binary.
        name: its name, whose ending tells the format.
        form: the format, where name and content do not tell it.
        wing, room: for records that name none.
        columns: column name to field name, for columns with names of their own.
        id_prefix: put before every id that the file gives.
        on_bad: called with each bad row at once.
    Returns:
        what was done.
    Raises:
        BadInput: when the file as a whole cannot be understood; BadParameter when `columns` names no field.
    """
    done = Imported()
    reader = RecordReader(wing, room, columns, id_prefix)
    check = reader.check_columns if told_format(name, form) else reader.check_guessed_columns
    drawers = _drawers(read_rows(stream, name, form, check), reader, done, on_bad)
    done.report = put_drawers(palace, drawers)
    done.report.replaced_characters += reader.replaced
    return done


def _drawers(
    rows: Iterator[Row | BadRow],
    reader: RecordReader,
    done: Imported,
    on_bad: Callable[[BadRow], None] | None,
) -> Iterator[Drawer]:
    for row in rows:
        bad = row if isinstance(row, BadRow) else None
        if isinstance(row, Row):
            if is_end_of_hits(row.value):
                continue
            try:
                drawer = reader.drawer(row)
            except _Unusable as error:
                bad = BadRow(row.line, str(error))
            else:
                done.records += 1
                yield drawer
        if bad:
            done.bad_rows += 1
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
        self.columns = {_plain(column): target for column, target in (columns or {}).items()}
        self.id_prefix = id_prefix
        self.replaced = 0
        self._ids: dict[int, int] = {}
        for column, target in (columns or {}).items():
            if target not in NAMES and target != "metadata":
                raise BadParameter(
                    "map", f"{column}={target}", f"a column can be mapped to {', '.join(NAMES)}"
                )

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse a table that has no column for the text, before each of its rows is.

        Raises:
            BadInput: naming the columns that it has.
        """
        if "text" not in self._sort(dict.fromkeys(names, ""))[0]:
            raise BadInput(
                f"No column holds the text: the columns are {', '.join(names)}, and none is named "
                f"{', '.join(NAMES['text'])}; say which it is with --map COLUMN=text."
            )

    def check_guessed_columns(self, names: Sequence[str]) -> None:
        """Refuse what only seemed to be a table, because it is no JSON: prose, most often, or broken JSON.

        Raises:
            BadInput: saying what may have been meant.
        """
        try:
            self.check_columns(names)
        except BadInput as error:
            begin = ", ".join(names)
            raise BadInput(
                f"This is neither JSON nor CSV with a column {', '.join(NAMES['text'][:-1])} or {NAMES['text'][-1]}: "
                f"it begins with {begin[:60] + '…' if len(begin) > 60 else begin!r}. "
                "To file notes, mine their folder: datasette mempalace mine PALACE FOLDER. "
                "Of a table, say which column holds the text with --map COLUMN=text."
            ) from error

    def drawer(self, row: Row) -> Drawer:
        """The drawer of one record.

        Raises:
            _Unusable: with the reason.
        """
        if not isinstance(row.value, dict):
            raise _Unusable(f"it is {_kind(row.value)}, not an object with a text")
        fields, rest = self._sort(row.value)
        values: dict[str, Any] = {name: self._value(name, value) for name, value in fields.items()}
        text = values.pop("text", None)
        if text is None:
            raise _Unusable(
                f"no text: none of {', '.join(NAMES['text'])} is there or filled; --map COLUMN=text names another"
            )
        for name, value in self.defaults.items():
            values[name] = values.get(name) or value
        metadata = self._metadata(rest)
        given = values.pop("drawer_id", None)
        drawer = Drawer(text=text, added_by=ADDED_BY, metadata=metadata, **values)
        drawer.drawer_id = self._known_id(given, drawer, row.line) if given else self._new_id(drawer)
        return drawer

    def _sort(self, record: dict[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """A record's values by field, and the rest by its own keys."""
        by_name: dict[str, str] = {}
        for key in record:
            by_name.setdefault(_plain(key), key)
        taken: dict[str, str] = {}
        for column, target in self.columns.items():
            if column in by_name and target != "metadata":
                taken.setdefault(target, by_name[column])
        mapped = {by_name[column] for column in self.columns if column in by_name}
        for target, names in NAMES.items():
            for name in names:
                key = by_name.get(name)
                if (
                    target not in taken
                    and key is not None
                    and key not in mapped
                    and not _is_blank(record[key])
                ):
                    taken[target] = key
        for name in NAMES["text"] if "text" not in taken else ():
            key = by_name.get(name)
            if (
                key is not None and key not in mapped
            ):  # an empty text is one, where the format can tell it from none
                taken["text"] = key
        used = set(taken.values())
        return (
            {target: record[key] for target, key in taken.items()},
            {key: value for key, value in record.items() if key not in used},
        )

    def _value(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name == "chunk_index":
            return _whole(value)
        if name in _DATES:
            return _date(name, self._clean(value) if isinstance(value, str) else value)
        if isinstance(value, str):
            return self._clean(value) if name == "text" else self._clean(value) or None
        if name != "text" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        raise _Unusable(f"{name}: it is {_kind(value)}, not a text")

    def _metadata(self, rest: dict[str, Any]) -> dict[str, Any]:
        """The keys without a field; the object under `metadata`, JSON text too, is opened into them."""
        own = rest.get("metadata")
        if isinstance(own, str):
            try:
                own = json.loads(own, parse_constant=str)
            except (ValueError, RecursionError):
                own = None
        if isinstance(own, dict):
            rest = {**own, **{key: value for key, value in rest.items() if key != "metadata"}}
        if rest.get("added_by") == ADDED_BY:
            rest = {key: value for key, value in rest.items() if key != "added_by"}
        cleaned: dict[str, Any] = self._clean_deep(rest)
        return cleaned

    def _clean(self, text: str) -> str:
        cleaned, replaced = clean_text(text)
        self.replaced += replaced
        return cleaned

    def _clean_deep(self, value: Any, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise _Unusable("nested too deeply")
        if isinstance(value, str):
            return self._clean(value)
        if isinstance(value, dict):
            return {self._clean(str(key)): self._clean_deep(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._clean_deep(item, depth + 1) for item in value]
        if isinstance(value, float) and not math.isfinite(value):  # 1e999: JSON knows no infinity
            return str(value)
        return value

    def _known_id(self, given: str, drawer: Drawer, line: int) -> str:
        drawer_id = self.id_prefix + given
        earlier = self._ids.get(_short(drawer_id))
        if earlier is not None:
            raise _Unusable(f"the id {given!r} was already used on line {earlier}; each record needs its own")
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


def _plain(name: object) -> str:
    """A column's name without what people vary: "Source File", "source-file" and "sourceFile" are source_file."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name).strip())
    return re.sub(r"[\s\-_]+", "_", parted).lower()


def _is_blank(value: Any) -> bool:
    return value is None or value == ""


def _kind(value: Any) -> str:
    for kinds, name in (
        (bool, "true or false"),
        ((int, float), "a number"),
        (str, "a text"),
        (list, "a list"),
        (dict, "an object"),
    ):
        if isinstance(value, kinds):  # type: ignore[arg-type]
            return name
    return "null"


def _whole(value: Any) -> int | None:
    if value == "":
        return None
    try:
        if isinstance(value, (bool, dict, list)) or (number := float(value)) != int(number):
            raise ValueError
        if abs(number) > _LARGEST:
            raise OverflowError
    except (ValueError, OverflowError):
        raise _Unusable(f"chunk_index: {str(value)[:40]!r} is not a whole number") from None
    return int(number)


def _date(name: str, value: Any) -> str | None:
    """A date as text; a number that counts seconds or milliseconds since 1970 becomes one, any other stays as it is."""
    number = value
    if isinstance(value, str):
        if not _CLOCK.fullmatch(value):
            return value or None
        number = float(value)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise _Unusable(f"{name}: it is {_kind(value)}, not a date")
    if 1e8 <= number < 1e11:  # seconds, 1973 to 5138; a smaller number is a year, or a day without hyphens
        return datetime.fromtimestamp(number, timezone.utc).isoformat()
    if 1e12 <= number < 1e14:  # milliseconds, from 2001
        return datetime.fromtimestamp(number / 1000, timezone.utc).isoformat()
    return str(value)
