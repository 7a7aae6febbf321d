"""The service from Python, with and without an event loop: each operation of the REST API is a method."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, overload
from urllib.parse import quote, urlsplit

import httpx
from pydantic import TypeAdapter

from diptych.collection.store.model_history import LearningRecord
from diptych.errors import DiptychError
from diptych.retriever.explaining.explanation import Explanation
from diptych.service import api
from diptych.service.clicks.interleavings import InterleavingReport
from diptych.service.clicks.reports import QueryReport
from diptych.service.jobs.store import Job
from diptych.service.security.tokens import TOKEN_VARIABLE, client_token

__all__ = ["AsyncClient", "Client", "ServiceError"]

ResultT = TypeVar("ResultT")
_POLL_SECONDS = 0.3


class ServiceError(DiptychError):
    """A service answered with a problem document, or could not be reached.

    ``status`` is that of HTTP, 0 when there was no answer; ``problem`` is the whole document (RFC 9457), and ``kind``
    the last part of its type, which stays the same between versions.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or f"the service answered with status {status}"))
        self.status = status
        self.problem = dict(problem)

    @property
    def kind(self) -> str:
        """What went wrong, as a name for programs."""
        return str(self.problem.get("type", "")).rpartition("/")[2]


class Operation(Generic[ResultT]):
    """An operation of the REST API as a method, which `AsyncClient` lets one await.

    What is given by position fills the braces of the address, then the ``names``. What is given by name are parameters
    of GET and DELETE, or members of the document that is sent. A path object is a file to send, beside which the other
    members go as the part ``beside``, or each as a part of its own. None is left out.
    """

    def __init__(self, result: type[ResultT], request: str, *names: str, beside: str | None = None) -> None:
        self.result = result
        self.method, self.path = request.split()
        self._names = names
        self._beside = beside

    @overload
    def __get__(self, client: Client, owner: Any) -> Callable[..., ResultT]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: Any) -> Callable[..., Awaitable[ResultT]]: ...
    @overload
    def __get__(self, client: None, owner: Any) -> Self: ...
    def __get__(self, client: Client | AsyncClient | None, owner: Any) -> Any:
        """Return the method of a client."""
        return self if client is None else partial(client.call, self)

    def request(self, collection: str | None, words: tuple[Any, ...], members: dict[str, Any]) -> dict[str, Any]:
        """Return what httpx sends."""
        braces = re.findall(r"\{\w+\}", self.path)
        path = "/v1/" + self.path if self.path[0] != "/" else self.path
        if len(words) < len(braces):
            raise TypeError(f"{self.method} {self.path} needs {', '.join(braces)}")
        for brace, word in zip(braces, words, strict=False):
            path = path.replace(brace, quote(str(word), safe=""))
        path = path.replace("/v1/~", "/v1/collections/" + quote(collection or "", safe=""))
        members = {**dict(zip(self._names, words[len(braces) :], strict=False)), **members}
        visitor = members.pop("visitor", None)
        headers = {} if visitor is None else {"X-Diptych-Visitor": visitor.encode()}
        members = {name: value for name, value in members.items() if value is not None}
        files = {name: value for name, value in members.items() if isinstance(value, os.PathLike)}
        content: dict[str, Any]
        if files:
            parts = {name: value for name, value in members.items() if name not in files}
            opened = {name: (Path(file).name, Path(file).read_bytes()) for name, file in files.items()}
            content = {"files": opened, "data": {self._beside: json.dumps(parts)} if self._beside else parts}
        else:
            content = {"params" if self.method in ("GET", "DELETE") else "json": members}
        return {"method": self.method, "url": path, "headers": headers, **content}

    def answer(self, response: httpx.Response) -> ResultT:
        """Return the result; members that a newer service adds are passed over. Raise what the service refuses."""
        if not response.is_success and not (
            self.result is api.operations.ReadinessDocument and response.status_code == 503
        ):
            try:
                problem = response.json()
            except ValueError:
                problem = None
            raise ServiceError(response.status_code, problem if isinstance(problem, dict) else {})
        found: Any = response.content if self.result is bytes else None
        if self.result not in (bytes, type(None)):
            found = TypeAdapter(self.result).validate_json(response.content, extra="ignore")
        return found  # type: ignore[no-any-return]


