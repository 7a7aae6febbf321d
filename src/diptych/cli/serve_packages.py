"""The packages that only serving needs."""

from __future__ import annotations

from importlib.util import find_spec

from diptych.errors import MissingPackageError

_PACKAGES = ("fastapi", "httpx", "prometheus_client", "python_multipart", "uvicorn")


def check_packages() -> None:
    """Raise where one of them is not installed."""
    if any(find_spec(package) is None for package in _PACKAGES):
        raise MissingPackageError("serving", "'diptych[serve]'")
