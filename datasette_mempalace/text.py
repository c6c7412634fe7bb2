"""Texts as SQLite can keep them: lone surrogates replaced and counted, hashes, names of sources."""

from __future__ import annotations

import hashlib
import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> tuple[str, int]:
    """Make a text that UTF-8, and so SQLite, can hold.

    Args:
        text: any Python text.
    Returns:
        the text with surrogate pairs joined and each lone surrogate replaced by U+FFFD, and how many were replaced.
    """
    if not _SURROGATE.search(text):
        return text, 0
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined, joined.count("\ufffd") - text.count("\ufffd")


def text_hash(text: str) -> str:
    """A text's identity: the first 128 bits of its SHA-256, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def make_id(prefix: str, *parts: object) -> str:
    """A stable id from parts whose borders count, so that ("a", "bc") and ("ab", "c") differ."""
    joined = "".join(f"{len(str(part))}:{part};" for part in parts)
    return f"{prefix}_{text_hash(joined)[:24]}"


def source_name(source_file: str | None) -> str | None:
    """The last part of a source's path, for people to read; Windows paths too."""
    if not source_file:
        return None
    return re.split(r"[/\\]", source_file.rstrip("/\\"))[-1] or source_file


def shortened(value: object, most: int = 80) -> str:
    """A value as a sentence shows it: in quotation marks, and cut where it is long."""
    text = str(value)
    return repr(value) if len(text) <= most else repr(text[: most - 1] + "…")


def shown_similarity(similarity: float | None, same_text: bool) -> str | None:
    """A similarity with three digits, rounded down; other words are never shown as quite the same.

    Args:
        similarity: 0 to 1; None where it is not known.
        same_text: whether both texts are equal.
    """
    if similarity is None:
        return None
    thousandths = round(similarity * 1e6) // 1000
    return f"{(thousandths if same_text else min(thousandths, 999)) / 1000:.3f}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: "1 drawer", "1,200 drawers"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def chunk_label(chunk_index: int | None, chunk_total: int | None = None) -> str:
    """Where in its source a drawer lies, counted from one; "" for a source of a single drawer."""
    if chunk_index is None or chunk_index < 0 or chunk_total == 1:
        return ""
    return f"chunk {chunk_index + 1:,}" + (f" of {chunk_total:,}" if chunk_total else "")
