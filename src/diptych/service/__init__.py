"""The service: a REST API and a web page over collections, with a log of what was asked and clicked."""

from typing import TYPE_CHECKING, Any

from diptych.errors import MissingPackageError

if TYPE_CHECKING:
    from diptych.service.client import AsyncClient, Client, ServiceError

__all__ = ["AsyncClient", "Client", "ServiceError"]


# Imported when asked for: the processes of jobs import this package and talk to nobody.
def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from diptych.service import client
    except ModuleNotFoundError as problem:
        if (problem.name or "").startswith("diptych"):
            raise
        raise MissingPackageError("the client of the service", "'diptych[serve]'") from problem
    return getattr(client, name)
