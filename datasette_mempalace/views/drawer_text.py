"""A drawer in a reader's words: what the template of its page shows. Pure: no text is markup but what `markdown` made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from ..answer import heading_of
from ..around import COPIES, Neighbour
from ..compat import sql_url
from ..stop_words import stop_words
from ..text import chunk_label, clean_text, counted, shown_similarity, source_name
from ..words import MOST_CHARACTERS, QueryWords, find_words, read_query
from . import markdown, present
from .drawer_look import REACHES, DrawerLinks, DrawerRequest, Found, reach_of
from .links import HITS_SQL, Links
from .snippets import Part, parts

NEIGHBOUR_CHARACTERS = 1_500
HEADINGS = 9  # of the outline that are shown at once, the current one in their middle
MOST_HEADINGS = 200  # folded away on each side
CLOSET_LINES = 12
FACTS = ("hall", "added_by", "authored_at", "content_date", "parent_drawer_id")
WHY = {
    "drawer": "taken from this drawer",
    "source": "taken from this source",
    "name": "names something in this text",
}


def drawer_view(found: Found, asked: DrawerRequest, links: DrawerLinks, may_run_sql: bool) -> dict[str, Any]:
    """A drawer for the template.

    Args:
        found: the drawer and what stands around it.
        asked: how it is looked at.
        links: out of this page.
        may_run_sql: whether the visitor may follow a link to SQL.
    """
    row, around = found.row, found.around
    metadata = metadata_of(row["metadata"])
    heading = heading_of(row)
    words = read_query(asked.search.query, stop_words(links.settings.stop_words))
    rendered = asked.view == "rendered"
    too_long = rendered and len(row["text"]) > markdown.MOST_CHARACTERS
    written = present.day(row["authored_at"] or row["content_date"])
    filed = present.day(row["filed_at"])
    return {
        "id": row["id"],
        "drawer_id": row["drawer_id"],
        "title": _label(row, around.total),
        "heading": heading,
        **_place(row, links),
        "filed": filed,
        "written": written if written != filed else None,
        "query": asked.search.query,
        "back_url": f"{links.to(links.pairs)}#drawer-{row['id']}",
        "home_url": links.to([]),
        "page_url": links.drawer(row),
        "json_url": links.data(row),
        "row_url": links.row(row["id"]),
        "sql_url": similar_sql(links, row["drawer_id"], 10) if may_run_sql else None,
        "views": [
            {"label": label, "url": links.to_drawer(row, **{"as": view}), "current": asked.view == view}
            for view, label in (("written", "As written"), ("rendered", "Rendered"))
        ],
        "parts": None if rendered and not too_long else marked(row["text"], words),
        "html": Markup(markdown.render(row["text"], lambda text: marked(text, words)))
        if rendered and not too_long
        else None,
        "too_long": counted(markdown.MOST_CHARACTERS, "character") if too_long else None,
        "previous": _neighbour(around.previous, links, before=True),
        "next": _neighbour(around.next, links, before=False),
        "source_path": row["source_file"] or None,
        "source_url": links.source(row["source_file"]) if row["source_file"] else None,
        "position": f"{around.place:,} of {around.total:,}" if around.total > 1 else None,
        "filed_at": row["filed_at"],
        "facts": [(name.replace("_", " "), row[name]) for name in FACTS if row[name] not in (None, "")],
        "length": counted(len(row["text"]), "character"),
        # JSON may spell a lone surrogate, which no page can hold.
        "metadata": [(clean_text(key)[0], clean_text(shown(value))[0]) for key, value in metadata.items()],
        "copies": [_link(copy, links) for copy in around.copies[:COPIES]],
        "more_copies": len(around.copies) > COPIES,
        "near": [
            {"label": f"{_number(each):,}", "url": links.to_drawer(each), "current": each["id"] == row["id"]}
            for each in (around.near if around.total > 1 else [])
        ],
        **_outline(found, links),
        "closets": [_closet(closet) for closet in around.closets],
        "graph": [
            {**fact, "url": f"{links.datasette.urls.table(links.database, 'kg_triples')}/{fact['id']}"}
            | {"why": WHY[fact["why"]]}
            for fact in found.facts
        ],
        **_similar(found, asked, links),
    }


def marked(text: str, words: QueryWords) -> list[Part]:
    """A text in parts, the words of a query marked; of a very long text the beginning is looked through."""
    pieces, last = [], 0
    for start, end, _ in find_words(text[:MOST_CHARACTERS], words) if words else ():
        pieces += [Part(text=text[last:start], hit=False), Part(text=text[start:end], hit=True)]
        last = end
    pieces.append(Part(text=text[last:], hit=False))
    return [piece for piece in pieces if piece["text"]]


def metadata_of(stored: str | None) -> dict[str, Any]:
    """The metadata column key by key; what is no JSON object is one value."""
    if not stored:
        return {}
    try:
        found = json.loads(stored, parse_constant=str)  # no NaN: JSON has none
    except (ValueError, RecursionError):
        return {"metadata": stored}
    return found if isinstance(found, dict) else {"metadata": found}


def shown(value: Any) -> str:
    """A value of metadata as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def similar_view(hit: Mapping[str, Any], links: Links, url: str) -> dict[str, Any]:
    """A similar drawer for the template."""
    heading = hit["heading"]
    return {
        **_place(hit, links),
        "url": url,
        "title": heading or present.source_label(dict(hit)),
        "source": hit["source_file"] if heading else None,
        "source_url": links.source(hit["source_path"]) if hit["source_path"] else None,
        "source_path": hit["source_path"],
        "chunk": chunk_label(hit["chunk_index"], hit["chunk_total"]),
        "filed": present.day(hit["filed_at"]),
        "parts": parts(hit["snippet"]),
        "similarity": shown_similarity(hit["similarity"], hit["same_text"]),
        "share": hit["similarity"],
        "same_source": hit["same_source"],
        "same_text": hit["same_text"],
    }


