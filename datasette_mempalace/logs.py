"""Loggers whose lines nobody can forge: what a drawer, a wing, a file's name or a query brings into a log stays one line.

Control characters, terminal escapes, line separators and marks that reorder what is read are written as escapes; the
lines of a traceback are indented below their message. Every module of the package takes its logger from here.
"""

from __future__ import annotations

import logging
import re
import textwrap
import traceback
from typing import Any

_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_OBEYED_BUT_LINES = re.compile(_OBEYED.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))


def get_logger(name: str) -> HarmlessLogger:
    """The logger of a module, by its `__name__`."""
    return HarmlessLogger(logging.getLogger(name), {})


class HarmlessLogger(logging.LoggerAdapter):  # type: ignore[type-arg]  # generic only from Python 3.11
    """A logger that escapes what it is given before any handler sees it."""

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        """Log a line. Arguments that are no numbers are escaped; `exc_info` is a flag or an exception."""
        if not self.isEnabledFor(level):
            return
        shown = [arg if isinstance(arg, (int, float)) else one_line(arg) for arg in args]
        line = one_line(str(msg) % tuple(shown) if shown else msg)
        problem = options.pop("exc_info", None)
        if problem:
            told = "".join(
                traceback.format_exception(problem)
                if isinstance(problem, BaseException)
                else [traceback.format_exc()]
            )
            line += "\n" + textwrap.indent(_OBEYED_BUT_LINES.sub(_escaped, told.rstrip()), "    ")
        # Straight to the logger, because Python 3.10 counts the frames of an adapter in between, and later ones do not.
        self.logger.log(level, "%s", line, stacklevel=options.pop("stacklevel", 1) + 1, **options)


def one_line(text: object) -> str:
    """A text as it may stand in a line of a log."""
    return _OBEYED.sub(_escaped, str(text))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")
