"""What a part is about: topics from the closets of its largest sources, each with its drawer, else from headings.

Always the same for the same palace. What is no title in a reader's language is left out: code, words by themselves
that a closet counted, broken sentences, names that every text has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from ..text import source_name
from .reading import Part

MOST = 8  # to ask about, and sources shown with theirs
OF_A_SOURCE = 6
LONGEST, SHORTEST = 48, 4
HEADINGS = 200  # drawers read for their headings where there is no closet
TEXT = 4000  # characters read of a closet
_COMMON = frozenset(
    "introduction overview summary contents references reference examples example notes note see also appendix index"
    " background conclusion usage installation changelog license readme faq todo misc other general untitled title"
    " abstract results discussion methods table of".split()
)
_CODE = re.compile(r"[(){}\[\]<>=_\\/|@#$%^*~`+]|\w\.\w|::|--|\d{4,}|https?:")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
# Scripts without spaces and capitals say more in less.
_DENSE = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def source_topics(part: Part, sources: list[str], closets: bool = True) -> list[dict[str, Any]]:
    """The topics of a part's sources.

    Args:
        part: the part of the palace.
        sources: its largest sources, largest first.
        closets: whether closets may be read.
    Returns:
        for each source that has any, in that order: source_path, source_file and `topics`, {text, drawer_id}, in the
        closet's order and none twice; drawer_id is None where the closet points to no drawer that is there. Drawers
        without a source count as one whose path is None.
    """
    found = (closets and _good(_from_closets(part, sources))) or _good(_from_headings(part, sources))
    named = {topic["drawer_id"] for topics in found.values() for topic in topics}
    rows = part.connection.execute(
        "select drawer_id from drawers where drawer_id in (select value from json_each(?))",
        [json.dumps([name for name in named if name])],
    )
    there = {name for (name,) in rows}
    for topics in found.values():
        for topic in topics:
            if topic["drawer_id"] not in there:
                topic["drawer_id"] = None
    return [
        {"source_path": source, "source_file": source_name(source), "topics": found[source]}
        for source in (sources or found)
        if source in found
    ]


def to_ask(found: list[dict[str, Any]]) -> list[str]:
    """At most `MOST` topics fit to be a search: one of each source in turn, none twice, whatever stands around its words."""
    chosen: dict[str, str] = {}
    for turn in zip_longest(*([topic["text"] for topic in source["topics"]] for source in found)):
        for topic in turn:
            if topic is not None and len(chosen) < MOST:
                chosen.setdefault(_words(topic), topic)
    return list(chosen.values())


def shown(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As much of it as a page takes: `MOST` sources with `OF_A_SOURCE` topics each."""
    return [source | {"topics": source["topics"][:OF_A_SOURCE]} for source in found[:MOST]]


def good_topic(text: str) -> bool:
    """Whether a heading or a closet's topic reads well as a question's subject."""
    text = text.strip()
    if not SHORTEST <= len(text) <= LONGEST or _CODE.search(text) or text[-1] in ",;:-–—…&":
        return _DENSE.search(text) is not None and 2 <= len(text) <= LONGEST and not _CODE.search(text)
    words = _WORD.findall(text)
    if not words or all(word.casefold() in _COMMON for word in words):
        return False
    first = text.lstrip("“\"'‘«¿¡")[:1]
    # Several words that begin like a title, or one long name: a word that begins small was counted, not written.
    return (
        first.isalnum()
        and not first.islower()
        and (len(words) > 1 or len(words[0]) > 5 or _DENSE.search(text) is not None)
    )


def _from_closets(part: Part, sources: list[str]) -> Iterator[tuple[str, str, str | None]]:
    """Source, topic and the drawer that the closet points to first."""
    rows = part.connection.execute(
        "select source_file, substr(cast(text as text), 1, :length) from closets where source_file in"
        " (select value from json_each(:sources)) order by id",
        {"sources": json.dumps(sources), "length": TEXT},
    )
    for source, text in rows:
        for line in text.splitlines():
            topic, points, drawers = line.partition("→")
            if points:
                yield source, topic.split("|")[0], drawers.split(",")[0].strip()


def _from_headings(part: Part, sources: list[str]) -> Iterator[tuple[str | None, str, str | None]]:
    """The same of the first drawers of the part's sources; of any of its drawers where none has a source."""
    limited = {"sources": json.dumps(sources), "rows": HEADINGS}
    inner = (
        "source_file in (select value from json_each(:sources)) and chunk_index between 0 and 9 and "
        if sources
        else ""
    )
    rows = part.connection.execute(
        "select cast(nullif(source_file, '') as text), drawer_id,"
        " iif(json_valid(metadata), json_extract(metadata, '$.heading'), null)"
        f" from drawers where {inner}{part.where} limit :rows",
        part.parameters | limited,
    )
    for source, drawer, heading in rows:
        if isinstance(heading, str):
            yield source, heading, drawer


def _good(lines: Iterable[tuple[Any, str, str | None]]) -> dict[Any, list[dict[str, Any]]]:
    found: dict[Any, dict[str, dict[str, Any]]] = {}
    for source, text, drawer in lines:
        if good_topic(text):
            found.setdefault(source, {}).setdefault(_words(text), {"text": text.strip(), "drawer_id": drawer})
    return {source: list(topics.values()) for source, topics in found.items()}


def _words(topic: str) -> str:
    return " ".join(_WORD.findall(topic.casefold())) or topic