class Operations:
    """What both clients do: ``~`` in an address stands for the collection."""

    collections = Operation(api.collections.CollectionList, "GET collections")
    ready = Operation(api.operations.ReadinessDocument, "GET /ready")
    status = Operation(api.collections.CollectionDocument, "GET ~")

    search = Operation(api.search.SearchResponse, "POST ~/search", "query")  # or terms=[{"item": …}, …]
    search_picture = Operation(api.search.SearchResponse, "POST ~/search/picture", "picture")  # a path object
    explain = Operation(Explanation, "POST ~/explanations")
    facets = Operation(api.search.FacetList, "GET ~/facets", "filter")
    suggestions = Operation(api.search.SuggestionList, "GET ~/suggestions", "prefix")
    timeline = Operation(api.collections.Timeline, "GET ~/timeline", "filter")
    world = Operation(api.collections.WorldMap, "GET ~/world", "filter")
    upload = Operation(api.search.UploadDocument, "POST uploads", "picture")
    upload_preview = Operation(bytes, "GET uploads/{upload_id}")

    item_page = Operation(api.items.ItemList, "GET ~/items", "filter")
    item = Operation(api.items.ItemDocument, "GET ~/items/{item_id}")
    add = Operation(api.items.ItemDocument, "POST ~/items", "picture", beside="item")
    update = Operation(api.items.ItemDocument, "PATCH ~/items/{item_id}")
    remove = Operation(type(None), "DELETE ~/items/{item_id}")
    thumbnail = Operation(bytes, "GET ~/items/{item_id}/thumbnail")
    original = Operation(bytes, "GET ~/items/{item_id}/original")
    rendering = Operation(bytes, "GET ~/items/{item_id}/rendering")  # as every browser can show it
    neighbours = Operation(api.search.SearchResponse, "GET ~/items/{item_id}/neighbours")

    albums = Operation(api.albums.AlbumList, "GET ~/albums")
    album = Operation(api.albums.AlbumDocument, "GET ~/albums/{title}")
    album_page = Operation(api.items.ItemList, "GET ~/albums/{title}/items")
    set_album = Operation(api.albums.AlbumDocument, "PUT ~/albums/{title}", "items")
    change_album = Operation(api.albums.AlbumDocument, "PATCH ~/albums/{title}")
    delete_album = Operation(type(None), "DELETE ~/albums/{title}")
    saved_searches = Operation(api.albums.SavedSearchList, "GET ~/saved-searches")
    save_search = Operation(api.albums.SavedSearchDocument, "PUT ~/saved-searches/{name}", "query")
    run_saved_search = Operation(api.search.SearchResponse, "GET ~/saved-searches/{name}/answers")
    rename_saved_search = Operation(api.albums.SavedSearchDocument, "PATCH ~/saved-searches/{name}", "name")
    delete_saved_search = Operation(type(None), "DELETE ~/saved-searches/{name}")
    export = Operation(bytes, "GET ~/export", "q")  # a zip file of answers, of a filter, an album or a saved search

    retrievers = Operation(api.retrievers.RetrieverList, "GET ~/retrievers")
    activate_retriever = Operation(api.collections.CollectionDocument, "POST ~/retrievers/{name}/activate")
    remove_retriever = Operation(type(None), "DELETE ~/retrievers/{name}")
    rehearsals = Operation(api.rehearsals.RehearsalList, "GET ~/rehearsals")
    map = Operation(api.collections.MapDocument, "GET ~/map")  # a job of kind "map" draws it
    learning = Operation(api.retrievers.LearningDocument, "GET ~/learning")
    roll_back = Operation(LearningRecord, "POST ~/learning/rollback")

    start = Operation(Job, "POST ~/jobs", "kind")
    jobs = Operation(api.jobs.JobList, "GET ~/jobs")
    job = Operation(Job, "GET ~/jobs/{job_id}")
    cancel = Operation(Job, "DELETE ~/jobs/{job_id}")

    click = Operation(api.clicks.ClickReceipt, "POST ~/clicks")
    clicks = Operation(bytes, "GET ~/clicks", "format")
    forget = Operation(type(None), "DELETE ~/clicks")
    query_log = Operation(QueryReport, "GET ~/query-log")
    interleave = Operation(InterleavingReport, "POST ~/interleaving", "a", "b")
    interleavings = Operation(api.clicks.InterleavingList, "GET ~/interleaving")
    stop_interleaving = Operation(InterleavingReport, "DELETE ~/interleaving")

    _connect: Callable[..., Any]

    def __init__(
        self,
        url: str = "http://127.0.0.1:8765",
        token: str | None = None,
        collection: str | None = None,
        *,
        seconds: float = 60,
    ) -> None:
        if token is None:
            # The token of this machine's service is never sent elsewhere.
            is_here = urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
            token = client_token() if is_here else os.environ.get(TOKEN_VARIABLE)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.collection = collection
        self._http = self._connect(base_url=url, headers=headers, timeout=seconds, trust_env=False)

    def _only_collection(self, names: list[str]) -> str:
        if len(names) != 1:
            detail = f"the service has the collections {', '.join(names)}; name one: collection=..."
            raise ServiceError(0, {"type": "/problems/which-collection", "detail": detail})
        return names[0]

    def _unreachable(self, problem: httpx.HTTPError) -> ServiceError:
        detail = f"{self._http.base_url} cannot be reached ({problem}); start it with `diptych serve`"
        return ServiceError(0, {"type": "/problems/unreachable", "detail": detail})


