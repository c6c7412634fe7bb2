"""The tools that read: a drawer, the wings and rooms, the state of the palace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..context import MAX_CHARACTERS, stitch
from ..errors import BadInput, BadParameter
from ..palace import Palace
from ..scope import Scope
from ..status import palace_status
from ..suggestions import near_names
from ..text import clean_text, source_name
from .bounds import Answer, bounded, metadata_of, offset_of, page

UrlOf = Callable[[int], str]

PLACE = ("drawer_id", "wing", "room")
DRAWER_CHARACTERS = 20_000  # of one drawer's text in one answer
MOST_CHUNKS = 200
LARGEST_WINGS = 10

_RECORDED = ("hall", "added_by", "filed_at", "authored_at", "content_date", "chunk_index", "parent_drawer_id")


def get_drawer(palace: Palace, url_of: UrlOf | None, drawer_id: str, offset: int = 0) -> Answer:
    """One drawer, or the chunks that were filed under one parent's id, joined.

    Raises:
        BadInput: when there is none, or the offset lies behind the end.
    """
    wanted = clean_text(drawer_id)[0].strip()
    with palace.reader() as connection:
        row = row_of(connection, "select * from drawers where drawer_id = ?", [wanted])
        chunks = [] if row else _chunks(connection, wanted)
        before, after = (None, None) if chunks else _neighbours(connection, row)
    row = row or chunks[0]
    text = stitch([chunk["text"] for chunk in chunks]) if chunks else row["text"]
    if offset and offset >= len(text):
        raise BadParameter("offset", offset, f"the text has {len(text):,} characters")
    part = text[offset : offset + DRAWER_CHARACTERS]
    rest = len(text) - offset - len(part)
    metadata, left_out = metadata_of(row["metadata"])
    notes = []
    if chunks:
        notes.append(f"This was filed in {len(chunks)} drawers, joined here; chunk_ids name them.")
        if sum(len(chunk["text"]) for chunk in chunks) > MAX_CHARACTERS:
            notes.append("Joined texts end early when they are long; read on in the drawers of chunk_ids.")
    if rest:
        notes.append(
            f"The text goes on for {rest:,} characters: call again with offset set to {offset + len(part)}."
        )
    if left_out:
        notes.append(f"Metadata left out, too long: {', '.join(left_out)}.")
    return {
        **_described(row),
        "drawer_id": wanted,
        **({"chunk_ids": [chunk["drawer_id"] for chunk in chunks]} if chunks else {}),
        **({"url": url_of(row["id"])} if url_of else {}),
        "text": part,
        "characters": len(text),
        "offset": offset,
        "next_offset": offset + len(part) if rest else None,
        "metadata": metadata,
        "previous_drawer_id": before,
        "next_drawer_id": after,
        "notes": notes,
    }


def _chunks(connection: Any, parent: str) -> list[dict[str, Any]]:
    """The drawers that were cut from one; agents may know its id from elsewhere.

    Raises:
        BadInput: when there are none.
    """
    ids = connection.execute(
        "select id from drawers where parent_drawer_id = ? order by chunk_index, id limit ?",
        [parent, MOST_CHUNKS],
    ).fetchall()
    if not ids:
        raise BadInput(
            f"drawer_id: there is no drawer {bounded(parent)!r} here; take a drawer_id from mempalace_search."
        )
    return [row_of(connection, "select * from drawers where id = ?", row) for row in ids]


def _described(row: Mapping[str, Any]) -> Answer:
    """What is recorded about a drawer; what is not recorded is left out, but for its place."""
    described: Answer = {key: bounded(row[key]) for key in PLACE}
    described |= {key: bounded(row[key]) for key in _RECORDED if row[key] is not None}
    if row["source_file"]:
        described |= {
            "source_file": bounded(source_name(row["source_file"])),
            "source_path": bounded(row["source_file"]),
        }
    return described


def _neighbours(connection: Any, row: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The drawers before and after one in its source."""
    if not row["source_file"] or row["chunk_index"] is None:
        return None, None
    found = []
    for sign, order in (("<", "desc"), (">", "asc")):
        near = connection.execute(
            f"select drawer_id from drawers where source_file = :source_file and wing is :wing"
            f" and chunk_index {sign} :chunk_index order by chunk_index {order} limit 1",
            {key: row[key] for key in ("source_file", "wing", "chunk_index")},
        ).fetchone()
        found.append(near[0] if near else None)
    return found[0], found[1]


