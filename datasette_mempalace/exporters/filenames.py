"""File names for wings, rooms and sources, whatever they are called: on every file system, inside their folder, each once."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

from ..text import text_hash

LONGEST = 120  # bytes; file systems take 255, and some programs add to a name
# What Windows forbids or a terminal obeys, and invisible marks that make two names look alike.
_FORBIDDEN = re.compile('[<>:"/\\\\|?*\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)", re.IGNORECASE)


class Names:
    """The names that are taken in one folder."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str, identity: str, ending: str = "") -> str:
        """A name for something, as near to what it is called as a file system allows.

        Args:
            wanted: what it is called.
            identity: what tells it from others that are called the same; the same palace gives the same names.
            ending: such as ".md".
        Returns:
            a name that differs from all others of this folder also where letter case and accents' encoding do not count.
        """
        name = safe(wanted, LONGEST - len(ending)) + ending
        stem, count = name.removesuffix(ending), 0
        while _alike(name) in self._taken:
            mark = f"-{text_hash(f'{count or str()}{identity}')[:8]}"
            name = _cut(stem, LONGEST - len(ending) - len(mark)) + mark + ending
            count += 1
        self._taken.add(_alike(name))
        return name


def safe(name: str, longest: int = LONGEST) -> str:
    """A text as the name of a file or folder of at most so many bytes."""
    plain = _FORBIDDEN.sub("_", unicodedata.normalize("NFC", name)).strip().rstrip(". ")
    if plain.startswith("."):
        plain = "_" + plain[1:]
    if not plain or _RESERVED.match(plain):
        plain = "_" + plain
    if len(plain.encode("utf-8")) <= longest:
        return plain
    mark = f"-{text_hash(name)[:8]}"
    return _cut(plain, longest - len(mark)) + mark


def without_ending(name: str) -> str:
    """A file's name without `.md`, which every exported file gets."""
    path = PurePosixPath(name)
    return path.stem if path.suffix.lower() in (".md", ".markdown") else name


def _cut(name: str, size: int) -> str:
    """The beginning of a name, in bytes, no letter cut in two."""
    return name.encode("utf-8")[:size].decode("utf-8", "ignore").rstrip(". ")


def _alike(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
