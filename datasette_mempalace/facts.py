"""Facts of an imported knowledge graph that belong to one drawer.

Three ways to belong, in this order: the graph says that the fact was taken from the drawer; or from its source or the
source's closet; or the fact is about something whose name stands in the drawer, letter by letter. Nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .stop_words import LANGUAGES

FACTS = 20
READ_CHARACTERS = 10_000
NAME_WORDS = 4  # a name of more words is not looked for
SHORTEST_NAME = 3
ENTITIES = 50
_WORD = re.compile(r"\w[\w'’.-]*\w|\w")
_TABLES = frozenset({"kg_entities", "kg_triples"})


def read_facts(connection: Any, drawer: Mapping[str, Any], closets: Sequence[int]) -> list[dict[str, Any]]:
    """The facts that belong to a drawer; none in a palace without a knowledge graph.

    Args:
        connection: an open connection to the palace.
        drawer: its row.
        closets: the ids of the closets of its source.
    Returns:
        at most `FACTS`: id, subject, predicate, object (names), valid_from, valid_to, confidence, and `why`: "drawer",
        "source" or "name".
    """
    tables = connection.execute("select name from sqlite_master where name in ('kg_entities', 'kg_triples')")
    if {row[0] for row in tables} != _TABLES:
        return []
    found = connection.execute(
        _FACTS,
        {
            "id": drawer["id"],
            "source": drawer["source_file"] or None,
            "closets": json.dumps(list(closets)),
            "entities": json.dumps(_entities(connection, drawer)),
            "limit": FACTS,
        },
    )
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def _entities(connection: Any, drawer: Mapping[str, Any]) -> list[int]:
    """The graph's entities whose names stand in the drawer's text, or among the entities that its metadata names."""
    words = [match[0] for match in _WORD.finditer(drawer["text"][:READ_CHARACTERS])]
    names = {
        " ".join(words[start : start + length])
        for length in range(1, NAME_WORDS + 1)
        for start in range(len(words) - length + 1)
    }
    names |= set(_named(drawer["metadata"]))
    telling = [
        name for name in names if len(name) >= SHORTEST_NAME and name.lower() not in LANGUAGES["english"]
    ]
    rows = connection.execute(
        "select id from kg_entities where name in (select value from json_each(:names)) order by id limit :limit",
        {"names": json.dumps(telling), "limit": ENTITIES},
    )
    return [row[0] for row in rows]


def _named(metadata: str | None) -> list[str]:
    """MemPalace's `entities`: names with semicolons between."""
    try:
        given = json.loads(metadata or "{}")
    except (ValueError, RecursionError):
        return []
    entities = given.get("entities") if isinstance(given, dict) else None
    return [name.strip() for name in entities.split(";")] if isinstance(entities, str) else []


_FACTS = """
select
  kg_triples.id,
  coalesce(subjects.name, subjects.entity_id) as subject,
  kg_triples.predicate,
  coalesce(objects.name, objects.entity_id) as object,
  kg_triples.valid_from,
  kg_triples.valid_to,
  kg_triples.confidence,
  case
    when kg_triples.source_drawer = :id then 'drawer'
    when kg_triples.source_file = :source
      or kg_triples.source_closet in (select value from json_each(:closets)) then 'source'
    else 'name'
  end as why
from
  kg_triples
  left join kg_entities as subjects on subjects.id = kg_triples.subject
  left join kg_entities as objects on objects.id = kg_triples.object
where
  kg_triples.id in (
    select id from kg_triples where source_drawer = :id
    union select id from kg_triples where source_file = :source
    union select id from kg_triples where source_closet in (select value from json_each(:closets))
    union select id from kg_triples where subject in (select value from json_each(:entities))
    union select id from kg_triples where object in (select value from json_each(:entities))
  )
order by
  case why when 'drawer' then 0 when 'source' then 1 else 2 end,
  kg_triples.valid_to is not null,
  kg_triples.id
limit :limit
"""
