"""The tables of the references in `docs/`, made from the code that they describe.

cog puts them between their marks: `make reference` rewrites them, and the tests fail where one is stale. Prose around
them is written by hand. Each function returns Markdown.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import click

from datasette_mempalace import search_table, sql_functions
from datasette_mempalace.cli import mempalace, register
from datasette_mempalace.config import SETTINGS, Settings
from datasette_mempalace.importers.columns import NAMES
from datasette_mempalace.parameter_values import FLAGS
from datasette_mempalace.request import MAX_ID
from datasette_mempalace.request import PARAMETERS as SEARCH
from datasette_mempalace.views import ROUTES
from datasette_mempalace.views.openapi import path_of
from datasette_mempalace.views.operation import operation_of
from datasette_mempalace.views.parameters import PARAMETERS
from datasette_mempalace.views.schemas import SCHEMAS

NOT_THE_CALLERS = ("palace", "connection")
EVERYWHERE = ("--config", "--help")
_SECTION = re.compile(r"^(Args|Returns|Raises):$", re.MULTILINE)

if not mempalace.commands:
    register(SimpleNamespace(add_command=lambda command: None))  # type: ignore[arg-type]


def table(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    lines = [list(heading), *(list(row) for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join("|" + "|".join(_cell(cell) for cell in line) + "|\n" for line in lines)


def settings() -> str:
    """Every setting: its default, what is allowed, what it is for."""
    defaults = {field.name: getattr(Settings(), field.name) for field in fields(Settings)}
    return table(
        ("setting", "default", "allowed", ""),
        (
            (f"`{name}`", _default(defaults[name]), setting.kind.allowed, setting.meaning)
            for name, setting in SETTINGS.items()
        ),
    )


def commands() -> str:
    """Every command and its first sentence."""
    return table(
        ("command", ""),
        ((f"[`{name}`](#{name})", _first(command.help)) for name, command in mempalace.commands.items()),
    )


def options(name: str) -> str:
    """How a command is called, and every option of its own."""
    command = mempalace.commands[name]
    context = click.Context(command)
    own = [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and not set(parameter.opts) & set(EVERYWHERE)
    ]
    words = " ".join(command.collect_usage_pieces(context)[1:])
    usage = f"```text\ndatasette mempalace {name} {words}{' [OPTIONS]' if own else ''}\n```\n"
    if not own:
        return usage
    return usage + "\n" + table(("option", ""), ((_option(option, context), _help(option)) for option in own))


def routes() -> str:
    """Every path that the plugin serves."""
    rows = []
    for pattern, view in ROUTES:
        operation = operation_of(view)
        says = operation.summary if operation else (inspect.getdoc(view) or "").partition(".\n")[0]
        rows.append((f"`{path_of(pattern)}`", _begun_small(_one_line(says))))
    return table(("path", ""), rows)


def parameters() -> str:
    """The parameters of a search."""
    return table(
        ("name", "type", "default", ""),
        (
            (
                f"`{name}`",
                _type(PARAMETERS[name]["schema"]),
                _parameter_default(PARAMETERS[name]),
                _begun_small(PARAMETERS[name]["description"]),
            )
            for name in SEARCH
        ),
    )


def keys(name: str) -> str:
    """The keys of a JSON object of the API."""
    properties = SCHEMAS[name]["properties"]
    return table(
        ("key", "type", ""),
        ((f"`{key}`", _type(schema), schema["description"]) for key, schema in properties.items()),
    )


def fields_of_records() -> str:
    """Which columns of a file `import` takes for which field of a drawer."""
    return table(
        ("field", "columns"),
        ((f"`{field}`", ", ".join(f"`{name}`" for name in names)) for field, names in NAMES.items()),
    )


def functions() -> str:
    """Every SQL function with its arguments, and what it returns."""
    return table(
        ("function", "returns"),
        ((f"`{_call(name)}`", _returned(_function(name))) for name in registered_functions()),
    )


def arguments(name: str) -> str:
    """The arguments of an SQL function."""
    described = _arguments(_function(name))
    return table(
        ("argument", ""),
        ((f"`{argument}`", described[argument]) for argument in _parameters(_function(name))),
    )


def narrowing() -> str:
    """What narrows the search in the table `mempalace_search`: columns by their operators."""
    by_operators: dict[tuple[str, ...], list[str]] = {}
    order = [*search_table.AS_FILTER]
    for column, operators in search_table.SHAPE.narrowing.items():
        by_operators.setdefault(tuple(sorted(operators, key=order.index)), []).append(column)
    return table(
        ("column", "operators"),
        (
            (", ".join(f"`{column}`" for column in columns), ", ".join(f"`{name}`" for name in operators))
            for operators, columns in by_operators.items()
        ),
    )


def registered_functions() -> dict[str, list[int]]:
    """The SQL functions that a palace's connections get, with the numbers of arguments that they take."""
    made: dict[str, list[int]] = {}
    connection = SimpleNamespace(
        execute=lambda *given: SimpleNamespace(fetchone=lambda: (0,)),
        create_function=lambda name, count, *rest, **options: made.setdefault(name, []).append(count),
    )
    sql_functions.register(connection, None)  # type: ignore[arg-type]
    return made


