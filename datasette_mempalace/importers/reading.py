"""Reads one file as text, exactly, or says why not.

Newlines stay as they are, and no byte is guessed at: UTF-8, or UTF-16 and UTF-32 that begin with their mark.
"""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import PurePath

MAX_BYTES = 5_000_000

BINARY = "binary"
EMPTY = "empty"
NOT_UTF8 = "not UTF-8"
TOO_LARGE = "larger than --max-bytes"
UNREADABLE = "unreadable"

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Names that promise text: in them a stray control character is no sign of a binary file.
_TEXT_ENDINGS = frozenset(
    """
    .txt .text .md .markdown .mdown .mkd .mdx .rst .rest .adoc .asciidoc .org .tex .textile .wiki .log .py .pyi .pyx
    .ipynb .js .mjs .cjs .jsx .ts .tsx .vue .svelte .java .kt .kts .scala .groovy .clj .cljs .c .h .cc .cpp .cxx .hh
    .hpp .cs .fs .vb .go .rs .swift .m .mm .rb .php .pl .pm .lua .r .jl .hs .ml .mli .ex .exs .erl .elm .dart .nim
    .zig .sql .sh .bash .zsh .fish .ps1 .bat .cmd .html .htm .xhtml .xml .css .scss .sass .less .json .jsonl .ndjson
    .json5 .yaml .yml .toml .ini .cfg .conf .properties .csv .tsv .graphql .proto .tf .cmake .mk .gradle .srt .vtt
    .eml .ics .vcf .po .diff .patch
    """.split()
)
_TEXT_NAMES = frozenset(
    """
    readme license licence copying notice authors contributors changelog changes history news todo install makefile
    gnumakefile dockerfile containerfile vagrantfile procfile rakefile gemfile jenkinsfile justfile cmakelists.txt
    codeowners
    """.split()
)
_CONTROLS = bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 27})
_SAMPLE = 65_536


class CannotRead(Exception):
    """A file that gives no text.

    Attributes:
        reason: why, as it can be counted.
        lasting: whether the file itself says so; False when it could not be read this time.
    """

    def __init__(self, reason: str, lasting: bool = True):
        super().__init__(reason)
        self.reason, self.lasting = reason, lasting


def read_text(path: str, max_bytes: int = MAX_BYTES, within: str | None = None) -> str:
    """The text of a file, to the character.

    Args:
        path: the file.
        max_bytes: the most bytes that it may have.
        within: a folder above it; from there on no part of the path may be a symbolic link.
    Raises:
        CannotRead: when it is too large, empty, binary, in another encoding, or not to be opened.
    """
    data = _read_bytes(path, max_bytes, within)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _not_blank(_decode(data, encoding))
    if _looks_binary(path, data[:_SAMPLE]):
        raise CannotRead(BINARY, lasting=False)
    return _not_blank(_decode(data, "utf-8"))


def promises_text(path: str) -> bool:
    """Whether a file's name says that it holds text."""
    name = PurePath(path)
    return (
        name.suffix.lower() in _TEXT_ENDINGS
        or name.name.lower() in _TEXT_NAMES
        or name.stem.lower() in _TEXT_NAMES
    )


def _read_bytes(path: str, max_bytes: int, within: str | None) -> bytes:
    # O_NOFOLLOW and O_NONBLOCK: between the walk and now, the file may have become a link or a pipe.
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise CannotRead(UNREADABLE, lasting=False)
            if within and not _lies_within(path, within, os.fstat(file.fileno())):
                raise CannotRead(UNREADABLE, lasting=False)
            data = file.read(max_bytes + 1)
    except OSError:
        raise CannotRead(UNREADABLE, lasting=False) from None
    if len(data) > max_bytes:
        raise CannotRead(TOO_LARGE, lasting=False)
    return data


def _lies_within(path: str, folder: str, opened: os.stat_result) -> bool:
    """Whether an open file is the one at its path below a folder: a folder on the way may have become a link, too."""
    place = os.path.join(os.path.realpath(folder), os.path.relpath(path, folder))
    return os.path.realpath(path) == place and os.path.samestat(os.lstat(place), opened)


def _looks_binary(path: str, sample: bytes) -> bool:
    if not sample:
        return False
    if sample.startswith((b"%PDF-", b"{\\rtf", b"%!PS")):
        return True
    strange = len(sample) - len(sample.translate(None, _CONTROLS))
    return strange / len(sample) > (0.05 if promises_text(path) else 0)


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise CannotRead(NOT_UTF8, lasting=False) from None


def _not_blank(text: str) -> str:
    if not text.strip():
        raise CannotRead(EMPTY)
    return text
