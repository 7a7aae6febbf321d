"""Requests of the client to a service, and its problem documents as errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from diptych.errors import DiptychError


class ServiceError(DiptychError):
    """A service answered with a problem document, or could not be reached.

    ``status`` is that of HTTP, 0 when there was no answer; ``problem`` is the whole document (RFC 9457), and ``kind``
    the last part of its type, which stays the same between versions.

    >>> from diptych.service.client import ServiceError
    >>> error = ServiceError(404, {"type": "/problems/no-such-item", "detail": "There is no item x."})
    >>> error.kind, str(error)
    ('no-such-item', 'There is no item x.')
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or f"the service answered with status {status}"))
        self.status = status
        self.problem = dict(problem)

    @property
    def kind(self) -> str:
        """What went wrong, as a name for programs."""
        return str(self.problem.get("type", "")).rpartition("/")[2]


DocumentT = TypeVar("DocumentT", bound=BaseModel)


class Connection:
    """Sends requests to one service and turns its problem documents into errors."""

    def __init__(self, url: str, token: str | None, seconds: float) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=seconds, trust_env=False)

    def close(self) -> None:
        """Let go of the network."""
        self._http.close()

    def send(self, method: str, address: str, *, accepted: int = 200, **content: Any) -> httpx.Response:
        """Return the answer to a request; anything but success and the ``accepted`` status is an error."""
        try:
            answer = self._http.request(method, address, **content)
        except httpx.HTTPError as problem:
            detail = f"{self._http.base_url} cannot be reached ({problem}); start it with `diptych serve`"
            raise ServiceError(0, {"type": "/problems/unreachable", "detail": detail}) from problem
        if answer.is_success or answer.status_code == accepted:
            return answer
        raise ServiceError(answer.status_code, _problem(answer))

    def read(self, kind: type[DocumentT], method: str, address: str, **content: Any) -> DocumentT:
        """Return the document that answers a request; members that a newer service adds are passed over."""
        return kind.model_validate(self.send(method, address, **content).json(), extra="ignore")


def address(*parts: str) -> str:
    """Return the address of a resource, each part of it as one step whatever it holds.

    >>> from diptych.service.client_connection import address
    >>> address("collections", "my photos", "items", "a/b")
    '/v1/collections/my%20photos/items/a%2Fb'
    """
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is not None, with truth values as addresses write them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in values.items()
        if value is not None
    }


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
