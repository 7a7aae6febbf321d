"""The service from Python, with and without an event loop: each operation of the REST API is a method."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast, overload
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

ResultT = TypeVar("ResultT")
SERVICE_URL = "http://127.0.0.1:8765"
POLL_SECONDS = 0.3


class ServiceError(DiptychError):
    """A service answered with a problem document, or could not be reached.

    ``status`` is that of HTTP, 0 when there was no answer; ``kind`` is the last part of the type of the document
    (RFC 9457), which stays the same between versions.
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind


class Operation(Generic[ResultT]):
    """An operation of the REST API as a method, which `AsyncClient` lets one await.

    Positional arguments fill the braces of the address, then the ``names``; others are parameters of GET and DELETE,
    or members of the document. Beside a path object, which is a file to send, they go as one part, ``beside``, or each
    as a part of its own. None is left out.
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
        return self if client is None else partial(client._call, self)

    def request(self, collection: str | None, words: tuple[Any, ...], members: dict[str, Any]) -> dict[str, Any]:
        """Return what httpx sends."""
        braces = re.findall(r"{\w+}", self.path)
        if len(words) < len(braces):
            raise TypeError(f"{self.method} {self.path} needs {', '.join(braces)}")
        path = self.path if self.path[0] == "/" else f"/v1/{self.path}"
        for brace, word in zip(braces, words, strict=False):
            path = path.replace(brace, quote(str(word), safe=""))
        given = {**dict(zip(self._names, words[len(braces) :], strict=False)), **members}
        visitor = given.pop("visitor", None)
        path = path.replace("~", f"collections/{quote(collection or '', safe='')}")
        parts = {name: value for name, value in given.items() if value is not None}
        files = {name: parts.pop(name) for name, value in given.items() if isinstance(value, os.PathLike)}
        content: dict[str, Any] = {"params" if self.method in ("GET", "DELETE") else "json": parts}
        if files:
            opened = {name: (Path(file).name, Path(file).read_bytes()) for name, file in files.items()}
            content = {"files": opened, "data": {self._beside: json.dumps(parts)} if self._beside else parts}
        headers = {} if visitor is None else {"X-Diptych-Visitor": visitor.encode()}
        return {"method": self.method, "url": path, "headers": headers, **content}

    def answer(self, response: httpx.Response) -> ResultT:
        """Return the result; members that a newer service adds are passed over. Raise what the service refuses."""
        if not response.is_success and (response.status_code, self.path) != (503, "/ready"):
            with suppress(ValueError, LookupError, TypeError):
                problem = response.json()
                raise ServiceError(response.status_code, problem["type"].rpartition("/")[2], problem["detail"])
            raise ServiceError(response.status_code, "", f"the service answered with status {response.status_code}")
        if self.result in (bytes, type(None)):
            return cast(ResultT, response.content if self.result is bytes else None)
        return TypeAdapter(self.result).validate_json(response.content, extra="ignore")


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
    add = Operation(api.items.ItemDocument, "POST ~/items/picture", "picture", beside="item")
    add_text = Operation(api.items.ItemDocument, "POST ~/items", "captions")
    update = Operation(api.items.ItemDocument, "PATCH ~/items/{item_id}")
    remove = Operation(type(None), "DELETE ~/items/{item_id}")
    thumbnail = Operation(bytes, "GET ~/items/{item_id}/thumbnail")
    original = Operation(bytes, "GET ~/items/{item_id}/original")
    rendering = Operation(bytes, "GET ~/items/{item_id}/rendering")  # as every browser can show it
    albums = Operation(api.albums.AlbumList, "GET ~/albums")
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
        self, url: str = SERVICE_URL, token: str | None = None, collection: str | None = None, *, seconds: float = 60
    ) -> None:
        if token is None:
            # The token of this machine's service is never sent elsewhere.
            is_here = urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
            token = client_token() if is_here else os.environ.get(TOKEN_VARIABLE)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.collection = collection
        self._http = self._connect(base_url=url, headers=headers, timeout=seconds, trust_env=False)

    def _name_only(self, found: api.collections.CollectionList) -> None:
        names = [one.name for one in found.collections]
        if len(names) != 1:
            detail = f"the service has the collections {', '.join(names)}; name one: collection=..."
            raise ServiceError(0, "which-collection", detail)
        self.collection = names[0]

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as problem:
            detail = f"{self._http.base_url} cannot be reached ({problem}); start it with `diptych serve`"
            raise ServiceError(0, "unreachable", detail) from problem


class Client(Operations):
    """A service of `diptych serve` from Python: ``Client().search("a dog on the beach").answers[0].id``.

    The ``token`` lets programs write; by default it is ``DIPTYCH_TOKEN``, or that of the user's own service. The
    ``collection`` is needed only where a service has several. After ``seconds`` without an answer a method gives up.

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
        self._http.close()

    def _call(self, operation: Operation[ResultT], *words: Any, **members: Any) -> ResultT:
        if "~" in operation.path and self.collection is None:
            self._name_only(self.collections())
        with self._reaching():
            return operation.answer(self._http.request(**operation.request(self.collection, words, members)))

    def items(
        self, filter: str | None = None, *, album: str | None = None, **how: Any
    ) -> Iterator[api.items.ItemDocument]:
        """Yield the items that meet a filter, the latest first, or those of an album in its order."""
        next_page = partial(self.item_page, filter) if album is None else partial(self.album_page, album)
        page = next_page(**how)
        yield from page.items
        while page.next is not None:
            page = next_page(cursor=page.next, **how)
            yield from page.items

    def wait(self, job: Job, progress: Callable[[Job], object] = lambda found: None) -> Job:
        """Return a job when it is over; ``progress`` is told how far it has come."""
        while not (found := self.job(job.id)).is_over:
            progress(found)
            time.sleep(POLL_SECONDS)
        progress(found)
        return found


class AsyncClient(Operations):
    """The same with an event loop: ``found = await client.search("a dog on the beach")``."""

    _connect = httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def _call(self, operation: Operation[ResultT], *words: Any, **members: Any) -> ResultT:
        if "~" in operation.path and self.collection is None:
            self._name_only(await self.collections())
        with self._reaching():
            return operation.answer(await self._http.request(**operation.request(self.collection, words, members)))