def list_wings(palace: Palace, url_of: UrlOf | None, limit: int = 100, next: str | None = None) -> Answer:
    """The wings, largest first; `limit` at most, from the place that `next` says.

    Raises:
        BadParameter: when `next` is no place.
    """
    offset = offset_of(next)
    with palace.reader() as connection:
        wings = _wings(connection, limit, offset)
        total, drawers = connection.execute(
            "select (select count(*) from (select distinct wing from drawers)), (select count(*) from drawers)"
        ).fetchone()
    shown, following, notes = page("wings", wings, offset, total)
    return {
        "wings": shown,
        "total_wings": total,
        "total_drawers": drawers,
        "next": following,
        "notes": notes,
    }


def list_rooms(
    palace: Palace,
    url_of: UrlOf | None,
    wing: str | None = None,
    limit: int = 100,
    next: str | None = None,
) -> Answer:
    """The rooms of one wing or of all, largest first; `limit` at most, from the place that `next` says.

    Raises:
        BadParameter: when `next` is no place.
    """
    offset = offset_of(next)
    wing = clean_text(wing)[0] if wing else None
    scope = Scope(wings=(wing,) if wing else ())
    where, parameters = scope.where()
    grouped = f"select wing, room, count(*) as drawers from drawers where {where} group by wing, room"
    with palace.reader() as connection:
        rows = connection.execute(
            f"{grouped} order by drawers desc, wing, room limit :limit offset :offset",
            {**parameters, "limit": limit, "offset": offset},
        ).fetchall()
        total = int(connection.execute(f"select count(*) from ({grouped})", parameters).fetchone()[0])
        near = near_names(connection, scope).get("wing", {}) if not total else {}
    rooms = [
        {"wing": bounded(row_wing), "room": bounded(room), "drawers": count} for row_wing, room, count in rows
    ]
    shown, following, notes = page("rooms", rooms, offset, total)
    if wing and not total:
        offered = " or ".join(repr(name) for names in near.values() for name in names)
        advice = f"did you mean {offered}?" if offered else "see mempalace_list_wings."
        notes.append(f"There is no wing {bounded(wing)!r}; {advice}")
    return {"wing": wing, "rooms": shown, "total_rooms": total, "next": following, "notes": notes}


def status(palace: Palace, url_of: UrlOf | None) -> Answer:
    """What the palace holds, and whether it can be searched by meaning; no path of this machine is told."""
    found = palace_status(palace)
    embedder = found["embedder"]
    with palace.reader() as connection:
        wings = _wings(connection, LARGEST_WINGS, 0)
    notes = []
    if not found["drawers"]:
        notes.append("The palace is empty: nothing has been filed yet.")
    elif not found["vectors"] or not embedder["available"]:
        notes.append("Search goes by words alone until the palace can be searched by meaning.")
    answer = {f"total_{key}": found[key] for key in ("drawers", "wings", "rooms", "sources")}
    return {
        **answer,
        **{key: found[key] for key in ("first_filed", "last_filed", "pending_vectors")},
        "largest_wings": wings,
        "embedder": {key: embedder[key] for key in ("model", "available", "reason")},
        "mirror": found["mirror"]["state"],
        "notes": notes,
    }


def _wings(connection: Any, limit: int, offset: int) -> list[Answer]:
    rows = connection.execute(
        "select wing, count(*) as drawers, count(distinct room) from drawers group by wing"
        " order by drawers desc, wing limit ? offset ?",
        [limit, offset],
    )
    return [{"wing": bounded(wing), "drawers": drawers, "rooms": rooms} for wing, drawers, rooms in rows]


def row_of(connection: Any, query: str, parameters: list[Any]) -> Any:
    """One row as a dictionary, or None."""
    cursor = connection.execute(query, parameters)
    row = cursor.fetchone()
    return row and dict(zip((column[0] for column in cursor.description), row, strict=True))
