"""One row of a file of records, good or bad, and what its readers share. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# surrogateescape maps a byte that is no UTF-8 to one of these; JSON's own \ud800 is still an escape at that time.
BAD_BYTE = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True)
class Row:
    """One record as it stands in the file, with the line that it begins on."""

    line: int
    value: Any


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used, and why."""

    line: int
    reason: str


Rows = Iterator[Row | BadRow]


def bad_bytes(text: str) -> str:
    """Why a text read with `surrogateescape` cannot be used: its first byte that is no UTF-8."""
    found = BAD_BYTE.search(text)
    assert found
    return f"not UTF-8: byte 0x{ord(found[0]) - 0xDC00:02x}"
