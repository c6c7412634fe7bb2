"""The frame of the pages: from a request to a palace's page, with errors and style sheets in one place."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from datasette import Forbidden, Response

from ..compat import TABLE, database_colour, database_title, may_run_sql
from ..errors import BadParameter, MempalaceError, NotAllowed
from ..palace import Palace
from ..text import counted
from .access import View, palace_of, parameters_of, reading_only
from .form import form_view
from .links import palace_path

Show = Callable[..., Awaitable[Any]]
STATIC = Path(__file__).parent.parent / "static"


def page_of_palace(show: Show, with_form: bool = False) -> View:
    """A page of the palace that a URL names.

    Args:
        show: `show(datasette, request, palace, context)` returns what the template is to know beside the context, with
            the template's name as `template`; or a response. It may raise any MempalaceError.
        with_form: whether the page has the search form, so that what was wrong can be mended there.
    """

    async def view(request: Any, datasette: Any) -> Any:
        try:
            database, palace = await palace_of(datasette, request)
        except NotAllowed as error:
            raise Forbidden(error.message) from None
        except MempalaceError as error:
            return await error_page(datasette, request, error)
        context = {
            "database": database,
            "title": await title_of(datasette, database, palace),
            "colour": database_colour(datasette, database),
            "home_url": palace_path(datasette, database),
            "table_url": datasette.urls.table(database, TABLE),
            "file": Path(palace.path).name,
            "form": form_view(parameters_of(request), palace),
            "may_run_sql": await may_run_sql(datasette, request.actor, database),
            "count": counted,
        }
        try:
            shown = await show(datasette, request, palace, context)
        except MempalaceError as error:
            context |= {"error": error, "with_form": with_form}
            context["form"]["wrong"] = error.parameter if isinstance(error, BadParameter) else None
            return await render(datasette, request, "mempalace_error.html", context, error.status)
        if not isinstance(shown, dict):
            return shown
        return await render(datasette, request, shown["template"], {**context, **shown})

    view.__name__, view.__doc__ = show.__name__, show.__doc__  # not wraps(): Datasette asks for the signature
    return reading_only(view)


async def title_of(datasette: Any, database: str, palace: Palace) -> str:
    """What a palace is called: its setting, the metadata's title, or its database's name."""
    return palace.settings.title or await database_title(datasette, database) or database


async def error_page(datasette: Any, request: Any, error: MempalaceError) -> Any:
    """An error where there is no palace to show a form for: Datasette's own error page."""
    context = {"title": error.title, "error": error.message, "status": error.status}
    return await render(datasette, request, "error.html", context, error.status)


async def render(
    datasette: Any, request: Any, template: str, context: dict[str, Any], status: int = 200
) -> Any:
    """A template as a response, with our style sheet."""
    css = sheet_url(datasette, "mempalace.css")
    html = await datasette.render_template(
        template, {"mempalace_css": css, **context}, request=request, view_name="mempalace"
    )
    return Response.html(html, status=status)


def sheet_url(datasette: Any, sheet: str) -> str:
    """The URL of a style sheet, which changes with it, so that browsers never keep an old one."""
    return f"{datasette.urls.static_plugins('datasette_mempalace', sheet)}?{_hash(sheet)}"


@functools.cache
def _hash(sheet: str) -> str:
    return hashlib.sha256((STATIC / sheet).read_bytes()).hexdigest()[:8]
