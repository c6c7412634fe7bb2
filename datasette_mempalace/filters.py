"""Column filters in Datasette's own syntax (`added_by__exact=anna`, `filed_at__gte=2026-03`) as conditions on drawers.

Pure. Only columns and operators named here reach a statement; values are always bound. A key of `metadata` is written
`metadata.key`, or `metadata.outer.inner` for one inside another.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .moments import day_of

COLUMNS = (
    "id", "drawer_id", "wing", "room", "text", "source_file", "chunk_index", "parent_drawer_id", "hall", "added_by",
    "filed_at", "authored_at", "content_date",
)  # fmt: skip
ALLOWED = f"one of {', '.join(COLUMNS)}, or metadata.KEY"
# The operators of Datasette's table pages that make sense on these columns, each as SQL around {column} and :value.
OPERATORS = {
    "exact": "{column} = {value}",
    "not": "{column} != {value}",
    "contains": "{column} like '%' || {like} || '%' escape '\\'",
    "notcontains": "({column} is null or {column} not like '%' || {like} || '%' escape '\\')",
    "startswith": "{column} like {like} || '%' escape '\\'",
    "endswith": "{column} like '%' || {like} escape '\\'",
    "gt": "{column} > {value}",
    "gte": "{column} >= {value}",
    "lt": "{column} < {value}",
    "lte": "{column} <= {value}",
    "like": "{column} like {value}",
    "notlike": "{column} not like {value}",
    "glob": "{column} glob {value}",
    "in": "{column} in (select value from json_each({json}))",
    "notin": "{column} not in (select value from json_each({json}))",
    "date": f"{day_of('{column}')} = {{value}}",
    "isnull": "{column} is null",
    "notnull": "{column} is not null",
    "isblank": "({column} is null or {column} = '')",
    "notblank": "({column} is not null and {column} != '')",
}
WITHOUT_VALUE = frozenset({"isnull", "notnull", "isblank", "notblank"})
ORDERED = frozenset({"gt", "gte", "lt", "lte"})
NUMBERS = frozenset({"id", "chunk_index"})
_METADATA_KEY = re.compile(r"metadata\.(.+)", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class Filter:
    """One condition on one column.

    Attributes:
        column: a name of `COLUMNS`, or `metadata.key`.
        operator: a name of `OPERATORS`.
        value: what it is held against, as text; for `in` and `notin` a JSON array.
    """

    column: str
    operator: str
    value: str

    @property
    def name(self) -> str:
        """The parameter it came from: `column__operator`."""
        return f"{self.column}__{self.operator}"

    def where(self, number: int) -> tuple[str, dict[str, Any]]:
        """The condition in SQL and its parameters, told apart from others' by `number`."""
        prefix = f"filter_{number}"
        parameters: dict[str, Any] = {}
        column = self._column(prefix, parameters)
        template = OPERATORS[self.operator]
        if "{value}" in template:
            parameters[f"{prefix}_value"] = self._typed()
        if "{like}" in template:
            parameters[f"{prefix}_like"] = re.sub(r"([\\%_])", r"\\\1", self.value)
        if "{json}" in template:
            parameters[f"{prefix}_json"] = self.value
        places = {part: f":{prefix}_{part}" for part in ("value", "like", "json")}
        return template.format(column=column, **places), parameters

    def _column(self, prefix: str, parameters: dict[str, Any]) -> str:
        key = _METADATA_KEY.fullmatch(self.column)
        if key is None:
            return self.column
        value = "iif(json_valid(metadata), metadata, '{}')"
        for depth, name in enumerate(key[1].split(".")):
            parameters[f"{prefix}_key_{depth}"] = name
            # Not json_extract: its paths cannot name every key. A value inside is looked into only when it has keys.
            inside = value if depth == 0 else f"iif(json_valid({value}), {value}, '{{}}')"
            value = f"(select value from json_each({inside}) where key = :{prefix}_key_{depth})"
        # The same number may stand in metadata as a number or as a text: only order asks which of both it is.
        return value if self.operator in ORDERED else f"cast({value} as text)"

    def _typed(self) -> str | int | float:
        """The value as a number where the column holds numbers, or may: a text never equals a number in SQLite."""
        if self.column in NUMBERS or (self.column.startswith("metadata.") and self.operator in ORDERED):
            if re.fullmatch(r"-?\d{1,18}", self.value):
                return int(self.value)
            if _NUMBER.fullmatch(self.value):
                return float(self.value)
        return self.value


def make_filter(name: str, value: str) -> Filter | None:
    """A filter from a parameter.

    Args:
        name: `column`, `column__operator`, `metadata.key`, `metadata.key__operator`.
        value: what was given; values with commas become the JSON array that `in` and `notin` take.
    Returns:
        the filter, or None where an operator without a value was switched off by "0".
    """
    column, operator = split_name(name)
    if operator in WITHOUT_VALUE:
        return None if value in ("0", "") else Filter(column, operator, "1")
    if operator in ("in", "notin") and not _is_array(value):
        value = json.dumps([part.strip() for part in value.split(",")], ensure_ascii=False)
    return Filter(column, operator, value)


def is_filter(name: str) -> bool:
    """Whether a parameter's name is that of a column filter: `column`, `column__operator`, `metadata.key...`."""
    column, operator = split_name(name)
    return operator in OPERATORS and (column in COLUMNS or _METADATA_KEY.fullmatch(column) is not None)


def split_name(name: str) -> tuple[str, str]:
    """A parameter's name as column and operator; without an operator it is `exact`."""
    column, separator, operator = name.rpartition("__")
    return (column, operator) if separator and operator in OPERATORS else (name, "exact")


def _is_array(value: str) -> bool:
    try:
        return isinstance(json.loads(value), list)
    except ValueError:
        return False
