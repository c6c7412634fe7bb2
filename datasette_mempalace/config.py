"""The plugin's settings: read once from Datasette's configuration, checked, with defaults.

A setting that is misspelt or out of range raises a `ConfigError` that names it; nothing is silently ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .chroma_setting import ChromaServer, read_chroma
from .errors import ConfigError, ended

RANKINGS = ("palace", "mempalace")
STRATEGIES = ("union", "vector")


@dataclass(frozen=True)
class Settings:
    """Every setting with its default. Numbers are MemPalace's unless `docs/configuration.md` says otherwise."""

    title: str | None = None
    embedder: Mapping[str, Any] | None = field(default=None, repr=False)  # its config may hold keys
    mirror_path: str | None = None
    chroma: ChromaServer | None = None
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
    rich_tracebacks: bool = False
    given: frozenset[str] = field(default_factory=frozenset)


def read_settings(*blocks: Mapping[str, Any] | None) -> Settings:
    """Check the plugin's settings, from one block or several laid over one another.

    Args:
        blocks: what stands under `plugins: datasette-mempalace:` of the instance, then of the database; None where there
            is none. A setting of a later block takes the place of an earlier one's, whole.
    Returns:
        the settings, defaults filled in; `given` names those that were set.
    Raises:
        ConfigError: naming each unusable setting, its value and what is allowed.
    """
    given: dict[str, Any] = {}
    for block in blocks:
        if block is not None and not isinstance(block, Mapping):
            raise ConfigError(f"datasette-mempalace: settings must be a mapping, not {type(block).__name__}.")
        given.update(block or {})
    problems: list[str] = []
    values: dict[str, Any] = {}
    for key, value in given.items():
        setting = SETTINGS.get(key)
        if setting is None:
            near = difflib.get_close_matches(str(key), SETTINGS, n=1)
            advice = f"did you mean {near[0]}?" if near else f"known settings: {', '.join(sorted(SETTINGS))}."
            problems.append(f"{key}: no such setting; {advice}")
            continue
        try:
            values[key] = setting.kind.check(value)
        except ValueError as error:
            problems.append(f"{key}: {_shown(value)} is not allowed; {ended(str(error))}")
    if problems:
        raise ConfigError("datasette-mempalace settings: " + " ".join(problems), problems)
    return Settings(**values, given=frozenset(values))


def _shown(value: Any) -> str:
    """A value in a message; of a mapping only the names, because its values may be keys and passwords."""
    return (
        f"a mapping with {', '.join(map(str, value)) or 'nothing'}"
        if isinstance(value, Mapping)
        else repr(value)
    )


@dataclass(frozen=True)
class Kind:
    """What values a setting takes.

    Attributes:
        check: gives the value as it is kept, or raises ValueError with a sentence that begins "it must be".
        allowed: the same for `docs/configuration.md`, in Markdown.
    """

    check: Callable[[Any], Any]
    allowed: str


@dataclass(frozen=True)
class Setting:
    """A setting's kind, and what it is for: `docs/configuration.md` is made from it, so links begin there."""

    kind: Kind
    meaning: str


def _number(low: float, high: float, whole: bool = False) -> Kind:
    def check(value: Any) -> Any:
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            raise ValueError(f"it must be a {'whole ' if whole else ''}number from {low:,} to {high:,}")
        return value

    return Kind(check, f"{low:,} to {high:,}")


def _choice(allowed: tuple[str, ...]) -> Kind:
    def check(value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"it must be one of {', '.join(allowed)}")
        return value

    return Kind(check, ", ".join(f"`{name}`" for name in allowed))


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


FLAG = Kind(_flag, "`true`, `false`")

SETTINGS: dict[str, Setting] = {
    "title": Setting(
        Kind(_text, "a text"),
        "heading of the palace's pages; else the database's title in the metadata, else its name",
    ),
    "embedder": Setting(
        Kind(_embedder, "a name, or a mapping with `name` and `config`"),
        "the [embedding model](#embedding-models); none means the one the palace was made with",
    ),
    "mirror_path": Setting(
        Kind(_text, "a path"),
        "folder of the Chroma mirror; none means `NAME.db.chroma` beside `NAME.db`. One folder a palace: set it under a"
        " database. A palace that can only be read uses none",
    ),
    "chroma": Setting(
        Kind(read_chroma, "a mapping with `mode`: `local` or `server`"),
        "where the mirror is: none or `mode: local` means that folder; else a [Chroma server](scaling.md#a-chroma-server)",
    ),
    "ranking": Setting(
        _choice(RANKINGS), "the [ranking](architecture.md#the-two-rankings) when a search names none"
    ),
    "candidate_strategy": Setting(
        _choice(STRATEGIES), "where candidates come from when a search does not say"
    ),
    "n_results": Setting(_number(1, 1000, whole=True), "hits when a search does not say"),
    "max_n_results": Setting(_number(1, 1000, whole=True), "the most hits of one search, pages together"),
    "table_hits": Setting(
        _number(1, 1000, whole=True),
        "how many hits a [table page](api.md#datasettes-table-pages) holds, at most `max_n_results`",
    ),
    "tables": Setting(
        Kind(_tables, "a mapping from tables or views to a column"),
        "other [tables of the palace's database](#other-tables) that can be filtered by a search",
    ),
    "similarity_weight": Setting(_number(0, 1), "what similarity adds to the score"),
    "bm25_weight": Setting(_number(0, 1), "what the BM25 share adds to the score"),
    "candidate_pool": Setting(
        _number(1, 1000, whole=True),
        "the least number of candidates of each kind, in the ranking `palace`; otherwise it is three for every hit",
    ),
    "closet_boosts": Setting(
        Kind(_boosts, "a list of numbers from 0 to 2"),
        "what the nearest closet, the second and so on take off a distance; `[]` for none",
    ),
    "closet_distance_cap": Setting(_number(0, 2), "closets farther than this lift nothing"),
    "closet_boost_in_score": Setting(
        FLAG, "whether the boost enters the score, not only the choice of candidates"
    ),
    "stop_words": Setting(
        Kind(_stop_words, "`english`, `german`, `french`, `spanish`, `none`, or a list of words"),
        "words of a query that are left out while others remain",
    ),
    "exact_limit": Setting(
        _number(0, 1_000_000, whole=True),
        "up to so many drawers in scope, a search reads their vectors from SQLite",
    ),
    "matrix_mb": Setting(
        _number(0, 1_000_000, whole=True),
        "how many megabytes the vectors of a palace may take in memory; 0 never loads them. 100,000 drawers take 146",
    ),
    "time_limit_ms": Setting(
        _number(1, 600_000, whole=True), "how long a search may take; the model gets half of it"
    ),
    "sync_seconds": Setting(_number(0.1, 3600), "how often a server looks for changes to embed and mirror"),
    "warm_up": Setting(FLAG, "whether a server loads the model when it starts, before somebody searches"),
    "table_function": Setting(
        FLAG, "whether `mempalace_search` is [a table in SQL](sql.md#mempalace_search-as-a-table), too"
    ),
    "rich_tracebacks": Setting(
        FLAG,
        "whether Datasette may log [all local variables of an error](limits.md#logs); for the whole instance",
    ),
}

assert set(SETTINGS) == {f.name for f in fields(Settings)} - {"given"}
