"""The few lines of a drawer that show best why it was found, with the found words marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

MARK_START, MARK_END = "\x01", "\x02"
WIDTH = 260
MOST_PLACES = 500
# Rules under headings, borders of tables and the signs before a heading say nothing in a snippet.
_RULE = re.compile(r"[=\-~^*#_+|]{3,}|^#{1,2}[ \t]+", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MARKS = re.compile(f"[{MARK_START}{MARK_END}]")
_SENTENCE = re.compile(r"(?:[.!?。！？]|\n[ \t]*\n)\s+")

Place = tuple[int, int, str]


def plain(snippet: str | None) -> str:
    """A snippet without its marks, for places that would show them as boxes."""
    return _MARKS.sub("", snippet or "")


def snippet(text: str, places: Sequence[Place], width: int = WIDTH) -> str:
    """A passage of a text around most of its found words.

    Args:
        text: the drawer's text.
        places: (start, end, word) of the found words, in order, as `words.find_words` gives them.
        width: about how many characters the passage has.
    Returns:
        plain text on one line; \\x01 and \\x02 stand around each found word, "…" where text was left out. It begins
        and ends between words.
    """
    start = _start(text, _best_place(places, width), width)
    end = _end(text, start, width)
    inside = [place for place in places if start <= place[0] and place[1] <= end]
    parts, last = [], start
    for begin, finish, _ in inside:
        parts += [_plain(text[last:begin]), MARK_START, _plain(text[begin:finish]), MARK_END]
        last = finish
    parts.append(_plain(text[last:end]))
    passage = " ".join("".join(parts).split())
    before = "… " if text[:start].strip() else ""
    after = " …" if text[end:].strip() else ""
    return before + passage + after


def _best_place(places: Sequence[Place], width: int) -> int:
    """The start of the window of found words that holds the most different ones, then the most."""
    best, chosen = (0, 0), 0
    for index, (start, _, _) in enumerate(places[:MOST_PLACES]):
        near = places[index : index + width]
        words = [word for _, finish, word in near if finish <= start + width]
        if (len(set(words)), len(words)) > best:
            best, chosen = (len(set(words)), len(words)), start
    return chosen


def _start(text: str, place: int, width: int) -> int:
    """Where to begin: at the sentence of the place when it is near, else at a word before it, else at the place."""
    if place <= width // 4:
        return 0
    earliest = place - width // 3
    sentences = [match.end() for match in _SENTENCE.finditer(text, earliest, place)]
    if sentences:
        return sentences[-1]
    near = max(0, place - width // 5)
    gap = re.compile(r"\s+").search(text, near, place)
    return gap.end() if gap else place


def _end(text: str, start: int, width: int) -> int:
    if start + width >= len(text):
        return len(text)
    gap = max(
        text.rfind(" ", start + width // 2, start + width),
        text.rfind("\n", start + width // 2, start + width),
    )
    return gap if gap > 0 else start + width


def _plain(text: str) -> str:
    return _CONTROL.sub(" ", _RULE.sub(" ", text))
