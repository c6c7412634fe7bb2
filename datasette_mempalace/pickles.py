"""Pickles that came from elsewhere: looked at without running what they ask for, before anybody else opens them.

Unpickling runs whatever a pickle names. Chroma keeps one beside each of its indexes, and a folder may be a stranger's.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any


class Untrusted(Exception):
    """A pickle that names more than Chroma's own record, or cannot be read; the message is the end of a sentence."""


class _Record:
    """Stands for chromadb's `PersistentData`, whose attributes are all that is wanted."""


class _Refusing(pickle.Unpickler):
    """Reads plain containers and Chroma's own record of an index, and refuses to make anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "PersistentData" and module.startswith("chromadb."):
            return _Record
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def read_record(file: Path) -> dict[str, Any]:
    """What Chroma's record of an index says, by attribute; empty where it is of another form.

    Raises:
        Untrusted: when the pickle is damaged, or would make anything else.
    """
    try:
        with file.open("rb") as opened:
            record = _Refusing(opened).load()
    except Exception as error:  # a damaged pickle raises nearly anything
        raise Untrusted(f"{file.name} cannot be read ({type(error).__name__}: {error})") from error
    return record if isinstance(record, dict) else vars(record) if isinstance(record, _Record) else {}


def refuse_untrusted(folder: Path) -> None:
    """Look at every pickle below a folder.

    Raises:
        Untrusted: for the first that Chroma must not be given.
    """
    for file in sorted(folder.rglob("*.pickle")):
        read_record(file)
