"""What can go wrong, each with its HTTP status and a sentence that helps.

Every face turns a `MempalaceError` into its own form (a page, a JSON object, an exit code); nothing else decides
what a problem is called. This module imports nothing of the project.
"""

from __future__ import annotations

from typing import Any


def ended(text: str) -> str:
    """A sentence with its full stop, where it does not end in a mark already."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def sentences(*texts: str | None) -> str | None:
    """Those texts that there are, one after another, the last as it is; None without any."""
    given = [text for text in texts if text]
    return " ".join([*map(ended, given[:-1]), *given[-1:]]) or None


class MempalaceError(Exception):
    """A problem that can be told to a person.

    Args:
        message: one sentence: what was wrong, what is allowed, what to do.
        errors: the single problems where there are several; defaults to the message alone.
    """

    status = 500
    title = "Memory palace error"

    def __init__(self, message: str, errors: list[str] | None = None):
        super().__init__(message)
        self.message = message
        self.errors = errors or [message]

    def as_json(self) -> dict[str, Any]:
        """The error as every JSON face answers it (Datasette 1.0's shape and 0.65's title)."""
        return {
            "ok": False,
            "error": self.message,
            "errors": self.errors,
            "status": self.status,
            "title": self.title,
        }


class BadInput(MempalaceError):
    """Something a person gave cannot be used."""

    status = 400
    title = "Bad request"


class BadParameter(BadInput):
    """One named parameter has a value that is not allowed.

    Args:
        parameter: its public name, the same over HTTP, in SQL and in Python.
        value: what was given.
        allowed: what would do, as the end of a sentence: "it must be ...".
    """

    def __init__(self, parameter: str, value: object, allowed: str):
        shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."
        super().__init__(f"{parameter}: {shown} is not allowed; {ended(allowed)}")
        self.parameter, self.value, self.allowed = parameter, value, allowed


class NotAllowed(MempalaceError):
    """The visitor may not see this palace."""

    status = 403
    title = "Forbidden"


class PalaceNotFound(MempalaceError):
    """There is no palace where one was expected."""

    status = 404
    title = "Palace not found"


class PageNotFound(MempalaceError):
    """There is nothing at an address."""

    status = 404
    title = "Page not found"


class DrawerNotFound(MempalaceError):
    """There is no drawer under the id that was given."""

    status = 404
    title = "Drawer not found"


class SourceNotFound(MempalaceError):
    """No drawer has the source that was given."""

    status = 404
    title = "Source not found"


class NoVector(MempalaceError):
    """A drawer cannot be compared with others: it has no vector, and none can be made now."""

    status = 409
    title = "Drawer without a vector"


class TookTooLong(MempalaceError):
    """The time limit was reached. The same question may be answered when there is less to do, so it is no bad request."""

    status = 503
    title = "Took too long"


class PalaceUnreadable(MempalaceError):
    """SQLite cannot open the palace's file now, for a reason that lies outside of it."""

    status = 503
    title = "Palace cannot be read now"


class PalaceTooNew(MempalaceError):
    """The palace was written by a newer version of this package."""

    status = 409
    title = "Palace too new"


class PalaceReadOnly(MempalaceError):
    """Something was to be written into a palace that can only be read."""

    status = 409
    title = "Palace is read-only"


class PalaceReplaced(MempalaceError):
    """The palace's file was replaced by another, or taken away, while it was open."""

    status = 503
    title = "Palace replaced"


class PalaceMissing(PalaceReplaced):
    """A palace that was open is no longer at its path: there is no file, or one that is no palace."""

    title = "Palace missing"


class PalaceClosed(MempalaceError):
    """The palace was closed: the server ends, or its path leads to another file now."""

    status = 503
    title = "Palace closed"


class PalaceInUse(MempalaceError):
    """Something needs the palace for itself, and another process has it open."""

    status = 409
    title = "Palace in use"


class EmbedderUnavailable(MempalaceError):
    """The embedding model cannot be used here or not yet."""

    status = 503
    title = "Embedding model unavailable"


class EmbedderMismatch(MempalaceError):
    """The palace's vectors come from another model than the one configured."""

    status = 409
    title = "Another embedding model"


class MirrorUnavailable(MempalaceError):
    """The Chroma mirror cannot be used now; the vectors in SQLite still can."""

    status = 503
    title = "Mirror unavailable"


class MirrorOwned(MirrorUnavailable):
    """Another process writes the mirror; it mirrors what this one changes in the palace."""


class LogTooShort(MempalaceError):
    """The change log no longer holds what came after a position; whoever asked begins with the tables."""

    status = 503
    title = "Change log pruned"


class PalaceDamaged(MempalaceError):
    """The database cannot be read as a palace should be: a table is missing, an index is malformed."""

    title = "Palace damaged"


class MatrixUnavailable(MempalaceError):
    """The vectors do not fit into the memory allowed for them; they are read from SQLite instead."""

    status = 503
    title = "Matrix unavailable"


class ConfigError(MempalaceError):
    """The plugin's settings are not usable."""

    title = "Configuration error"
