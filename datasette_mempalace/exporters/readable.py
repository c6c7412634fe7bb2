"""Values as people read them, where a file has no place for bytes that are no text; what was changed is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..interchange import ESCAPED


@dataclass
class Readable:
    """What a CSV or Markdown export did.

    Attributes:
        drawers: how many were written.
        files: how many files they became.
        changed: how many values had bytes that are no text, shown as U+FFFD.
    """

    drawers: int = 0
    files: int = 1
    changed: int = 0

    def text(self, value: Any) -> Any:
        """A value, its bytes as text."""
        if isinstance(value, str):
            if not ESCAPED.search(value):
                return value
            value = value.encode("utf-8", "surrogateescape")
        if not isinstance(value, bytes):
            return value
        self.changed += 1
        return value.decode("utf-8", "replace")
