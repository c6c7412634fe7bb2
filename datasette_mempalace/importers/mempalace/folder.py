"""Where MemPalace keeps a palace and what it says about it beside the database. Only looks; nothing is opened for writing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import PalaceNotFound
from ...origins import CHROMA_FILE, is_mempalace_folder

# In MemPalace's own order.
VARIABLES = ("MEMPALACE_PALACE_PATH", "MEMPALACE_PALACE", "MEMPAL_PALACE_PATH")
DRAWERS, CLOSETS = "mempalace_drawers", "mempalace_closets"
GRAPH_FILE = "knowledge_graph.sqlite3"
_EMBEDDERS = "mempalace_embedder.json"


def find_folder(given: Path | None) -> Path:
    """The palace folder to import.

    Args:
        given: what a person named, or None for where MemPalace keeps its palace: the environment variables, then
            `palace_path` of its config.json and the folder `palace` beside that, in each place where it may lie.
    Returns:
        a folder that holds chroma.sqlite3.
    Raises:
        PalaceNotFound: when there is none; says what is there instead, or where was looked.
    """
    if given is not None:
        return _checked(given.expanduser())
    named = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), None)
    if named:
        return _checked(Path(named).expanduser())
    looked = []
    for home in config_folders():
        for folder in (_path(read_json(home / "config.json").get("palace_path")), home / "palace"):
            if folder and is_mempalace_folder(folder):
                return folder
            looked += [str(folder)] if folder else []
    raise PalaceNotFound(
        f"No MemPalace palace was found; looked in {', '.join(dict.fromkeys(looked))}. Name its folder, the one with "
        f"{CHROMA_FILE} in it: datasette mempalace import-palace PALACE.db FOLDER"
    )


def config_folders() -> Iterator[Path]:
    """Where MemPalace's own configuration may lie, in its order."""
    if os.environ.get("MEMPALACE_CONFIG_DIR", "").strip():
        yield Path(os.environ["MEMPALACE_CONFIG_DIR"]).expanduser()
    yield Path.home() / ".mempalace"
    shared = Path(os.environ.get("XDG_CONFIG_HOME", "").strip() or Path.home() / ".config")
    if shared.is_absolute():
        yield shared / "mempalace"


def configured(folder: Path, key: str) -> list[str]:
    """What MemPalace's config.json says of a key: the one beside the palace first, then those of its homes."""
    values = (read_json(place / "config.json").get(key) for place in (folder.parent, *config_folders()))
    return [value for value in values if isinstance(value, str) and value]


def recorded_embedder(folder: Path, collection: str) -> str | None:
    """The embedding model that MemPalace itself recorded for a collection; 3.4 and later do."""
    entry = read_json(folder / _EMBEDDERS).get(collection)
    name = entry.get("model_name") if isinstance(entry, dict) else None
    return str(name) if name else None


def find_graph(folder: Path) -> tuple[Path | None, Path | None]:
    """The palace's knowledge graph, and one that may be its own but lies in the home folder.

    A graph in the palace's folder or beside it belongs to it. MemPalace's commands write to the one in the home folder
    whatever palace they are for, so that it is taken only for the palace that lies there, and else only named.

    Returns:
        the graph to take, and a graph to tell of; either may be None.
    """
    for place in (folder, folder.parent):
        if (place / GRAPH_FILE).is_file():
            return place / GRAPH_FILE, None
    home = Path.home() / ".mempalace" / GRAPH_FILE
    return None, home if home.is_file() else None


def find_beside(folder: Path, name: str) -> Path | None:
    """A file that MemPalace keeps beside the palace's folder, or kept in it."""
    return next((place / name for place in (folder.parent, folder) if (place / name).is_file()), None)


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file; empty where there is none or it cannot be read."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _path(value: object) -> Path | None:
    return Path(value).expanduser() if isinstance(value, str) and value else None


def _checked(folder: Path) -> Path:
    folder = Path(os.path.abspath(folder))  # links stay, as MemPalace leaves them: what lies beside counts
    if is_mempalace_folder(folder):
        return folder
    if folder.name == CHROMA_FILE and folder.is_file():
        return folder.parent
    if is_mempalace_folder(folder / "palace"):
        return folder / "palace"
    if not folder.is_dir():
        raise PalaceNotFound(
            f"{folder} {'is a file, not a folder' if folder.exists() else 'does not exist'}."
        )
    there = sorted(child.name for child in folder.iterdir())[:12]
    raise PalaceNotFound(
        f"{folder} is no palace of MemPalace's default kind: it holds no {CHROMA_FILE}, but "
        f"{', '.join(there) if there else 'nothing'}. Palaces that MemPalace keeps in other stores than Chroma cannot be "
        "imported; export them with MemPalace and use: datasette mempalace import"
    )