def _function(name: str) -> Callable[..., Any]:
    """What does the work of an SQL function: a Python function of that name."""
    found: Callable[..., Any] = getattr(sql_functions, name)
    return found


def _parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in NOT_THE_CALLERS]


def _call(name: str) -> str:
    """A call with its arguments, those that may be left out in brackets."""
    names, least = _parameters(_function(name)), min(registered_functions()[name])
    closing = "]" * (len(names) - least)
    optional = "".join(f" [, {argument}" for argument in names[least:])
    return f"{name}({', '.join(names[:least])}{optional}{closing})"


def _parts(function: Callable[..., Any]) -> dict[str, str]:
    """A docstring's summary, under "", and its sections."""
    text = inspect.getdoc(function) or ""
    pieces = _SECTION.split(text)
    return {"": pieces[0], **dict(zip(pieces[1::2], map(textwrap.dedent, pieces[2::2]), strict=True))}


def _returned(function: Callable[..., Any]) -> str:
    parts = _parts(function)
    return _one_line(parts.get("Returns") or _first(parts[""]))


def _arguments(function: Callable[..., Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for names, meaning in re.findall(
        r"^(\w[\w, ]*): (.*(?:\n[ ]+.*)*)", _parts(function).get("Args", "").strip("\n"), re.MULTILINE
    ):
        found |= dict.fromkeys(names.split(", "), _one_line(meaning))
    return found


def _option(option: click.Option, context: click.Context) -> str:
    name = next(name for name in option.opts if name.startswith("--"))
    value = "" if option.is_flag else f" {option.make_metavar(context).strip('[]')}"
    return f"`{name}{value}`"


def _help(option: click.Option) -> str:
    text, _, default = (
        re.sub(r"\s+", " ", option.help or "").strip().removesuffix("]").partition(" [default: ")
    )
    if isinstance(option.default, int) and not option.is_flag:
        default = f"{option.default:,}"
    text = text.removesuffix(".") + (f"; {default} by default" if default else "")
    return _begun_small(text)


def _parameter_default(parameter: dict[str, Any]) -> str:
    if parameter.get("required"):
        return "required"
    default = parameter["schema"].get("default")
    return "" if default is None else f"`{default}`"


def _type(schema: dict[str, Any]) -> str:
    """What values a JSON Schema allows, in a few words."""
    if "anyOf" in schema and "type" not in schema:
        return " or ".join(_type(part) for part in schema["anyOf"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`".replace('"', "")
    if set(schema.get("enum", ())) == set(FLAGS):
        return "flag"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2].lower()
    if schema["type"] == "array":
        return f"list: {_type(schema['items'])}"
    if any("format" in part for part in schema.get("anyOf", ())):
        return "date or time"
    name = {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(
        schema["type"], schema["type"]
    )
    return name + _limits(schema)


def _limits(schema: dict[str, Any]) -> str:
    for low, high, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        if low in schema and high in schema:
            if abs(schema[high]) >= MAX_ID:
                return ""
            return f", {schema[low]:,} to {schema[high]:,}{unit}"
    return ""


def _begun_small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].removesuffix(".")


def _default(value: Any) -> str:
    """A default as YAML has it."""
    if value is None:
        return "none"
    value = list(value) if isinstance(value, tuple) else value
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _first(text: str | None) -> str:
    """The first sentence, as it would stand in a table."""
    sentence = re.split(r"(?<=[.:;]) |\n\n", re.sub(r"(?<!\n)\n(?!\n)", " ", (text or "").strip()))[0]
    return _begun_small(_one_line(sentence)).rstrip(":;")


def _one_line(text: str) -> str:
    return " ".join(text.split()).removesuffix(".")


def _cell(text: str) -> str:
    return f" {text} ".replace("|", "\\|") if text else " "
