"""The JSON API in OpenAPI 3.1, made from the routes and the operations beside their views; served and linked.

One document for an instance: `database` is a part of each path, and its values are the palaces that the visitor may see.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from datasette import Response
from datasette.utils import tilde_encode

from .. import errors
from ..compat import may_view_instance
from ..version import __version__
from .access import cors_headers, reading_only
from .drawer_schemas import DRAWER_SCHEMAS
from .explored import EXPLORED
from .menus import visible_palaces
from .operation import JSON, Operation, described, operation_of
from .parameters import PARAMETERS, PATH_PARAMETERS
from .schemas import SCHEMAS, ref

_GROUP = re.compile(r"\(\?P<(\w+)>[^)]*\)")


@described(
    Operation(
        "The API described in OpenAPI: this document.", {"type": "object", "required": ["openapi", "paths"]}
    )
)
@reading_only
async def openapi_json(request: Any, datasette: Any) -> Any:
    """The document, for whoever may see the instance or a palace."""
    from . import ROUTES

    headers = cors_headers(datasette)
    names = await visible_palaces(datasette, request.actor)
    if not names and not await may_view_instance(datasette, request.actor):
        problem = errors.NotAllowed("You may not see this instance.")
        return Response.json(problem.as_json(), status=problem.status, headers=headers)
    routes = [tilde_encode(datasette.get_database(name).route or name) for name in names]
    server = str(datasette.absolute_url(request, datasette.urls.path("")))
    return Response.json(document(ROUTES, server, routes), headers=headers)


def document(
    routes: Iterable[tuple[str, Any]], server: str = "/", palaces: Iterable[str] = ()
) -> dict[str, Any]:
    """The OpenAPI document.

    Args:
        routes: patterns and views; those that carry an operation are described.
        server: the URL that the paths begin at.
        palaces: the values that `database` may have; none leaves it open.
    """
    names = list(palaces)
    path_parameters = {**PATH_PARAMETERS}
    if names:
        path_parameters["database"] = {
            **PATH_PARAMETERS["database"],
            "schema": {"type": "string", "enum": names},
        }
    described_routes = [
        (path_of(pattern), operation) for pattern, view in routes if (operation := operation_of(view))
    ]
    used = {name for _, operation in described_routes for name in operation.parameters}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "datasette-mempalace",
            "version": __version__,
            "description": "Search memory palaces: drawers of verbatim texts, by meaning and by words.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server.rstrip("/") or "/"}],
        "paths": {path: {"get": _operation(path, operation)} for path, operation in described_routes},
        "components": {
            "parameters": path_parameters
            | {name: parameter for name, parameter in PARAMETERS.items() if name in used},
            "schemas": SCHEMAS | DRAWER_SCHEMAS | EXPLORED,
        },
    }


def path_of(pattern: str) -> str:
    """A route's regular expression as a path of OpenAPI: named groups become `{name}`."""
    return _GROUP.sub(r"{\1}", pattern).strip("^$").replace("\\", "")


def _operation(path: str, operation: Operation) -> dict[str, Any]:
    names = [*re.findall(r"{(\w+)}", path), *operation.parameters]
    schema = ref(operation.answer) if isinstance(operation.answer, str) else operation.answer
    answer: dict[str, Any] = {
        "description": operation.summary,
        "content": {operation.media_type: {"schema": schema}},
    }
    if operation.headers:
        answer["headers"] = {
            name: {"description": description, "schema": {"type": "string"}}
            for name, description in operation.headers.items()
        }
    return {
        "operationId": re.sub(r"\W+", "_", path).strip("_"),
        "summary": operation.summary,
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in names],
        "responses": {"200": answer, **_problems(operation)},
    }


def _problems(operation: Operation) -> dict[str, Any]:
    """The answers that are errors: one for each status that our exceptions have."""
    titles: dict[int, list[str]] = {}
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.MempalaceError):
            titles.setdefault(kind.status, []).append(kind.title)
    content = (
        {"text/plain": {"schema": {"type": "string"}}}
        if operation.text_errors
        else {JSON: {"schema": ref("Error")}}
    )
    return {
        str(status): {"description": ", or ".join(dict.fromkeys(titles[status])), "content": content}
        for status in sorted(titles)
    }
