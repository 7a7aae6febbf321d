"""The methods that an address takes."""

from __future__ import annotations

from fastapi import Request
from starlette.routing import Route


def allowed_methods(request: Request) -> str:
    """Return what the header Allow says of an address: the methods of all its routes, not of the first alone."""
    path = request.scope["path"]
    routes = (route for router in request.app.state.routers for route in router.routes if isinstance(route, Route))
    methods = {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
    return ", ".join(sorted(methods))
