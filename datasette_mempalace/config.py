"""The plugin's settings: read once from Datasette's configuration, checked, with defaults.

A setting that is misspelt or out of range raises a `ConfigError` that names it; nothing is silently ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .errors import ConfigError

RANKINGS = ("palace", "mempalace")
STRATEGIES = ("union", "vector")


@dataclass(frozen=True)
class Settings:
    """Every setting with its default. Numbers are MemPalace's unless `docs/configuration.md` says otherwise."""

    title: str | None = None
    embedder: Mapping[str, Any] | None = None
    mirror_path: str | None = None
    ranking: str = "palace"
    candidate_strategy: str = "union"
    n_results: int = 10
    max_n_results: int = 1000
    table_hits: int = 100
    tables: Mapping[str, str] = field(default_factory=dict)
    similarity_weight: float = 0.6
    bm25_weight: float = 0.4
    candidate_pool: int = 30
    closet_boosts: tuple[float, ...] = (0.40, 0.25, 0.15, 0.08, 0.04)
    closet_distance_cap: float = 1.5
    closet_boost_in_score: bool = False
    stop_words: str | tuple[str, ...] = "english"
    exact_limit: int = 2000
    matrix_mb: int = 512
    time_limit_ms: int = 5000
    sync_seconds: float = 2.0
    warm_up: bool = True
    table_function: bool = True
    given: frozenset[str] = field(default_factory=frozenset)


def read_settings(mapping: Mapping[str, Any] | None) -> Settings:
    """Check a settings block.

    Args:
        mapping: what stands under `plugins: datasette-mempalace:`, or None.
    Returns:
        the settings, defaults filled in; `given` names those that were set.
    Raises:
        ConfigError: naming each unusable setting, its value and what is allowed.
    """
    if mapping is None:
        return Settings()
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"datasette-mempalace: settings must be a mapping, not {type(mapping).__name__}.")
    problems: list[str] = []
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        check = _CHECKS.get(key)
        if check is None:
            near = difflib.get_close_matches(str(key), _CHECKS, n=1)
            advice = f"did you mean {near[0]}?" if near else f"known settings: {', '.join(sorted(_CHECKS))}."
            problems.append(f"{key}: no such setting; {advice}")
            continue
        try:
            values[key] = check(value)
        except ValueError as error:
            problems.append(f"{key}: {value!r} is not allowed; {error}.")
    if problems:
        raise ConfigError("datasette-mempalace settings: " + " ".join(problems), problems)
    return Settings(**values, given=frozenset(values))


def _number(low: float, high: float, whole: bool = False) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            raise ValueError(f"it must be a {'whole ' if whole else ''}number from {low:,} to {high:,}")
        return value

    return check


def _choice(allowed: tuple[str, ...]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"it must be one of {', '.join(allowed)}")
        return value

    return check


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it must be true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("it must be a text that is not empty")
    return value


def _stop_words(value: Any) -> str | tuple[str, ...]:
    from .stop_words import LANGUAGES

    if isinstance(value, str) and (value == "none" or value in LANGUAGES):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ValueError(f"it must be none, one of {', '.join(LANGUAGES)}, or a list of words")


def _boosts(value: Any) -> tuple[float, ...]:
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(boost, (int, float)) and not isinstance(boost, bool) and 0 <= boost <= 2 for boost in value
    ):
        raise ValueError("it must be a list of numbers from 0 to 2, best rank first")
    return tuple(float(boost) for boost in value)


def _embedder(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        value = {"name": value}
    if (
        not isinstance(value, Mapping)
        or not isinstance(value.get("name"), str)
        or set(value) - {"name", "config"}
    ):
        raise ValueError("it must be a name, or a mapping with name and optionally config")
    if not isinstance(value.get("config") or {}, Mapping):
        raise ValueError("its config must be a mapping")
    return dict(value)


def _tables(value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(
        isinstance(text, str) and text for pair in value.items() for text in pair
    ):
        raise ValueError("it must be a mapping from tables to their column of drawers")
    return dict(value)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "title": _text,
    "embedder": _embedder,
    "mirror_path": _text,
    "ranking": _choice(RANKINGS),
    "candidate_strategy": _choice(STRATEGIES),
    "n_results": _number(1, 1000, whole=True),
    "max_n_results": _number(1, 1000, whole=True),
    "table_hits": _number(1, 1000, whole=True),
    "tables": _tables,
    "similarity_weight": _number(0, 1),
    "bm25_weight": _number(0, 1),
    "candidate_pool": _number(1, 1000, whole=True),
    "closet_boosts": _boosts,
    "closet_distance_cap": _number(0, 2),
    "closet_boost_in_score": _flag,
    "stop_words": _stop_words,
    "exact_limit": _number(0, 1_000_000, whole=True),
    "matrix_mb": _number(0, 1_000_000, whole=True),
    "time_limit_ms": _number(1, 600_000, whole=True),
    "sync_seconds": _number(0.1, 3600),
    "warm_up": _flag,
    "table_function": _flag,
}

assert set(_CHECKS) == {f.name for f in fields(Settings)} - {"given"}
