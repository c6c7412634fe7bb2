"""A memory palace inside Datasette: the plugin's hooks, each handing on to the module that does the work."""

from __future__ import annotations

from typing import Any

from datasette import hookimpl

from .version import __version__

__all__ = ["__version__"]


@hookimpl
def startup(datasette: Any) -> Any:
    from . import error_log, registry, replaced

    registry.check_settings(datasette)
    replaced.check_names(datasette)
    error_log.settle(datasette)
    return lambda: registry.hide_inner_tables(datasette)


@hookimpl
def asgi_wrapper(datasette: Any) -> Any:
    from . import serving

    return serving.wrap(datasette)


@hookimpl
def shutdown(datasette: Any) -> Any:
    from . import serving

    return serving.close(datasette)


@hookimpl
def prepare_connection(conn: Any, database: str, datasette: Any) -> None:
    from . import registry, sql_functions

    if palace := registry.palace_for_connection(datasette, database, conn):
        sql_functions.register(conn, palace)


@hookimpl
def register_commands(cli: Any) -> None:
    from . import cli as commands

    commands.register(cli)


@hookimpl
def register_routes() -> list[tuple[str, Any]]:
    from .views import ROUTES

    return ROUTES


@hookimpl
def skip_csrf(datasette: Any, scope: Any) -> bool:
    from .views import mcp

    return mcp.skip_csrf(datasette, scope)


@hookimpl
def filters_from_request(request: Any, database: str, table: str, datasette: Any) -> Any:
    from .views import table_page

    return table_page.filters_from_request(request, database, table, datasette)


@hookimpl
def top_homepage(datasette: Any, request: Any) -> Any:
    from .views import data_app

    return data_app.top_homepage(datasette, request)


@hookimpl
def top_database(datasette: Any, request: Any, database: str) -> Any:
    from .views import data_app

    return data_app.top_database(datasette, request, database)


@hookimpl
def top_table(datasette: Any, request: Any, database: str, table: str) -> Any:
    from .views import data_app

    return data_app.top_table(datasette, request, database, table)


@hookimpl
def extra_template_vars(datasette: Any, request: Any) -> Any:
    from .views import data_app

    return data_app.template_vars(datasette, request)


@hookimpl
def menu_links(datasette: Any, actor: Any) -> Any:
    from .views import menus

    return menus.menu_links(datasette, actor)


@hookimpl
def database_actions(datasette: Any, actor: Any, database: str) -> Any:
    from .views import menus

    return menus.database_actions(datasette, actor, database)


@hookimpl
def table_actions(datasette: Any, actor: Any, database: str, table: str, request: Any) -> Any:
    from .views import menus

    return menus.table_actions(datasette, actor, database, table, request)
