"""What the commands share: errors as one sentence, settings, progress bars, harmless text for a terminal."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..config import Settings, read_settings
from ..errors import BadInput, BadParameter, ConfigError, MempalaceError, PalaceNotFound

if TYPE_CHECKING:
    from ..palace import Palace

PLUGIN = "datasette-mempalace"
FAILED, BAD_INPUT = 1, 2
# What Ctrl-C leaves of a command that commits as it goes.
KEPT = "What was filed so far is kept; the same command again goes on from there."
EMBEDDED = "What was embedded so far is kept; the same command again goes on from there."
TRACEBACK = "DATASETTE_MEMPALACE_TRACEBACK"

Command = TypeVar("Command", bound=Callable[..., Any])

# What a terminal would obey: C0 but tab and newline, DEL, C1, and the marks that reorder what is read.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Failure(click.ClickException):
    """A problem told in one sentence; exit code 1."""

    exit_code = FAILED

    def __init__(self, message: str):
        super().__init__(harmless(message))


class Refusal(Failure):
    """Input that is not allowed, told in one sentence; exit code 2."""

    exit_code = BAD_INPUT


class PalaceCommand(click.Command):
    """A command that never ends in a traceback.

    Args:
        interrupted: what there is to say when Ctrl-C ends it.
    """

    def __init__(self, *arguments: Any, interrupted: str = "", **options: Any):
        super().__init__(*arguments, **options)
        self._interrupted = interrupted

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a problem becomes a `Failure` with its exit code."""
        _survive_any_text()
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            raise Failure(f"Interrupted. {self._interrupted}".rstrip()) from None
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader has gone, as `| head` does; click ends quietly
            raise _failure(error) from None


class PalaceGroup(click.Group):
    """The group; its commands are `PalaceCommand`s."""

    command_class = PalaceCommand


def _failure(error: Exception) -> Failure:
    if isinstance(error, MempalaceError):
        bad = isinstance(error, (BadInput, ConfigError)) or error.status == 404
        return Refusal(error.message) if bad else Failure(error.message)
    if isinstance(error, sqlite3.Error):
        return Failure(
            f"SQLite could not do this: {error}. Committed work is safe; try again when the cause is gone."
        )
    if isinstance(error, UnicodeEncodeError):
        return Refusal("A name or text that was given is not valid UTF-8.")
    if isinstance(error, OSError):
        return Failure(f"{error.filename or 'A file'} could not be used: {error.strerror or error}.")
    return Failure(
        f"This should not happen: {type(error).__name__}: {error}. Please report it; "
        f"{TRACEBACK}=1 in the environment shows where."
    )


def _survive_any_text() -> None:
    """Let a terminal without UTF-8 show escapes where it has no letters, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")


def palace_argument(command: Command) -> Command:
    """PALACE: the database file."""
    return click.argument(
        "palace", metavar="PALACE", type=click.Path(path_type=Path), callback=_refuse_folder
    )(command)


def _refuse_folder(context: click.Context, parameter: click.Parameter, given: Path) -> Path:
    """A palace that is no folder: who names one has most often left the palace out."""
    if given.is_dir():
        raise click.BadParameter(
            f"{str(given)!r} is a folder; the palace comes first, a database such as notes.db."
        )
    return given


def config_option(command: Command) -> Command:
    """--config FILE: the settings that the server has."""
    return click.option(
        "--config",
        "config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="metadata.yml or datasette.yaml whose plugin settings apply here, too.",
    )(command)


def settings_for(palace: Path, config: Path | None, embedder: dict[str, Any] | None = None) -> Settings:
    """The settings of a palace.

    Args:
        palace: its file; Datasette names the database after it.
        config: Datasette's configuration, or None for the defaults. The settings of the database's block outrank the instance's.
        embedder: `{name, config}` from the command line, which outranks both.
    Raises:
        ConfigError: when the file or a setting cannot be used.
    """
    settings = read_settings(*_plugin_blocks(palace, config)) if config else Settings()
    if embedder is None:
        return settings
    return replace(settings, embedder=read_settings({"embedder": embedder}).embedder)


def _plugin_blocks(palace: Path, config: Path) -> tuple[Any, Any]:
    """The instance's block and the database's, secrets put in from the environment."""
    from datasette.utils import resolve_env_secrets

    content = read_config(config)
    places = (), ("databases", palace.stem)
    instance, own = (
        resolve_env_secrets(_path(content, *place, "plugins", PLUGIN), os.environ) for place in places
    )
    return instance, own


def read_config(config: Path) -> dict[str, Any]:
    """What a configuration file of Datasette's says, metadata.yml or datasette.yaml.

    Raises:
        ConfigError: when it cannot be read or holds no mapping.
    """
    from datasette.utils import BadMetadataError, parse_metadata

    try:
        content = parse_metadata(config.read_text(encoding="utf-8-sig"))
    except (BadMetadataError, UnicodeDecodeError) as error:
        raise ConfigError(f"{config} cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{config} must hold a mapping, as metadata.yml does.")
    return content


def _path(content: Any, *keys: str) -> Any:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


@contextmanager
def open_palace(
    palace: Path, config: Path | None = None, read_only: bool = False, damaged: bool = False
) -> Iterator[Palace]:
    """An existing palace, closed at the end; with `damaged`, also one whose tables are missing."""
    from ..palace import Palace

    if not palace.exists():
        raise PalaceNotFound(
            f"{palace} does not exist. The first argument is the palace, a database such as notes.db; "
            "make one with: datasette mempalace init PALACE"
        )
    settings = settings_for(palace, config)
    with Palace.open(palace, settings, read_only=read_only, damaged=damaged) as opened:
        yield opened


@contextmanager
def make_palace(palace: Path, config: Path | None = None) -> Iterator[Palace]:
    """A palace, made if there is none, closed at the end; says so when it was made."""
    from ..palace import Palace

    new = not palace.exists()
    with Palace.create(palace, settings_for(palace, config)) as opened:
        if new:
            note(f"Made the palace {palace}.")
        yield opened


def wait_for_model(palace: Palace) -> None:
    """Load a local model, however long it takes: a server falls back to words meanwhile, a command has one chance."""
    try:
        if palace.embedder.is_local and palace.embedder.missing() is None:
            palace.embedder.load()
    except MempalaceError:  # the search tells it, and what to do
        return


def harmless(text: object) -> str:
    """A text that a terminal shows and does not obey."""
    return _OBEYED.sub(
        lambda match: chr(0x2400 + ord(match[0])) if ord(match[0]) < 0x20 else "\ufffd", str(text)
    )


def note(text: str) -> None:
    """Say something beside the answer."""
    click.echo(harmless(text), err=True)


def require(condition: bool, parameter: str, value: object, allowed: str) -> None:
    """Raise BadParameter unless a condition holds."""
    if not condition:
        raise BadParameter(parameter, value, allowed)