def _similar(found: Found, asked: DrawerRequest, links: DrawerLinks) -> dict[str, Any]:
    row = found.row
    named = {
        "everywhere": "everywhere",
        "wing": "in this wing" if row["wing"] is not None else "without a wing",
        "room": "in this room" if row["room"] is not None else "in this wing, without a room",
    }
    answer: Mapping[str, Any] = found.similar or {"results": [], "vector": None}
    return {
        "similar": [similar_view(hit, links, links.to_drawer(hit)) for hit in answer["results"]],
        "no_similar": found.no_similar,
        "embedded": answer["vector"] == "embedded",
        "reaches": [
            {
                "label": named[reach],
                "url": links.to_drawer(row, similar=reach) + "#mp-similar",
                "current": asked.reach == reach,
            }
            for reach in REACHES
        ],
        "all_similar_url": links.similar_page(row, reach_of(row, asked.reach)),
    }


def _label(row: Mapping[str, Any], total: int | None) -> str:
    drawer = {**row, "source_file": source_name(row["source_file"]), "chunk_total": total}
    return present.source_label(drawer)


def _place(row: Mapping[str, Any], links: Links) -> dict[str, Any]:
    return {
        "wing": row["wing"],
        "room": row["room"],
        "wing_url": links.place(row["wing"]),
        "room_url": links.place(row["wing"], row["room"]),
    }


def _number(drawer: Mapping[str, Any]) -> int:
    """The number people know a chunk by, counted from one; its place where it has none."""
    index = drawer["chunk_index"]
    return int(index) + 1 if isinstance(index, int) and index >= 0 else int(drawer["place"])


def _neighbour(neighbour: Neighbour | None, links: DrawerLinks, before: bool) -> dict[str, Any] | None:
    """The drawer before or after, without what it shares with this one, cut where it is long."""
    if neighbour is None:
        return None
    text, shared = neighbour.row["text"], neighbour.shared
    text = text[: len(text) - shared] if before else text[shared:]
    cut = len(text) > NEIGHBOUR_CHARACTERS
    if cut:
        text = text[-NEIGHBOUR_CHARACTERS:] if before else text[:NEIGHBOUR_CHARACTERS]
        text = "… " + text.partition(" ")[2] if before else text.rpartition(" ")[0] + " …"
    side = ("its last", "begin") if before else ("its first", "end")
    return {
        "label": chunk_label(neighbour.row["chunk_index"]) or f"drawer {neighbour.row['id']}",
        "url": links.to_drawer(neighbour.row),
        "text": text.lstrip("\n") if before else text.rstrip(),
        "seam": f"{side[0]} {counted(shared, 'character')} {side[1]} this drawer" if shared else None,
    }


def _link(drawer: Mapping[str, Any], links: DrawerLinks) -> dict[str, Any]:
    return {
        **_place(drawer, links),
        "label": present.source_label(dict(drawer)),
        "url": links.to_drawer(drawer),
    }


def _outline(found: Found, links: DrawerLinks) -> dict[str, Any]:
    """The headings around the current one, and those before and after them to be unfolded."""
    headings = [
        {
            "heading": each["heading"],
            "number": f"{_number(each):,}",
            "url": links.to_drawer(each),
            "current": each["current"],
        }
        for each in found.around.outline
    ]
    current = next((number for number, each in enumerate(headings) if each["current"]), 0)
    start = max(0, min(current - HEADINGS // 2, len(headings) - HEADINGS))
    return {
        "earlier_headings": headings[max(0, start - MOST_HEADINGS) : start],
        "headings": headings[start : start + HEADINGS],
        "later_headings": headings[start + HEADINGS : start + HEADINGS + MOST_HEADINGS],
        "outline_cut": found.around.outline_cut or len(headings) > HEADINGS + 2 * MOST_HEADINGS,
    }


def _closet(closet: Mapping[str, Any]) -> dict[str, Any]:
    """A closet's topics, without its pointers."""
    lines = [line.split("→")[0].split("|")[0].strip() for line in closet["text"].splitlines()]
    topics = [line for line in lines if line]
    return {
        "id": closet["id"],
        "topics": topics[:CLOSET_LINES],
        "more": len(topics) > CLOSET_LINES,
        "points_here": closet["points_here"],
    }


def similar_sql(links: Links, drawer_id: str, n_results: int) -> str:
    """The SQL page with the similar drawers, to be changed there."""
    parameters = {"drawer_id": drawer_id, "n_results": str(n_results)}
    statement = HITS_SQL.format(measure="similarity", call="mempalace_similar(:drawer_id, :n_results)")
    return sql_url(links.datasette, links.database, statement, parameters)
