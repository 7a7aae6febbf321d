"""The service from Python: everything it can do, as methods."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel

from diptych.errors import DiptychError
from diptych.service.clicks.exports import ExportFormat
from diptych.service.clicks.records import ClickKind
from diptych.service.jobs.store import JobKind
from diptych.service.schemas.clicks import InterleavingDocument, InterleavingList, QueryLogDocument
from diptych.service.schemas.collections import (
    AlbumDocument,
    AlbumList,
    CollectionDocument,
    CollectionList,
    ItemDocument,
    ItemList,
    MapCellDocument,
    MapDocument,
    PeriodDocument,
    SavedSearchDocument,
    SavedSearchList,
    Timeline,
    VersionList,
    WorldMap,
)
from diptych.service.schemas.jobs import JobDocument, JobList, ReadinessDocument, RehearsalDocument, RehearsalList
from diptych.service.schemas.retrievers import LearningDocument, LearningStep, RetrieverList
from diptych.service.schemas.search import (
    AnswerDocument,
    ExplanationDocument,
    FacetDocument,
    FacetList,
    SearchResponse,
    SuggestionDocument,
    SuggestionList,
    UploadDocument,
)
from diptych.service.security.tokens import TOKEN_VARIABLE, client_token

if TYPE_CHECKING:
    from diptych.collection.searching.request import Target
    from diptych.collection.store.listing import Order

__all__ = ["Client", "ServiceError"]

Term = Mapping[str, Any]
QueryInput = str | os.PathLike[str] | Sequence[Term]
_POLL_SECONDS = 0.3


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


class Client:
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

    def ready(self) -> ReadinessDocument:
        """Say of each collection whether it can be searched."""
        # A service that is not ready says so with this status and the same document.
        return ReadinessDocument.model_validate(self._send("GET", "/ready", accepted=503).json(), extra="ignore")

    def status(self) -> CollectionDocument:
        """Return what is in the collection and how it is searched."""
        return self._get(CollectionDocument)

    def search(self, asked: QueryInput, *, visitor: str | None = None, **options: Any) -> SearchResponse:
        """Find pictures or texts.

        ``asked`` is a string of the query language, the path object of a picture, which is sent along, or terms: each a
        mapping with one of ``text``, ``item`` and ``upload``, and perhaps a ``weight``. ``options`` are those of the
        REST API: ``limit=10``, ``filter="label:dog"``, ``sort="taken"`` and so on. A program that searches for many
        people tells them apart by ``visitor``, any words.
        """
        headers = {} if visitor is None else {"X-Diptych-Visitor": visitor.encode()}
        if isinstance(asked, os.PathLike):
            return self._send_picture(SearchResponse, self._at("search", "picture"), asked, options, headers=headers)
        body = options | _query_body(asked)
        return self._read(SearchResponse, "POST", self._at("search"), json=body, headers=headers)

    def history(self) -> VersionList:
        """Return the versions of the items that ``as_of`` takes, the latest first."""
        return self._get(VersionList, "history")

    def keep_history(self, days: float) -> VersionList:
        """Choose for how many days items that were changed or removed are kept as they were."""
        return self._read(VersionList, "PUT", self._at("history"), json={"kept_days": days})

    def albums(self) -> list[AlbumDocument]:
        """Return the albums with the ids of their items."""
        return self._get(AlbumList, "albums").albums

    def album(self, title: str) -> AlbumDocument:
        """Return an album with the ids of its items."""
        return self._get(AlbumDocument, "albums", title)

    def album_items(self, title: str, *, page: int = 200) -> Iterator[ItemDocument]:
        """Yield the items of an album in its order."""
        yield from self._pages(self._at("albums", title, "items"), {}, page)

    def set_album(self, title: str, items: Sequence[str]) -> AlbumDocument:
        """Let an album have these items, in this order; one that is not there yet is made."""
        return self._read(AlbumDocument, "PUT", self._at("albums", title), json={"items": list(items)})

    def change_album(
        self, title: str, *, add: Sequence[str] = (), remove: Sequence[str] = (), new_title: str | None = None
    ) -> AlbumDocument:
        """Put items into an album, take some out, or give it another title."""
        change = {"add": list(add) or None, "remove": list(remove) or None, "title": new_title}
        return self._read(AlbumDocument, "PATCH", self._at("albums", title), json=change)

    def delete_album(self, title: str) -> None:
        """Delete an album; its items stay in the collection."""
        self._send("DELETE", self._at("albums", title))

    def saved_searches(self) -> list[SavedSearchDocument]:
        """Return the saved searches."""
        return self._get(SavedSearchList, "saved-searches").searches

    def save_search(self, name: str, query: str = "", **how: Any) -> SavedSearchDocument:
        """Save a search: ``filter``, ``target``, ``mode``, ``retriever`` and ``min_probability`` as in a search."""
        return self._read(SavedSearchDocument, "PUT", self._at("saved-searches", name), json={"query": query, **how})

    def run_saved_search(self, name: str, *, limit: int = 30, offset: int = 0) -> SearchResponse:
        """Ask a saved search anew."""
        return self._get(SearchResponse, "saved-searches", name, "answers", limit=limit, offset=offset)

    def rename_saved_search(self, name: str, new: str) -> SavedSearchDocument:
        """Give a saved search another name."""
        return self._read(SavedSearchDocument, "PATCH", self._at("saved-searches", name), json={"name": new})

    def delete_saved_search(self, name: str) -> None:
        """Delete a saved search."""
        self._send("DELETE", self._at("saved-searches", name))

    def download(self, target: str | os.PathLike[str], *, q: str | None = None, **how: Any) -> None:
        """Write answers to a zip file: those to ``q``, or of a ``filter``, an ``album`` or a ``saved`` search.

        ``kind="gallery"`` makes it a page for a browser; ``keep_metadata``, ``title`` and ``limit`` as on the
        command line.
        """
        with open(target, "wb") as file:
            for block in self._stream(self._at("export"), {"q": q, **how}):
                file.write(block)

    def upload(self, picture: str | os.PathLike[str]) -> UploadDocument:
        """Send a picture to search with; its id serves as ``upload`` of a term."""
        return self._send_picture(UploadDocument, address("uploads"), picture, {})

    def upload_preview(self, upload_id: str) -> bytes:
        """Return a small JPEG of a picture that was sent."""
        return self._send("GET", address("uploads", upload_id)).content

    def facets(self, filter: str | None = None, *, limit: int = 10) -> list[FacetDocument]:
        """Return what a search can be narrowed down by."""
        return self._get(FacetList, "facets", filter=filter, limit=limit).facets

    def timeline(self, filter: str | None = None) -> list[PeriodDocument]:
        """Return how many items were taken in each month."""
        return self._get(Timeline, "timeline", filter=filter).periods

    def world(self, filter: str | None = None, **corners: float) -> list[MapCellDocument]:
        """Return where items were taken, in the whole world or between ``south``, ``west``, ``north`` and ``east``."""
        return self._get(WorldMap, "world", filter=filter, **corners).cells

    def suggestions(self, prefix: str, *, limit: int = 8) -> list[SuggestionDocument]:
        """Return ways to go on with what has been typed."""
        return self._get(SuggestionList, "suggestions", prefix=prefix, limit=limit).suggestions

    def items(
        self,
        filter: str | None = None,
        *,
        sort: Order = "added",
        order: Literal["asc", "desc"] | None = None,
        page: int = 200,
        as_of: str | None = None,
    ) -> Iterator[ItemDocument]:
        """Yield the items that meet a filter, by default the latest first, and names from A to Z."""
        asked = {"filter": filter, "sort": sort, "order": order, "as_of": as_of}
        yield from self._pages(self._at("items"), asked, page)

    def _pages(self, address: str, asked: Mapping[str, Any], page: int) -> Iterator[ItemDocument]:
        found = self._read(ItemList, "GET", address, params={**asked, "limit": page})
        yield from found.items
        while found.next is not None:
            found = self._read(ItemList, "GET", address, params={**asked, "limit": page, "cursor": found.next})
            yield from found.items

    def item(self, item_id: str, *, as_of: str | None = None) -> ItemDocument:
        """Return what is known of an item."""
        return self._get(ItemDocument, "items", item_id, as_of=as_of)

    def add(
        self,
        picture: str | os.PathLike[str] | None = None,
        *,
        captions: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
    ) -> ItemDocument:
        """Add a picture with what is known of it, or a text, which is then its captions."""
        described = {"captions": captions, "labels": labels, "metadata": metadata, "id": id}
        if picture is None:
            return self._read(ItemDocument, "POST", self._at("items"), json=described)
        data = {"item": json.dumps(without_none(described))}
        return self._send_picture(ItemDocument, self._at("items"), picture, data)

    def update(
        self,
        item_id: str,
        *,
        captions: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> ItemDocument:
        """Replace captions, labels or metadata of an item; what is None stays."""
        change = {"captions": captions, "labels": labels, "metadata": metadata}
        return self._read(ItemDocument, "PATCH", self._at("items", item_id), json=change)

    def remove(self, item_id: str) -> None:
        """Remove an item; its file stays where it is, unless it was sent to the service."""
        self._send("DELETE", self._at("items", item_id))

    def thumbnail(self, item_id: str) -> bytes:
        """Return a small JPEG of the picture of an item."""
        return self._send("GET", self._at("items", item_id, "thumbnail")).content

    def original(self, item_id: str) -> bytes:
        """Return the picture file of an item, of a moment the video."""
        return self._send("GET", self._at("items", item_id, "original")).content

    def rendering(self, item_id: str) -> bytes:
        """Return the picture of an item as every browser can show it."""
        return self._send("GET", self._at("items", item_id, "rendering")).content

    def neighbours(
        self, item_id: str, *, target: Target = "images", limit: int = 12, retriever: str | None = None
    ) -> SearchResponse:
        """Find what resembles an item."""
        return self._get(
            SearchResponse, "items", item_id, "neighbours", target=target, limit=limit, retriever=retriever
        )

    def explain(
        self,
        asked: str | Sequence[Term],
        item_id: str,
        *,
        caption_id: str | None = None,
        target: Target = "images",
        retriever: str | None = None,
    ) -> ExplanationDocument:
        """Say why an item answers a query."""
        answer = {"item": item_id, "caption_id": caption_id, "target": target, "retriever": retriever}
        return self._read(ExplanationDocument, "POST", self._at("explanations"), json=_query_body(asked) | answer)

    def map(self, retriever: str | None = None) -> MapDocument:
        """Return the map of the collection; a job of kind ``map`` draws it."""
        return self._get(MapDocument, "map", retriever=retriever)

    def retrievers(self) -> RetrieverList:
        """Return the retrievers of the collection, and those that can be added by name."""
        return self._get(RetrieverList, "retrievers")

    def add_retriever(self, name: str) -> JobDocument:
        """Start the job that adds a retriever beside the active one."""
        return self._read(JobDocument, "POST", self._at("retrievers"), json={"name": name})

    def activate_retriever(self, name: str) -> CollectionDocument:
        """Let searches use a retriever from now on."""
        return self._read(CollectionDocument, "POST", self._at("retrievers", name, "activate"))

    def remove_retriever(self, name: str) -> None:
        """Forget a retriever and its points."""
        self._send("DELETE", self._at("retrievers", name))

    def rehearse(self, name: str, **settings: Any) -> JobDocument:
        """Start the job that tries a retriever beside the active one; ``settings`` are those of the request."""
        return self._read(JobDocument, "POST", self._at("rehearsals"), json={"retriever": name, **settings})

    def rehearsals(self) -> list[RehearsalDocument]:
        """Return what came out of each retriever that was tried, the latest first."""
        return self._get(RehearsalList, "rehearsals").rehearsals

    def start(self, kind: JobKind, **parameters: Any) -> JobDocument:
        """Start a job: ``index``, ``train``, ``learn``, ``reencode``, ``map``, ``retriever`` or ``rehearse``."""
        return self._read(JobDocument, "POST", self._at("jobs"), json={"kind": kind, "parameters": parameters})

    def jobs(self, *, limit: int = 50) -> list[JobDocument]:
        """Return jobs, the newest first."""
        return self._get(JobList, "jobs", limit=limit).jobs

    def job(self, job_id: str) -> JobDocument:
        """Return how far a job has come."""
        return self._get(JobDocument, "jobs", job_id)

    def cancel(self, job_id: str) -> JobDocument:
        """Cancel a job; what it has added stays."""
        return self._read(JobDocument, "DELETE", self._at("jobs", job_id))

    def wait(
        self, job: JobDocument | str, progress: Callable[[JobDocument], None] | None = None, *, seconds: float = 3600.0
    ) -> JobDocument:
        """Return a job when it is over; ``progress`` is told whenever it has come further."""
        name = job if isinstance(job, str) else job.id
        deadline = time.monotonic() + seconds
        last = None
        while True:
            found = self.job(name)
            if progress is not None and found != last:
                progress(found)
            last = found
            if found.state not in ("waiting", "running"):
                return found
            if time.monotonic() > deadline:
                detail = f"job {name} is still {found.state} after {seconds:g} s; wait again, or cancel it"
                raise ServiceError(0, {"type": "/problems/still-running", "detail": detail})
            time.sleep(_POLL_SECONDS)

    def click(self, search: SearchResponse, answer: AnswerDocument, kind: ClickKind = "open") -> None:
        """Remember that an answer of a search was used."""
        if search.search_id is None:
            raise ServiceError(0, {"type": "/problems/not-remembered", "detail": "the search was not remembered"})
        click = {"search_id": search.search_id, "item": answer.id, "position": answer.rank, "kind": kind}
        self._send("POST", self._at("clicks"), json=click | {"caption_id": answer.caption_id})

    def export(self, format: ExportFormat = "csv", *, events: bool = False, impressions: bool = False) -> bytes:
        """Return the clicks as a table: counts of query and item, single events, or all that was shown."""
        asked = {"format": format, "events": events, "impressions": impressions}
        return self._send("GET", self._at("clicks"), params=asked).content

    def forget(self) -> None:
        """Forget every search and click."""
        self._send("DELETE", self._at("clicks"))

    def interleave(self, a: str, b: str) -> InterleavingDocument:
        """Let two retrievers answer searches together from now on, and count whose answers are clicked."""
        return self._read(InterleavingDocument, "POST", self._at("interleaving"), json={"a": a, "b": b})

    def interleavings(self) -> list[InterleavingDocument]:
        """Return what clicks said of each two retrievers that were interleaved, the latest first."""
        return self._get(InterleavingList, "interleaving").interleavings

    def stop_interleaving(self) -> InterleavingDocument:
        """Let the active retriever answer alone again."""
        return self._read(InterleavingDocument, "DELETE", self._at("interleaving"))

    def learning(self) -> LearningDocument:
        """Return every change of the retriever and every comparison, the latest first, and the way back."""
        return self._get(LearningDocument, "learning")

    def roll_back(self) -> LearningStep:
        """Let searches use the retriever from before the last change again."""
        return self._read(LearningStep, "POST", self._at("learning", "rollback"))

    def query_log(self, *, days: int = 30) -> QueryLogDocument:
        """Return what was asked how often, and what found nothing."""
        return self._get(QueryLogDocument, "query-log", days=days)

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

    def _get(self, kind: type[DocumentT], *parts: str, **params: Any) -> DocumentT:
        """Return a document of the collection."""
        return self._read(kind, "GET", self._at(*parts), params=params)

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


def _query_body(asked: str | Sequence[Term]) -> dict[str, Any]:
    return {"query": asked} if isinstance(asked, str) else {"terms": [dict(term) for term in asked]}


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
