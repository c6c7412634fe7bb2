"""What one check of a palace has found.

A sentence in `says` and `help` names no path and no host, so that it may be shown to whoever may see the palace; what a
library or the system has said stands in `cause`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What one check has found.

    Attributes:
        check: its name.
        ok: whether all is well.
        says: the state in a sentence.
        help: what to do, where something is not well.
        cause: what a library or the system has said; it may name files and hosts.
    """

    check: str
    ok: bool
    says: str
    help: str | None = None
    cause: str | None = None
