"""The one place that knows Datasette 0.65 from 1.0: permissions, titles, and where its SQL page lies.

Nothing else in the package asks which Datasette it runs in, but for `reopening`, which works on the inside of its databases.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable
from typing import Any

from datasette.app import Datasette

TABLE, CLOSETS = "drawers", "closets"
IS_ONE = hasattr(Datasette, "allowed")  # 1.0's way to ask for a permission


async def may_view_palace(datasette: Any, actor: dict[str, Any] | None, database: str) -> bool:
    """Whether an actor may see a palace: both its database and its table of drawers, as core's own pages decide it.

    Args:
        datasette: the Datasette instance.
        actor: who asks; None is an anonymous visitor.
        database: the name of the database.
    """
    return await may_view_table(datasette, actor, database, TABLE)


async def may_view_table(datasette: Any, actor: dict[str, Any] | None, database: str, table: str) -> bool:
    """Whether an actor may see a table and its database."""
    if IS_ONE:
        from datasette.resources import DatabaseResource, TableResource

        return bool(
            await datasette.allowed(action="view-database", resource=DatabaseResource(database), actor=actor)
            and await datasette.allowed(
                action="view-table", resource=TableResource(database, table), actor=actor
            )
        )
    # 0.65 stops at the first rule that says yes or no, so that a table's yes would hide its database's no.
    of_database = [("view-database", database), "view-instance"]
    of_table = [("view-table", (database, table)), *of_database]
    return bool(
        (await datasette.check_visibility(actor, permissions=of_database))[0]
        and (await datasette.check_visibility(actor, permissions=of_table))[0]
    )


async def may_view_instance(datasette: Any, actor: dict[str, Any] | None) -> bool:
    """Whether an actor may see the instance's home page."""
    if IS_ONE:
        return bool(await datasette.allowed(action="view-instance", actor=actor))
    return bool((await datasette.check_visibility(actor, permissions=["view-instance"]))[0])


async def may_debug(datasette: Any, actor: dict[str, Any] | None) -> bool:
    """Whether an actor may see what is for keeping the instance, as root may unless it is configured otherwise."""
    if IS_ONE:
        return bool(await datasette.allowed(action="debug-menu", actor=actor))
    return bool(await datasette.permission_allowed(actor, "debug-menu", default=False))


def configuration(datasette: Any) -> dict[str, Any]:
    """The configuration that permissions are read from: datasette.yaml on 1.0, metadata on 0.65."""
    found: dict[str, Any] = datasette.config if IS_ONE else datasette._metadata_local
    return found or {}


async def may_run_sql(datasette: Any, actor: dict[str, Any] | None, database: str) -> bool:
    """Whether an actor who may see the database may also write SQL of their own there."""
    if IS_ONE:
        from datasette.resources import DatabaseResource

        return bool(
            await datasette.allowed(action="execute-sql", resource=DatabaseResource(database), actor=actor)
        )
    return bool(await datasette.permission_allowed(actor, "execute-sql", database, default=True))


async def database_title(datasette: Any, database: str) -> str | None:
    """The title that the metadata gives a database, or None."""
    if IS_ONE:
        title = (await datasette.get_database_metadata(database)).get("title")
    else:
        title = datasette.metadata("title", database=database, fallback=False)
    return str(title) if title else None


def database_colour(datasette: Any, database: str) -> str:
    """The colour that core's own pages give a database, as six hexadecimal digits; 0.65 gives all the same."""
    return getattr(datasette.get_database(database), "color", "ff0000")


def sql_url(datasette: Any, database: str, sql: str, parameters: dict[str, str]) -> str:
    """The page that shows, runs and lets edit a statement.

    Args:
        datasette: the Datasette instance.
        database: the name of the database.
        sql: the statement.
        parameters: values for its named parameters.
    Returns:
        the path, with the instance's base_url.
    """
    query = urllib.parse.urlencode({"sql": sql, **parameters})
    return f"{datasette.urls.database(database)}{'/-/query' if IS_ONE else ''}?{query}"


def database_of(datasette: Any, route: str) -> Any:
    """The database that a part of a URL names, or None when there is none.

    Args:
        datasette: the Datasette instance.
        route: the part as it stands in the URL, tilde-encoded.
    """
    from datasette.utils import tilde_decode

    try:
        return datasette.get_database(route=tilde_decode(route))
    except KeyError:
        return None


async def named_query(datasette: Any, database: str, name: str) -> str | None:
    """The SQL of a query that the configuration, or a plugin, gives a name; None where there is none.

    Args:
        datasette: the Datasette instance.
        database: the name of the database.
        name: the query's.
    """
    if IS_ONE:
        query = await datasette.get_query(database, name)
        return None if query is None else str(query.sql)
    found = await datasette.get_canned_query(database, name, None)
    return None if found is None else str(found.get("sql") or "")


def hide_tables(datasette: Any, database: str, tables: Iterable[str]) -> None:
    """Let Datasette list tables of a database among its hidden ones, unless its configuration says otherwise.

    Args:
        datasette: the Datasette instance.
        database: the name of the database.
        tables: their names.
    """
    # 1.0 looks for `hidden` in its configuration, 0.65 in its metadata; neither has a hook for it on both.
    configuration = datasette.config if IS_ONE else datasette._metadata_local
    databases = configuration.setdefault("databases", {})
    told = databases.setdefault(database, {}).setdefault("tables", {})
    for table in tables:
        told.setdefault(table, {}).setdefault("hidden", True)


def settings_error(message: str) -> Exception:
    """The exception that ends Datasette's start with one sentence."""
    if IS_ONE:
        from datasette.utils import StartupError

        return StartupError(message)  # type: ignore[no-any-return]
    import click

    # 0.65 catches its StartupError before it calls plugins; what it lets through to click is told in one line.
    return click.ClickException(message)
