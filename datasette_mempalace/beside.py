"""The tables that `import-palace` adds to a palace: their SQL, and what keeps them in step with drawers and closets.

A palace without imports never gets them, and none of them is made before there is something to put into it.
"""

from __future__ import annotations

from typing import Any

_DRAWER = "references drawers(id) on delete set null"
_GRAPH = {
    "hallways": (
        "hallway_id",
        "id integer primary key, origin integer not null references mempalace_origins(id), hallway_id text not null,"
        " wing text, entity_a text, entity_b text, co_occurrence_count integer, rooms text, label text, strength real,"
        " stability real, last_activated text, access_count integer, created_at text, created_by text, metadata text",
    ),
    "tunnels": (
        "tunnel_id",
        "id integer primary key, origin integer not null references mempalace_origins(id), tunnel_id text not null,"
        " kind text, label text, source_wing text, source_room text, target_wing text, target_room text,"
        f" source_drawer_id text, source_drawer integer {_DRAWER}, target_drawer_id text,"
        f" target_drawer integer {_DRAWER}, strength real, stability real, last_activated text, access_count integer,"
        " created_at text, updated_at text, metadata text",
    ),
    "kg_entities": (
        "entity_id",
        "id integer primary key, origin integer not null references mempalace_origins(id), entity_id text not null,"
        " name text, type text, properties text, created_at text, metadata text",
    ),
    "kg_triples": (
        "triple_id",
        "id integer primary key, origin integer not null references mempalace_origins(id), triple_id text not null,"
        " subject integer references kg_entities(id), predicate text, object integer references kg_entities(id),"
        " valid_from text, valid_to text, confidence real, source_file text, source_drawer_id text,"
        f" source_drawer integer {_DRAWER}, source_closet_id text,"
        " source_closet integer references closets(id) on delete set null, adapter_name text, extracted_at text,"
        " metadata text",
    ),
}
_INDEXES: dict[str, tuple[str, ...]] = {
    "hallways": ("wing", "entity_a", "entity_b"),
    "tunnels": ("source_wing, source_room", "target_wing, target_room", "source_drawer", "target_drawer"),
    "kg_entities": ("name",),
    "kg_triples": (
        "subject",
        "object",
        "predicate",
        "valid_from, valid_to",
        "source_drawer",
        "source_closet",
        "source_file",
    ),
}
# What a row refers to: its column, the column with MemPalace's id, and the table that it is looked up in.
LINKS: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "tunnels": (
        ("source_drawer", "source_drawer_id", "drawers", "drawer_id"),
        ("target_drawer", "target_drawer_id", "drawers", "drawer_id"),
    ),
    "kg_triples": (
        ("source_drawer", "source_drawer_id", "drawers", "drawer_id"),
        ("source_closet", "source_closet_id", "closets", "closet_id"),
    ),
}


KEYS = {table: key for table, (key, _) in _GRAPH.items()}
COLUMNS = {table: columns for table, (_, columns) in _GRAPH.items()}
ORIGINS = ("mempalace_origins", "origin_drawers", "origin_closets")
TABLES = (*ORIGINS, *_GRAPH)


def make(connection: Any, *tables: str) -> None:
    """Make tables, with their indexes and triggers, where they are not there."""
    for table in tables:
        for statement in statements(table):
            connection.execute(statement)


def statements(table: str) -> list[str]:
    """What makes a table, its indexes and triggers."""
    if table == "mempalace_origins":
        return [
            "create table if not exists mempalace_origins (id integer primary key, folder text not null,"
            " collection text not null, collection_id text, embedding_model text, metric text,"
            " first_imported text, last_imported text, unique (folder, collection))"
        ]
    if table in ORIGINS:
        kind = table.removeprefix("origin_").removesuffix("s")
        return [
            f"create table if not exists {table} ({kind}_id text primary key,"
            " origin integer not null references mempalace_origins(id)) without rowid",
            f"create index if not exists idx_{table}_origin on {table}(origin)",
            # A deleted row's id is free again: who files it next is another origin.
            f"create trigger if not exists {kind}s_forget_origin after delete on {kind}s begin"
            f" delete from {table} where {kind}_id = old.{kind}_id; end",
        ]
    return [
        f"create table if not exists {table} ({COLUMNS[table]}, unique (origin, {KEYS[table]}))",
        *(
            f"create index if not exists idx_{table}_{number} on {table}({column})"
            for number, column in enumerate(_INDEXES[table])
        ),
        # The same as `on delete set null`, for the many connections that do not enforce foreign keys.
        *(
            f"create trigger if not exists {table}_{column}_gone after delete on {target} begin"
            f" update {table} set {column} = null where {column} = old.id; end"
            for column, _, target, _ in LINKS.get(table, ())
        ),
    ]


def catch_up(table: str) -> list[str]:
    """What the triggers of a table would have done while they were gone."""
    if table in ORIGINS[1:]:
        kind = table.removeprefix("origin_").removesuffix("s")
        return [f"delete from {table} where {kind}_id not in (select {kind}_id from {kind}s)"]
    return [
        f"update {table} set {column} = null where {column} not in (select id from {target})"
        for column, _, target, _ in LINKS.get(table, ())
    ]
