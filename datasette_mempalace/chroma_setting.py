"""The setting `chroma`: whether the mirror lies in a folder of this machine or on a Chroma server, checked.

Header values are secrets: they are kept out of `repr`, messages and everything that is written.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MODES = ("local", "server")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True)
class ChromaServer:
    """A Chroma server that holds the mirror.

    Attributes:
        host: its name or address, without scheme and port.
        port: its port.
        ssl: whether it is spoken to by https.
        headers: sent with every request, as a proxy or Chroma Cloud wants them; never shown.
        tenant, database: where on the server the collections are made; they must exist.
    """

    host: str = "localhost"
    port: int = 8000
    ssl: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tenant: str = "default_tenant"
    database: str = "default_database"

    @property
    def url(self) -> str:
        """Its address, for people; without headers."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.ssl else 'http'}://{host}:{self.port}"

    def without_secrets(self, text: str) -> str:
        """A text in which no header's value stands any more."""
        for value in sorted(self.headers.values(), key=len, reverse=True):
            text = text.replace(value, "***")
        return text


def read_chroma(value: Any) -> ChromaServer | None:
    """Check the setting.

    Args:
        value: the mapping that stands under `chroma:`.
    Returns:
        the server, or None for a folder of this machine.
    Raises:
        ValueError: with a sentence that names the part and what is allowed, and never shows a value of a header.
    """
    if not isinstance(value, Mapping):
        raise ValueError("it must be a mapping with mode: local or mode: server")
    for key in value:
        if key not in _PARTS and key != "mode":
            near = difflib.get_close_matches(str(key), ["mode", *_PARTS], n=1)
            advice = f"did you mean {near[0]}?" if near else f"known are mode, {', '.join(_PARTS)}"
            raise ValueError(f"it has no part {str(key)!r}; {advice}")
    mode = value.get("mode", "local")
    if mode not in MODES:
        raise ValueError(f"its mode must be one of {', '.join(MODES)}, not {mode!r}")
    parts = {key: _PARTS[key](key, part) for key, part in value.items() if key != "mode"}
    if mode == "server":
        return ChromaServer(**parts)
    if parts:
        raise ValueError(f"{', '.join(parts)} need mode: server")
    return None


def _host(name: str, value: Any) -> str:
    text = _text(name, value)
    if "/" in text or re.search(r"[\s@?#]", text):
        raise ValueError(
            f"its {name} must be a name or an address, without https://, user or path; see ssl and port"
        )
    return text


def _port(name: str, value: Any) -> int:
    # What comes from the environment is a text.
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,5}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        raise ValueError(f"its {name} must be a whole number from 1 to 65,535")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"its {name} must be true or false")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(
            f"its {name} must be a text that is not empty; one from $env needs that variable set"
        )
    return value


def _headers(name: str, value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"its {name} must be a mapping from names to texts")
    for header, text in value.items():
        if not isinstance(header, str) or not _HEADER_NAME.fullmatch(header):
            raise ValueError(f"its {name} must have names of letters, digits and hyphens")
        if not isinstance(text, str) or not _HEADER_VALUE.fullmatch(text) or text != text.strip():
            raise ValueError(
                f"the header {header} must be a text of printable ASCII on one line, without spaces around it; one"
                " from $env needs that variable set"
            )
    return dict(value)


_PARTS: dict[str, Callable[[str, Any], Any]] = {
    "host": _host,
    "port": _port,
    "ssl": _flag,
    "headers": _headers,
    "tenant": _text,
    "database": _text,
}
