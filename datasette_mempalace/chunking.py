"""A source's text to chunks: slices that break where reading breaks, overlap a little and lose no character.

Pure. Every chunk is `text[start:end]` exactly, the first starts at 0, the last ends at the end, and each starts at or
before the end of the one before it, so the source can be put together again from its drawers.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass

CHUNK_SIZE = 800
OVERLAP = 100
MIN_SHARE = 0.5

# Where a chunk may end, best first: after a blank line, a sentence, a line, a word.
_BREAKS = (
    re.compile(r"\n[ \t\r]*\n+"),
    re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]"),
    re.compile(r"\n"),
    re.compile(r"\s+"),
)
_HEADING = re.compile(
    r"^(?P<marks>\#{1,6})[ \t]+(?P<markdown>.*\S)[ \t]*$"
    r"|^(?P<underlined>\S.*)\r?\n(?P<line>[=\-~^\"'*+#`:.])(?P=line){2,}[ \t]*\r?$",
    re.MULTILINE,
)
_CLOSING_MARKS = re.compile(r"[ \t]\#+$")
# With the sign that follows a name where it is defined: prose, too, has lines that begin "class of ..." or "function to".
_CODE_HEADING = re.compile(
    r"^[ \t]*(?:(?:export|public|private|protected|static|async|pub|abstract|final|default)[ \t]+)*"
    r"(?:(?:def|function|func|fn)[ \t]+\w+(?=[ \t]*[(<\[])"
    r"|(?:class|interface|struct|enum|trait|impl)[ \t]+\w+(?=[ \t]*(?:[({:<\[]|extends\b|implements\b|\r?$)))",
    re.MULTILINE,
)
MAX_HEADING = 120


@dataclass(frozen=True)
class Chunk:
    """One slice of a source.

    Attributes:
        start, end: character offsets into the source; the text is `source[start:end]`.
        line_start, line_end: the lines it covers, counted from 1.
        heading: the nearest heading at or before its first own character, else the first one inside it, or None.
    """

    start: int
    end: int
    text: str
    line_start: int
    line_end: int
    heading: str | None


def chunk(
    text: str, size: int = CHUNK_SIZE, overlap: int = OVERLAP, headings: list[tuple[int, str]] | None = None
) -> list[Chunk]:
    """Cut a text into chunks.

    Args:
        text: the whole source, kept to the character.
        size: the most characters a chunk may have.
        overlap: about how many characters a chunk repeats of the one before; it starts at a word.
        headings: (offset, title) in order of offset; None looks for those of prose.
    Returns:
        the chunks in order; none for an empty text.
    """
    starts_of_lines = [0] + [match.end() for match in re.finditer("\n", text)]
    headings = find_headings(text) if headings is None else headings
    chunks: list[Chunk] = []
    start = fresh = 0
    while fresh < len(text):
        end = _end(text, start, fresh, size, headings)
        chunks.append(
            Chunk(
                start,
                end,
                text[start:end],
                bisect.bisect_right(starts_of_lines, start),
                bisect.bisect_right(starts_of_lines, max(start, end - 1)),
                _heading_at(headings, text, fresh, end),
            )
        )
        start, fresh = _overlap_start(text, start, end, overlap), end
    return chunks


def find_headings(text: str) -> list[tuple[int, str]]:
    """Headings of Markdown and reStructuredText, or, where there are none, definitions.

    Returns:
        (offset, title) in order of offset.
    """
    found = []
    for match in _HEADING.finditer(text):
        title = _CLOSING_MARKS.sub("", (match["markdown"] or match["underlined"]).strip())
        if any(character.isalnum() for character in title):
            found.append((match.start(), title[:MAX_HEADING]))
    return found or find_definitions(text)


def find_definitions(text: str) -> list[tuple[int, str]]:
    """Where functions and classes of source code begin, as (offset, first line) in order of offset."""
    return [(match.start(), match[0].strip()[:MAX_HEADING]) for match in _CODE_HEADING.finditer(text)]


def _end(text: str, start: int, fresh: int, size: int, headings: list[tuple[int, str]]) -> int:
    """Where a chunk that starts at `start` ends: before a heading or at the last good break in its second half."""
    limit = start + size
    if limit >= len(text):
        return len(text)
    earliest = max(fresh + 1, start + int(size * MIN_SHARE))
    place = bisect.bisect_right(headings, (limit, "")) - 1
    if place >= 0 and headings[place][0] >= earliest:
        return headings[place][0]
    for pattern in _BREAKS:
        last = None
        for match in pattern.finditer(text, max(fresh, earliest - 200), limit):
            if earliest <= match.end():
                last = match.end()
        if last is not None:
            return last
    return limit


def _overlap_start(text: str, start: int, end: int, overlap: int) -> int:
    """Where the next chunk starts: at the first sentence or word within the last `overlap` characters."""
    if end >= len(text) or overlap <= 0:
        return end
    window = max(start + 1, end - overlap)
    for pattern in (_BREAKS[1], _BREAKS[3]):
        for match in pattern.finditer(text, window, end):
            if match.end() < end:
                return match.end()
    return end


def _heading_at(headings: list[tuple[int, str]], text: str, fresh: int, end: int) -> str | None:
    """The heading a chunk stands under: one at its beginning, else the last one before it, else one inside it."""
    first_word = fresh + (len(text[fresh:end]) - len(text[fresh:end].lstrip()))
    place = bisect.bisect_right(headings, (first_word, "\U0010ffff")) - 1
    if place >= 0:
        return headings[place][1]
    return headings[0][1] if headings and headings[0][0] < end else None
