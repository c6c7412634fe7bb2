"""Rules of a Datasette configuration that seem to close a palace and leave its texts open.

The database is the boundary: a drawer's text also stands in the full-text index, in closets and in whatever SQL reads.
A rule on the table of drawers alone closes its own page and this plugin's, one on closets what they say there, nothing else. Pure: it reads what is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TABLES = ("drawers", "closets")
OPEN = "open"  # no rule, or one that lets everybody in


def permission_pitfalls(config: Mapping[str, Any] | None, database: str) -> list[str]:
    """What the permission rules of a configuration leave open, though they seem to close it.

    `doctor` tells them to whoever keeps the palace. Rules of plugins, tokens and the command line are not seen here.

    Args:
        config: the content of metadata.yml or datasette.yaml: `allow`, `permissions` and `databases`.
        database: the palace's name there.
    Returns:
        a sentence for each pitfall: what is open, to whom, and what to write instead; none where all is well.
    """
    instance = config if isinstance(config, Mapping) else {}
    of_database = _at(instance, "databases", database)
    around = _rule(of_database, "view-database", _rule(instance, "view-instance", OPEN))
    rules = {table: _rule(_at(of_database, "tables", table), "view-table", None) for table in TABLES}
    told = [
        f"The database {database} is closed, but its table {table} has a rule of its own that opens it to everybody. "
        "Remove that rule, so that the database's holds."
        for table, rule in rules.items()
        if rule == OPEN and around != OPEN
    ]
    if _only_by_permissions(instance, of_database):
        told.append(
            f"{database} is closed by view-database or view-instance under permissions, and not by an allow block. Datasette 1.0 "
            f"leaves its tables open then, and 0.65 does not read that rule. {_instead(database)}"
        )
    closed = [table for table, rule in rules.items() if rule not in (None, OPEN, around)]
    if closed:
        told.append(
            f"In {database} only the {_tables(closed)} closed. Whoever may see the database can still read "
            f"{_left_open(closed, _is_closed_to_sql(instance, of_database))}. {_instead(database)}"
        )
    return told


def _left_open(closed: list[str], no_sql: bool) -> str:
    """What can still be read where only these tables are closed, and how."""
    drawers = "drawers" in closed
    ways = [] if no_sql else ["by SQL and mempalace_search()" if drawers else "by SQL"]
    if drawers and "closets" not in closed:
        ways.append("in closets")
    indexes = " and ".join(f"{table}_fts" for table in closed)
    ways.append(f"on Datasette 0.65 in {indexes} with their inner tables")
    return f"{'the texts' if drawers else 'what closets say'} {', '.join(ways)}"


def _instead(database: str) -> str:
    return f"Put an allow block under the database instead (databases: {database}: allow: ...), which closes all of it."


def _only_by_permissions(*levels: Mapping[str, Any]) -> bool:
    """Whether `permissions` on the instance or the database close it, and neither `allow` nor a rule for its tables does."""
    rules = [_at(level, "permissions") for level in levels]
    closed = {name for given in rules for name, rule in given.items() if rule not in (None, True)}
    allowed = any(level.get("allow") not in (None, True) for level in levels)
    return bool(closed & {"view-database", "view-instance"}) and "view-table" not in closed and not allowed


def _tables(names: list[str]) -> str:
    return f"table {names[0]} is" if len(names) == 1 else f"tables {' and '.join(names)} are"


def _rule(level: Mapping[str, Any], action: str, default: Any) -> Any:
    """Who may come in here: the `allow` block, or what `permissions` says of the action; `default` where neither does."""
    permissions = level.get("permissions")
    found = permissions.get(action) if isinstance(permissions, Mapping) else None
    found = level.get("allow", found)
    if found is None:
        return default
    return OPEN if found is True else found


def _is_closed_to_sql(*levels: Mapping[str, Any]) -> bool:
    """Whether nobody may write SQL: `allow_sql: false` on the instance or the database."""
    return any(level.get("allow_sql") is False for level in levels)


def _at(config: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        config = config.get(key) if isinstance(config, Mapping) else None
    return config if isinstance(config, Mapping) else {}