class Client(Operations):
    """A service of `diptych serve` from Python.

    Parameters
    ----------
    url :
        Where the service listens.
    token :
        What lets programs write; by default ``DIPTYCH_TOKEN``, or the token of the user's own service.
    collection :
        The name of the collection that methods mean; needed only where a service has several.
    seconds :
        How long to wait for an answer.

    Examples
    --------
    ``Client().search("a dog on the beach").answers[0].id`` is the best answer of the only collection. Errors are
    :class:`ServiceError`, with the problem document of the service:

    >>> from diptych.service import Client, ServiceError
    >>> with Client("http://127.0.0.1:1", token="secret") as client:
    ...     try:
    ...         client.search("a dog")
    ...     except ServiceError as error:
    ...         print(error.kind)
    unreachable
    """

    _connect = httpx.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the service."""
        self._http.close()

    def call(self, operation: Operation[ResultT], *words: Any, **members: Any) -> ResultT:
        """Ask the service for an operation."""
        if "~" in operation.path and self.collection is None:
            self.collection = self._only_collection([one.name for one in self.collections().collections])
        try:
            return operation.answer(self._http.request(**operation.request(self.collection, words, members)))
        except httpx.HTTPError as problem:
            raise self._unreachable(problem) from problem

    def items(
        self, filter: str | None = None, *, album: str | None = None, **how: Any
    ) -> Iterator[api.items.ItemDocument]:
        """Yield the items that meet a filter, the latest first, or those of an album in its order."""
        cursor = None
        while True:
            how["cursor"] = cursor
            page = self.item_page(filter, **how) if album is None else self.album_page(album, **how)
            yield from page.items
            cursor = page.next
            if cursor is None:
                return

    def wait(
        self,
        job: Job | str,
        progress: Callable[[Job], object] = lambda found: None,
        *,
        seconds: float = 3600.0,
    ) -> Job:
        """Return a job when it is over; ``progress`` is told how far it has come."""
        name, deadline = job if isinstance(job, str) else job.id, time.monotonic() + seconds
        while (found := self.job(name)).state in ("waiting", "running") and time.monotonic() < deadline:
            progress(found)
            time.sleep(_POLL_SECONDS)
        progress(found)
        return found


class AsyncClient(Operations):
    """The same with an event loop: ``found = await client.search("a dog on the beach")``."""

    _connect = httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def call(self, operation: Operation[ResultT], *words: Any, **members: Any) -> ResultT:
        """Ask the service for an operation."""
        if "~" in operation.path and self.collection is None:
            self.collection = self._only_collection([one.name for one in (await self.collections()).collections])
        try:
            return operation.answer(await self._http.request(**operation.request(self.collection, words, members)))
        except httpx.HTTPError as problem:
            raise self._unreachable(problem) from problem
