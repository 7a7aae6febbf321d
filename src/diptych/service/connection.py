"""The connection of a client to a service: addresses, documents, and problems as errors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel

from diptych.errors import DiptychError
from diptych.service.schemas.collections import CollectionDocument, CollectionList
from diptych.service.security.tokens import TOKEN_VARIABLE, client_token

DocumentT = TypeVar("DocumentT", bound=BaseModel)


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


class Connection:
    """Sends requests to a service, and reads its documents."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8765",
        token: str | None = None,
        collection: str | None = None,
        *,
        seconds: float = 60.0,
    ) -> None:
        if token is None:
            # The token of this machine's service is never sent elsewhere.
            is_here = urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
            token = client_token() if is_here else os.environ.get(TOKEN_VARIABLE)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=seconds, trust_env=False)
        self._collection = collection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the service."""
        self._http.close()

    def collections(self) -> list[CollectionDocument]:
        """Return the collections of the service."""
        return self._read(CollectionList, "GET", address("collections")).collections

    def _at(self, *parts: str) -> str:
        """Return the address of a resource of the collection."""
        if self._collection is None:
            names = [collection.name for collection in self.collections()]
            if len(names) != 1:
                known = ", ".join(names) or "(none)"
                detail = f"the service has the collections {known}; name one: Client(collection=...)"
                raise ServiceError(0, {"type": "/problems/which-collection", "detail": detail})
            self._collection = names[0]
        return address("collections", self._collection, *parts)

    def _read(self, kind: type[DocumentT], method: str, address: str, **content: Any) -> DocumentT:
        """Return the document that answers a request; members that a newer service adds are passed over."""
        return kind.model_validate(self._send(method, address, **content).json(), extra="ignore")

    def _send_picture(
        self,
        kind: type[DocumentT],
        address: str,
        picture: str | os.PathLike[str],
        data: Mapping[str, Any],
        **content: Any,
    ) -> DocumentT:
        with open(picture, "rb") as file:
            files = {"picture": (Path(picture).name, file)}
            return self._read(kind, "POST", address, files=files, data=data, **content)

    def _send(self, method: str, address: str, *, accepted: int = 200, **content: Any) -> httpx.Response:
        """Return the answer to a request, sent without what is None; other statuses than success are errors."""
        for part in content.keys() & {"params", "json", "data"}:
            content[part] = without_none(content[part])
        with self._problems():
            answer = self._http.request(method, address, **content)
        if not (answer.is_success or answer.status_code == accepted):
            raise _error(answer)
        return answer

    def _stream(self, address: str, params: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield what a long answer brings, as it comes."""
        with self._problems(), self._http.stream("GET", address, params=without_none(params)) as answer:
            if not answer.is_success:
                answer.read()
                raise _error(answer)
            yield from answer.iter_bytes()

    @contextmanager
    def _problems(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as problem:
            detail = f"{self._http.base_url} cannot be reached ({problem}); start it with `diptych serve`"
            raise ServiceError(0, {"type": "/problems/unreachable", "detail": detail}) from problem


def _error(answer: httpx.Response) -> ServiceError:
    try:
        document = answer.json()
    except ValueError:
        document = None
    return ServiceError(answer.status_code, document if isinstance(document, dict) else {})


def address(*parts: str) -> str:
    """Return the address of a resource, each part of it as one step whatever it holds."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has a value."""
    return {name: value for name, value in values.items() if value is not None}
