"""A tree of Markdown, wing/room/source.md: one file a source, and one for each drawer that has none.

It is for reading; what all drawers of a file have in common stands in its front matter. NDJSON keeps everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from ..text import clean_text, source_name
from .filenames import Names, without_ending
from .joining import joined
from .manifest import write_manifest
from .readable import Readable
from .selection import BY_PLACE, COLUMNS, Row, View

INDEX = "index.md"
EXPORTED_BY = "datasette-mempalace"
_OWN_LINES = frozenset({"drawer_id", "text", "chunk_index", "metadata"})
_NO_WING, _NO_ROOM = "_no wing", "_no room"
# As Markdown and HTML would read them.
_MARKUP = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[]<>#|&~"})


def write(view: View, folder: Path, progress: Callable[[int, int], None]) -> Readable:
    """Write the tree, an index of it and a list of all these files.

    Args:
        view: what is exported.
        folder: an empty folder.
        progress: called with (done, total) in drawers.
    Returns:
        how many drawers were written into how many files, and how many values had to be changed.
    """
    total = view.count("drawer")
    done = Readable()
    contents: list[str] = []
    wings = Names()
    wings.take(INDEX, INDEX)
    for wing, in_wing in groupby(_readable(view, done), key=lambda row: row["wing"]):
        wing_name = wings.take(_NO_WING if wing is None else wing, repr(wing))
        contents.append(f"\n## {_shown(wing, 'No wing')}\n\n")
        rooms = Names()
        for room, in_room in groupby(in_wing, key=lambda row: row["room"]):
            room_name = rooms.take(_NO_ROOM if room is None else room, repr(room))
            place = folder / wing_name / room_name
            place.mkdir(parents=True)
            before = done.drawers
            _write_room(place, in_room, done, lambda: progress(done.drawers, total))
            link = f"{quote(wing_name)}/{quote(room_name)}/"
            contents.append(f"- [{_shown(room, 'No room')}]({link}): {done.drawers - before:,}\n")
    head = _front_matter({"exported_by": EXPORTED_BY, "drawers": done.drawers, "files": done.files - 1})
    _put(folder / INDEX, head + "\n# Drawers by wing and room\n" + "".join(contents))
    write_manifest(folder)
    return done


def _readable(view: View, done: Readable) -> Iterator[Row]:
    for row in view.rows("drawer", BY_PLACE):
        yield {name: done.text(value) for name, value in row.items()}


def _write_room(place: Path, rows: Iterator[Row], done: Readable, tell: Callable[[], None]) -> None:
    names = Names()
    for drawers in _by_source(rows):
        source = drawers[0]["source_file"]
        if source:
            name = names.take(without_ending(source_name(source) or source), source, ".md")
        else:
            name = names.take(drawers[0]["drawer_id"], drawers[0]["drawer_id"], ".md")
        _put(place / name, _front_matter(_common(drawers)) + "\n" + joined(drawers) + "\n")
        done.files += 1
        done.drawers += len(drawers)
        tell()


def _by_source(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """The drawers of each source; one without a source is alone."""
    for source, drawers in groupby(rows, key=lambda row: row["source_file"]):
        if source:
            yield list(drawers)
        else:
            yield from ([drawer] for drawer in drawers)


def _common(drawers: list[Row]) -> dict[str, Any]:
    """The columns and metadata in which all drawers agree, and their ids."""
    first, *others = drawers
    found = {
        name: first[name]
        for name in COLUMNS["drawer"]
        if name not in _OWN_LINES
        and first[name] is not None
        and all(row[name] == first[name] for row in others)
    }
    metadata = [_opened(row["metadata"]) for row in drawers]
    shared = {
        key: value for key, value in metadata[0].items() if all(other.get(key) == value for other in metadata)
    }
    return (
        found | {"drawers": [row["drawer_id"] for row in drawers]} | ({"metadata": shared} if shared else {})
    )


def _opened(metadata: Any) -> dict[str, Any]:
    """Metadata by its keys; what is a list or an object stays JSON. What is no metadata has none to show."""
    try:
        found = json.loads(metadata)
        if not isinstance(found, dict):
            return {}
        return {clean_text(key)[0]: _plain(value) for key, value in found.items()}
    except (TypeError, ValueError, RecursionError):
        return {}


def _plain(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False)
    return clean_text(value)[0] if isinstance(value, str) else value


def _front_matter(values: dict[str, Any]) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        values, Dumper=dumper, allow_unicode=True, sort_keys=False, width=2**31 - 1, default_flow_style=False
    )
    return f"---\n{text}---\n"


def _shown(name: str | None, none: str) -> str:
    """A name in Markdown, on one line."""
    return none if name is None else " ".join(name.split()).translate(_MARKUP) or '""'


def _put(file: Path, text: str) -> None:
    file.write_bytes(text.encode("utf-8"))
