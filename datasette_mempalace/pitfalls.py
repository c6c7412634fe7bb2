"""Rules of a Datasette configuration that seem to close a palace and leave its texts open.

The database is the boundary: a drawer's text also stands in the full-text index, in closets and in whatever SQL reads.
A rule on the table of drawers alone closes its own page and this plugin's, nothing else. Pure: it reads what is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TABLE = "drawers"
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
    of_table = _at(of_database, "tables", TABLE)
    around = _rule(of_database, "view-database", _rule(instance, "view-instance", OPEN))
    drawers = _rule(of_table, "view-table", None)
    if drawers is None or drawers == around:
        return []
    if drawers == OPEN:
        return [
            f"The database {database} is closed, but its table {TABLE} has a rule of its own that opens it to everybody: "
            f"remove that rule, so that the database's holds."
        ]
    ways = [] if _is_closed_to_sql(instance, of_database) else ["in SQL, mempalace_search() included"]
    ways.append("in closets and on Datasette 0.65 in drawers_fts and its inner tables")
    return [
        f"Only the table {TABLE} of {database} is closed. Whoever may see the database can read its texts "
        f"{', '.join(ways)}: put the same allow block on the database instead."
    ]


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
