"""An answer as text for a terminal. Pure: it gets an answer and gives lines."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from ..errors import ended
from ..text import chunk_label, counted, shown_similarity
from .common import harmless

MARK_START, MARK_END = "\x01", "\x02"
_MARKS = re.compile("([\x01\x02])")
# JSON escapes C0 itself; DEL, C1 and the marks that reorder text would still reach the terminal.
_OBEYED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
INDENT = 4
BAR = 10
NO_WING, NO_ROOM = "(no wing)", "(no room)"
WIDEST, NARROWEST = 110, 40


@dataclass(frozen=True)
class Look:
    """How to show: how wide, and whether styles can be used."""

    width: int = 100
    styled: bool = False

    @classmethod
    def of_terminal(cls) -> Look:
        """What standard output can do."""
        return cls(max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns)), sys.stdout.isatty())

    def style(self, text: str, **styles: Any) -> str:
        """The text, styled where that is possible."""
        return click.style(text, **styles) if self.styled else text


def as_json(answer: dict[str, Any]) -> str:
    """The answer, with nothing in it that a terminal would obey."""
    text = json.dumps(answer, indent=2, ensure_ascii=False)
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def page(answer: dict[str, Any], look: Look) -> str:
    """All hits of an answer, best first, and how to see more; empty when there are none."""
    if not answer["results"]:
        return ""
    parts = [_hit(hit, answer, look) for hit in answer["results"]]
    if answer.get("next"):
        parts.append(look.style(f"More: add --next {answer['next']}", dim=True))
    return "\n\n".join(parts)


def similar_hit(hit: dict[str, Any], look: Look) -> str:
    """One similar drawer."""
    lines = [_headed(f"{hit['rank']:>2}. {_place(hit)}", _similarity(hit), look)]
    told = ["the same text"] if hit["same_text"] else []
    told += ["the same source"] if hit["same_source"] else []
    told.append(_line(hit["drawer_id"]))
    lines += [look.style(" " * INDENT + line, dim=True) for line in (_source(hit), " · ".join(told)) if line]
    return "\n".join([*lines, *_passage(hit["snippet"], look)])


def cluster(cluster: dict[str, Any], look: Look) -> str:
    """One cluster of copies: its text and where it stands."""
    kind = "equal" if cluster["kind"] == "exact" else "nearly equal"
    lines = [look.style(f"{counted(cluster['size'], 'drawer')}, {kind}", bold=True)]
    lines += _passage(cluster["snippet"], look)
    for member in cluster["members"]:
        alike = "the same text" if member["same_text"] else "similarity " + _similarity(member)
        parts = (_place(member), _source(member), _line(member["drawer_id"]), alike)
        lines.append(look.style(" " * INDENT + " · ".join(part for part in parts if part), dim=True))
    if cluster["size"] > len(cluster["members"]):
        lines.append(" " * INDENT + f"and {cluster['size'] - len(cluster['members']):,} more")
    return "\n".join(lines)


def _similarity(found: dict[str, Any]) -> str:
    return shown_similarity(found["similarity"], found["same_text"]) or "not known"


def remarks(answer: dict[str, Any]) -> Iterator[str]:
    """What there is to say about an answer beside its hits."""
    if answer.get("fallback"):
        yield f"Words only: {_sentence(answer.get('fallback_reason') or 'there are no vectors to search')}"
    elif answer.get("vector_note"):
        yield _sentence(answer["vector_note"])
    if not answer["results"]:
        scope = counted(answer.get("in_scope", 0), "drawer")
        yield f"Nothing found for {answer['query']!r} among {scope}."
    yield from did_you_mean(answer.get("did_you_mean") or {})
    for unknown in answer.get("unknown_words") or []:
        near = ", ".join(word["word"] for word in unknown.get("near") or [])
        yield f"No drawer has the word {unknown['word']!r}{f'; near: {near}' if near else ''}."


def did_you_mean(names: dict[str, dict[str, list[str]]]) -> Iterator[str]:
    """The wings and rooms that do not exist, each with those near it, as `suggestions.near_names` gives them."""
    for dimension, asked in names.items():
        for value, near in asked.items():
            offered = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
            yield f"There is no {dimension} {value!r}{offered}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + ended(text[1:])


def _hit(hit: dict[str, Any], answer: dict[str, Any], look: Look) -> str:
    lines = [_headed(f"{hit['rank']:>2}. {_place(hit)}", f"{hit['score']:.3f}", look)]
    lines += [
        look.style(" " * INDENT + line, dim=True) for line in (_source(hit), _reason(hit, answer)) if line
    ]
    lines += list(_passage(hit["snippet"], look))
    also = hit.get("also_in") or []
    if also:
        names = "; ".join(_copy(copy) for copy in also[:3])
        more = f" and {len(also) - 3} more" if len(also) > 3 else ""
        lines.append(look.style(f"{' ' * INDENT}also in {names}{more}", dim=True))
    if hit.get("explain"):
        lines += [look.style(" " * INDENT + line, dim=True) for line in _explanation(hit["explain"])]
    return "\n".join(lines)


def _headed(head: str, number: str, look: Look) -> str:
    """A heading with a number at the right edge."""
    gap = max(1, look.width - len(head) - len(number))
    return look.style(head, bold=True) + " " * gap + look.style(number, fg="green")


def _place(hit: dict[str, Any]) -> str:
    wing = NO_WING if hit["wing"] is None else hit["wing"]
    room = NO_ROOM if hit["room"] is None else hit["room"]
    return _line(f"{wing} / {room}")


def _source(hit: dict[str, Any]) -> str:
    """Where in which source, and of when."""
    date = hit.get("authored_at") or hit.get("content_date") or hit.get("filed_at")
    parts = (
        hit.get("source_path") or hit.get("source_file"),
        hit.get("heading"),
        chunk_label(hit.get("chunk_index"), hit.get("chunk_total")),
        date and str(date)[:10],
    )
    return " · ".join(_line(part) for part in parts if part)


def _reason(hit: dict[str, Any], answer: dict[str, Any]) -> str:
    """The numbers and why it was found."""
    from ..answer import closet_helped

    parts = []
    if hit.get("similarity") is not None:
        parts.append(f"similarity {_bar(hit['similarity'])} {hit['similarity']:.2f}")
    if hit.get("bm25_score") is not None:
        share = hit.get("bm25_share")
        parts.append(f"BM25 {_bar(share) + ' ' if share is not None else ''}{hit['bm25_score']:.2f}")
    if hit["matched_via"] == "bm25_sqlite":
        parts.append("words only")
    else:
        ways = {"vector": "meaning", "lexical": "words"}
        parts.append("by " + " and ".join(ways.get(way, way) for way in hit.get("found_by") or ["vector"]))
    if closet_helped(hit, answer):
        parts.append("lifted by a closet")
    return " · ".join(parts)


def _explanation(explained: dict[str, Any]) -> Iterator[str]:
    """Where a hit came from and what its score is made of, a line each."""
    ways = {"vector": "nearest in meaning", "lexical": "best in words"}
    for way, says in ways.items():
        yield f"{says}: " + (
            f"number {explained[way]['rank']}" if explained[way] else "not among these candidates"
        )
    if explained["closet"]:
        yield f"closet: {explained['closet']['boost']:.2f} off the distance, while candidates are chosen"
    sums = [
        f"{part['weight']:g} × {part['part']} {part['value']:.3f} = {part['adds']:.3f}"
        for part in explained["parts"]
    ]
    yield "score: " + "; ".join(sums)


def _bar(share: float) -> str:
    full = round(max(0.0, min(1.0, share)) * BAR)
    return "█" * full + "░" * (BAR - full)


def _copy(copy: dict[str, Any]) -> str:
    index = copy.get("chunk_index")
    return f"{_place(copy)}, {_line(copy.get('source_path') or copy['drawer_id'])}" + (
        "" if index is None else f" (chunk {index + 1})"
    )


def _passage(snippet: str, look: Look) -> Iterator[str]:
    """The snippet, wrapped, its found words bold where that is possible."""
    bold = False
    for line in textwrap.wrap(snippet, look.width - INDENT, break_on_hyphens=False):
        shown = ""
        for piece in _MARKS.split(line):
            if piece in (MARK_START, MARK_END):
                bold = piece == MARK_START
            elif piece:
                shown += look.style(harmless(piece), bold=True, fg="yellow") if bold else harmless(piece)
        yield " " * INDENT + shown


def _line(text: object) -> str:
    """A name on one line."""
    return " ".join(harmless(text).split())
