"""The list of what an export has written into a folder, so that a later one replaces that and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

MANIFEST = ".mempalace-export.json"
SHOWN = 5


def write_manifest(folder: Path) -> None:
    """List every file of a folder with the hash of what is in it."""
    files = {name: _digest(folder / name) for name in _files(folder)}
    (folder / MANIFEST).write_text(json.dumps({"files": files}, indent=0), encoding="utf-8")


def why_not_replaced(folder: Path) -> str | None:
    """Why a folder must not be replaced by a new export, as what it is or has; None where an export wrote all of it."""
    try:
        listed = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
        written = dict(listed)
    except (OSError, ValueError, KeyError, TypeError):
        return "is not a folder that was exported"
    others = [
        name for name in _files(folder) if name != MANIFEST and not _is(folder / name, written.get(name))
    ]
    if not others:
        return None
    more = f" and {len(others) - SHOWN:,} more" if len(others) > SHOWN else ""
    return f"has what no export wrote, or what was changed since: {', '.join(sorted(others)[:SHOWN])}{more}"


def _files(folder: Path) -> Iterator[str]:
    """Every file and link below a folder, by its relative name with slashes; no link is followed."""
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*names, *links):
            yield (Path(place) / name).relative_to(folder).as_posix()


def _is(file: Path, digest: str | None) -> bool:
    """Whether a file is no link and has the content of a hash."""
    return digest is not None and not file.is_symlink() and _digest(file) == digest


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
