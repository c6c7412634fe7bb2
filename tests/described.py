"""Holding an answer of the JSON API against its published description."""

import json
from functools import cache

from jsonschema import Draft202012Validator

from datasette_mempalace.views import ROUTES
from datasette_mempalace.views.openapi import document


def check(path, response):
    """Fail where an answer is not what the document says of a path, which stands there as in the document."""
    media_type = response.headers["content-type"].partition(";")[0]
    if media_type == "application/x-ndjson":
        values = [json.loads(line) for line in response.text.splitlines()]
    else:
        values = [response.json() if media_type == "application/json" else response.text]
    for value in values:
        validator(path, str(response.status_code), media_type).validate(value)


@cache
def validator(path, status, media_type):
    """Of one kind of answer; a status or type that is not described is an AssertionError."""
    said = document(ROUTES)
    responses = said["paths"][path]["get"]["responses"]
    assert status in responses, f"{path} answered {status}"
    content = responses[status]["content"]
    assert media_type in content, f"{path} answered {status} as {media_type}"
    schema = {**complete(content[media_type]["schema"]), "components": complete(said["components"])}
    return Draft202012Validator(schema)


def complete(schema):
    """A schema that allows no key but those it names: the description must not leave one out."""
    if isinstance(schema, list):
        return [complete(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: complete(value) for key, value in schema.items()}
    return {"additionalProperties": False, **strict} if "properties" in schema else strict
