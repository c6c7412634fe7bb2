"""Which drawers a command looks at: the options that say so, and what they mean as parameters of a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ..errors import BadParameter
from ..filters import ALLOWED, is_filter
from .common import Command, note
from .showing import did_you_mean

if TYPE_CHECKING:
    from ..palace import Palace
    from ..scope import Scope

_FORM = "it must be COLUMN=VALUE or COLUMN__TEST=VALUE, as in added_by=anna or filed_at__gte=2026-03"
_OPTIONS = (
    click.option("--wing", multiple=True, help="Only this wing. Repeatable."),
    click.option("--room", multiple=True, help="Only this room. Repeatable."),
    click.option(
        "--source-file",
        multiple=True,
        metavar="PATH",
        help="Only this source: its stored path, or a mined file as seen from here. Repeatable.",
    ),
    click.option("--since", metavar="DATE", help="Only filed on or after this date."),
    click.option("--before", metavar="DATE", help="Only filed before this date."),
    click.option(
        "--filter",
        "filters",
        multiple=True,
        metavar="NAME=VALUE",
        help="Only drawers whose column has this value, as in added_by=anna, or passes a test, as in"
        " filed_at__gte=2026-03. Repeatable.",
    ),
)


def scope_options(command: Command) -> Command:
    """--wing, --room, --source-file, --since, --before, --filter."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def parameters_of(palace: Palace, options: dict[str, Any]) -> dict[str, Any]:
    """A command's options as parameters of a request: those of the scope, and any others that parameters are named after.

    Args:
        palace: where sources are looked up by name.
        options: as click gives them, those of `scope_options` among them.
    Raises:
        BadParameter: a filter that does not name a column and a value.
    """
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    filters = _column_filters(given.pop("filters"))
    return given | {"source_file": stored_sources(palace, options["source_file"])} | filters


def refuse_empty(options: Mapping[str, Any]) -> None:
    """Refuse an option without a value where no filter means everything: a script's variable may have been empty.

    Args:
        options: one value or several each, by name; `filters` as NAME=VALUE.
    Raises:
        BadParameter: naming the option.
    """
    for name, given in options.items():
        for value in given if isinstance(given, tuple) else (given,):
            blank = not value.strip() if name in ("since", "before") and value else value == ""
            if blank or (name == "filters" and value.endswith("=")):
                option = "filter" if name == "filters" else name.replace("_", "-")
                allowed = "it must not be empty here, where that could mean everything"
                raise BadParameter(option, value, allowed)


def stored_sources(palace: Palace, given: tuple[str, ...]) -> list[str]:
    """Sources by the names that they are stored under: as they are given, else as files seen from here."""
    found = []
    for name in given:
        absolute = os.path.abspath(name)
        with palace.reader() as connection:
            row = connection.execute(
                "select source_file from drawers where source_file in (:name, :absolute)"
                " order by source_file <> :name limit 1",
                {"name": name, "absolute": absolute},
            ).fetchone()
        found.append(row[0] if row else name)
    return found


def note_near_names(palace: Palace, scope: Scope) -> None:
    """Say which wings and rooms of a scope do not exist, and what may have been meant."""
    from ..suggestions import near_names

    with palace.reader() as connection:
        near = near_names(connection, scope)
    for line in did_you_mean(near):
        note(line)


def _column_filters(filters: list[str]) -> dict[str, list[str]]:
    """The filters given as NAME=VALUE, as parameters; a name that comes twice has two values."""
    found: dict[str, list[str]] = {}
    for given in filters:
        name, separator, value = given.partition("=")
        if not separator or not is_filter(name):
            raise BadParameter("filter", given, f"{_FORM}, where the column is {ALLOWED}")
        found.setdefault(name, []).append(value)
    return found
