"""Which column of a record is which field of a drawer, by its name or as a person has said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import BadInput, BadParameter

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


class Columns:
    """The columns of a file of records.

    Args:
        mapping: column name to field name, for columns with names of their own.
    Raises:
        BadParameter: when it names no field.
    """

    def __init__(self, mapping: Mapping[str, str] | None = None):
        self.mapping = {_plain(column): target for column, target in (mapping or {}).items()}
        for column, target in (mapping or {}).items():
            if target not in NAMES and target != "metadata":
                raise BadParameter(
                    "map", f"{column}={target}", f"a column can be mapped to {', '.join(NAMES)}"
                )

    def check(self, names: Sequence[str]) -> None:
        """Refuse a table that has no column for the text, before each of its rows is.

        Raises:
            BadInput: naming the columns that it has.
        """
        if "text" not in self.sort(dict.fromkeys(names, ""))[0]:
            raise BadInput(
                f"No column holds the text: the columns are {', '.join(names)}, and none is named "
                f"{', '.join(NAMES['text'])}; say which it is with --map COLUMN=text."
            )

    def check_guessed(self, names: Sequence[str]) -> None:
        """Refuse what only seemed to be a table, because it is no JSON: prose, most often, or broken JSON.

        Raises:
            BadInput: saying what may have been meant.
        """
        try:
            self.check(names)
        except BadInput as error:
            begin = ", ".join(names)
            raise BadInput(
                f"This is neither JSON nor CSV with a column {', '.join(NAMES['text'][:-1])} or {NAMES['text'][-1]}: "
                f"it begins with {begin[:60] + '…' if len(begin) > 60 else begin!r}. "
                "To file notes, mine their folder: datasette mempalace mine PALACE FOLDER. "
                "Of a table, say which column holds the text with --map COLUMN=text."
            ) from error

    def sort(self, record: dict[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """A record's values by field, and the rest by its own keys."""
        by_name: dict[str, str] = {}
        for key in record:
            by_name.setdefault(_plain(key), key)
        taken: dict[str, str] = {}
        for column, target in self.mapping.items():
            if column in by_name and target != "metadata":
                taken.setdefault(target, by_name[column])
        mapped = {by_name[column] for column in self.mapping if column in by_name}
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


def _plain(name: object) -> str:
    """A column's name without what people vary: "Source File", "source-file" and "sourceFile" are source_file."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name).strip())
    return re.sub(r"[\s\-_]+", "_", parted).lower()


def _is_blank(value: Any) -> bool:
    return value is None or value == ""
