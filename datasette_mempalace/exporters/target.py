"""Where an export goes: a file or a folder that appears when it is whole, and never takes the place of another unasked."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..errors import BadInput

_DATABASE = b"SQLite format 3\0"


@contextmanager
def new_file(target: Path, force: bool) -> Iterator[IO[str]]:
    """A text stream into a file beside the target, which takes its place when everything was written.

    Args:
        target: the file.
        force: whether a file that is there may be replaced.
    Raises:
        BadInput: when it may not, or the target is no file or a database: no export writes one, and it may be another palace.
    """
    _refuse(target, force, _why_not_file)
    real = Path(os.path.realpath(target))
    handle, name = tempfile.mkstemp(prefix=f".{real.name[:80]}.", suffix=".part", dir=real.parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="") as out:
            yield out
        os.chmod(name, _usual_mode(real))
        os.replace(name, real)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(target: Path, force: bool, why_not: Callable[[Path], str | None]) -> Iterator[Path]:
    """An empty folder beside the target, which takes its place when everything was written.

    Args:
        target: the folder; an empty one may be there.
        force: whether another one that is there may be replaced.
        why_not: why such a folder must not be, as what it is or has; None where it may.
    Raises:
        BadInput: when it may not, or the target is no folder.
    """
    _refuse_folder(target, force, why_not)
    real = Path(os.path.realpath(target))
    made = Path(tempfile.mkdtemp(prefix=f".{real.name[:80]}.", suffix=".part", dir=real.parent))
    try:
        made.chmod(0o777 & ~_umask())
        yield made
        _refuse_folder(target, force, why_not)  # what has come in meanwhile is nobody's to remove
        if real.is_dir():
            old = made.with_name(made.name + ".old")
            os.rename(real, old)
            os.rename(made, real)
            shutil.rmtree(old)
        else:
            os.rename(made, real)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _refuse_folder(target: Path, force: bool, why_not: Callable[[Path], str | None]) -> None:
    empty = target.is_dir() and not any(target.iterdir())
    _refuse(target, force or empty, lambda path: None if empty else why_not(path))


def _refuse(target: Path, force: bool, why_not: Callable[[Path], str | None]) -> None:
    if not target.parent.is_dir():
        raise BadInput(f"The folder {target.parent} does not exist; make it first.")
    if not os.path.lexists(target):
        return
    if target.exists() and (reason := why_not(target)):
        raise BadInput(
            f"{target} {reason}. So it is not replaced; choose another name, or move away what is yours."
        )
    if not force:  # last, so that --force is offered only where it does something
        raise BadInput(f"{target} is there already; --force replaces it.")


def _why_not_file(target: Path) -> str | None:
    if not target.is_file():
        return "is not a file"
    with target.open("rb") as there:
        return "is a SQLite database" if there.read(len(_DATABASE)) == _DATABASE else None


def _usual_mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those of any new file."""
    return target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
