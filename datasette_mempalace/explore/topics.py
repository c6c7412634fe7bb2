"""Topics worth asking about, from the closets of the largest sources, else from their headings.

Always the same for the same palace. What is no title in a reader's language is left out: code, words by themselves
that a closet counted, broken sentences, names that every text has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from .reading import Part

MOST = 8
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


def topics_of(part: Part, sources: list[str]) -> list[str]:
    """Some topics of a part, from different sources.

    Args:
        part: the part of the palace.
        sources: its largest sources, largest first.
    Returns:
        at most `MOST` texts, each fit to be a search.
    """
    found = _from_closets(part, sources)
    return _choose(found or _from_headings(part, sources))


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


def _from_closets(part: Part, sources: list[str]) -> list[list[str]]:
    rows = part.connection.execute(
        "select source_file, substr(cast(text as text), 1, :length) from closets where source_file in"
        " (select value from json_each(:sources)) order by id",
        {"sources": json.dumps(sources), "length": TEXT},
    )
    topics: dict[str, list[str]] = {}
    for source, text in rows:
        lines = [line for line in text.splitlines() if "→" in line]
        topics.setdefault(source, []).extend(line.split("|")[0].strip() for line in lines)
    return _good(topics.get(source, []) for source in sources)


def _from_headings(part: Part, sources: list[str]) -> list[list[str]]:
    """Headings of the first drawers of the part's sources; of any of its drawers where none has a source."""
    limited = {"sources": json.dumps(sources), "rows": HEADINGS}
    inner = (
        "source_file in (select value from json_each(:sources)) and chunk_index between 0 and 9 and "
        if sources
        else ""
    )
    rows = part.connection.execute(
        "select cast(source_file as text), iif(json_valid(metadata), json_extract(metadata, '$.heading'), null)"
        f" from drawers where {inner}{part.where} limit :rows",
        part.parameters | limited,
    )
    topics: dict[Any, list[str]] = {}
    for source, heading in rows:
        if isinstance(heading, str):
            topics.setdefault(source, []).append(heading)
    return _good(topics.get(source, []) for source in (sources or list(topics)))


def _good(topics: Iterable[list[str]]) -> list[list[str]]:
    return [kept for found in topics if (kept := [topic for topic in found if good_topic(topic)])]


def _choose(found: list[list[str]]) -> list[str]:
    """One of each source in turn, none twice, shorter and longer words of one topic counted as the same."""
    chosen: dict[str, str] = {}
    for turn in zip_longest(*found):
        for topic in turn:
            if topic is not None and len(chosen) < MOST:
                chosen.setdefault(" ".join(_WORD.findall(topic.casefold())) or topic, topic)
    return list(chosen.values())
