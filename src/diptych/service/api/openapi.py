"""The OpenAPI document of the service, and the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from markupsafe import Markup, escape

from diptych.service.context import may_click, may_read, may_write
from diptych.service.problems import problem_response, problem_schema
from diptych.service.security.guards import CSRF_HEADER

DESCRIPTION = """Search pictures with words and words with pictures.

On the machine itself everyone may read. Writing needs the token of the service as bearer token, or the session of the
page with the CSRF header. Beyond the machine, reading needs one of them as well. Every error is a problem document as
in RFC 9457, whose type stays the same between versions and whose detail says what to do.
"""

TAGS = {
    "search": "Find pictures and texts, and ways to ask.",
    "items": "What is in a collection.",
    "albums": "What people keep: items under titles, and searches under names.",
    "exports": "Answers as a zip file, plain or as a gallery for a browser.",
    "uploads": "Pictures to search with.",
    "collections": "What can be searched.",
    "retrievers": "Search models of a collection.",
    "rehearsals": "Another search model on the collection's own questions, before anything is changed.",
    "jobs": "Long work: indexing, training, drawing maps.",
    "explanations": "Why an answer is there.",
    "maps": "A collection in the plane.",
    "clicks": "What people used, kept on this machine.",
    "query log": "What was asked, how often, and what found nothing.",
    "interleaving": "Two search models that answer together, and whose answers are clicked.",
    "learning": "What was learned from clicks, and the way back.",
    "session": "Signing in to the page.",
    "operations": "Whether the service lives and how it does.",
}

_EVERYWHERE = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "This may not be done here.",
    421: "The service is not addressed by a name of its own.",
    429: "Too much at once; the header Retry-After says when to try again.",
    503: "The collection is being written, or the service is starting; try again.",
}
_WITH_BODY = {
    408: "The body did not arrive in time.",
    413: "The body or the picture in it is too large.",
    415: "This kind of content is not understood here.",
}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of an application, complete with errors, security and summaries."""
    if app.openapi_schema is None:
        app.openapi_schema = _document(app)
    return app.openapi_schema


def openapi_page(app: FastAPI) -> str:
    """Return the document as a page to read, which needs nothing from elsewhere and no script."""
    if getattr(app.state, "openapi_page", None) is None:
        from jinja2 import Environment, PackageLoader

        pages = Environment(
            loader=PackageLoader("diptych.service.page", ""), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        document = openapi_document(app)
        groups = [
            {**tag, "anchor": tag["name"].replace(" ", "-"), "calls": list(_calls(document, tag["name"]))}
            for tag in document["tags"]
        ]
        page = pages.get_template("api.html.j2")
        app.state.openapi_page = page.render(document=document, groups=groups, kind=_kind)
    return str(app.state.openapi_page)


def _calls(document: dict[str, Any], tag: str) -> Iterator[dict[str, Any]]:
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            if tag in operation["tags"]:
                yield {"verb": verb.upper(), "path": path, "operation": operation}


def _kind(schema: Mapping[str, Any]) -> Markup:
    """Return in words what a schema asks for, with a link to what has a name.

    >>> from diptych.service.api.openapi import _kind
    >>> print(_kind({"type": "array", "items": {"type": "integer"}}), _kind({"enum": [1, 2]}))
    list of integer 1 or 2
    """
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return Markup(" or ").join(_kind(part) for part in schema[word])
    if "enum" in schema or "const" in schema:
        return Markup(" or ").join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return Markup("list of {}").format(_kind(schema.get("items", {})))
    kind = schema.get("type", "anything")
    return escape(" or ".join(kind) if isinstance(kind, list) else kind)


def _document(app: FastAPI) -> dict[str, Any]:
    routes = [route for route in app.routes if isinstance(route, APIRoute) and route.include_in_schema]
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=DESCRIPTION,
        routes=app.routes,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    used = {tag for route in routes for tag in route.tags}
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    for route in routes:
        for method in route.methods or ():
            _complete(document["paths"][route.path_format][method.lower()], route)
    components = document["components"]
    schemas = components["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = problem_schema()
    for schema in schemas.values():
        # What the docstrings of the library say to programmers goes on in further paragraphs.
        schema["description"] = schema.get("description", "").partition("\n\n")[0]
    cookie = app.state.context.credentials.sessions.cookie_name
    csrf = "What GET /v1/session gives to the page, against forged requests."
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "The token of the service."},
        "page": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "The session of the page."},
        "csrf": {"type": "apiKey", "in": "header", "name": CSRF_HEADER, "description": csrf},
    }
    return document


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    described = operation.get("description", "").strip()
    if route.summary is None and described:
        operation["summary"] = described.partition(";")[0].partition(". ")[0].removesuffix(".")
    responses = operation["responses"]
    if "HTTPValidationError" in str(responses.get("422")):
        del responses["422"]
    for status, text in _problems(operation).items():
        responses.setdefault(str(status), problem_response(text))
    guards = {guard.dependency for guard in route.dependencies}
    if guards & {may_write, may_click}:
        operation["security"] = [{"token": []}, {"page": [], "csrf": []}]
    elif may_read in guards:
        operation["security"] = [{}, {"token": []}, {"page": []}]


def _problems(operation: dict[str, Any]) -> dict[int, str]:
    parameters = operation.get("parameters", [])
    found = dict(_EVERYWHERE)
    if any(parameter["in"] == "path" for parameter in parameters):
        found[404] = "There is no such thing."
    if parameters or "requestBody" in operation:
        found[422] = "The request does not make sense; the detail says why."
    # Any request may come with a body that is too large, wanted or not.
    return found | _WITH_BODY
