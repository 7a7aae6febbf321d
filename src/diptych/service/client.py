"""The service from Python: everything it can do, as methods."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from diptych.service.clicks.export import ExportFormat
from diptych.service.clicks.records import ClickKind
from diptych.service.connection import Connection, ServiceError, address, without_none
from diptych.service.jobs.store import JobKind
from diptych.service.schemas.clicks import InterleavingDocument, InterleavingList, QueryLogDocument
from diptych.service.schemas.collections import (
    AlbumDocument,
    AlbumList,
    CollectionDocument,
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
    SearchMode,
    SearchResponse,
    SuggestionDocument,
    SuggestionList,
    Target,
    UploadDocument,
)

__all__ = ["Client", "ServiceError"]

Term = Mapping[str, Any]
QueryInput = str | os.PathLike[str] | Sequence[Term]
_POLL_SECONDS = 0.3


class Client(Connection):
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

    def ready(self) -> ReadinessDocument:
        """Say of each collection whether it can be searched."""
        # A service that is not ready says so with this status and the same document.
        return ReadinessDocument.model_validate(self._send("GET", "/ready", accepted=503).json(), extra="ignore")

    def status(self) -> CollectionDocument:
        """Return what is in the collection and how it is searched."""
        return self._read(CollectionDocument, "GET", self._at())

    def search(
        self,
        asked: QueryInput,
        *,
        target: Target = "images",
        limit: int = 30,
        offset: int = 0,
        filter: str | None = None,
        hybrid: float | None = None,
        mode: SearchMode | None = None,
        exact: bool | None = None,
        min_probability: float | None = None,
        retriever: str | None = None,
        regions: bool = True,
        log: bool = True,
        search_id: str | None = None,
        draw: str | None = None,
        as_of: str | None = None,
        visitor: str | None = None,
    ) -> SearchResponse:
        """Find pictures or texts.

        ``asked`` is a string of the query language, the path object of a picture, which is sent along, or terms: each a
        mapping with one of ``text``, ``item`` and ``upload``, and perhaps a ``weight``. A program that searches for
        many people tells them apart by ``visitor``, any words.
        """
        options: dict[str, Any] = {"target": target, "limit": limit, "offset": offset, "filter": filter}
        options |= {"hybrid": hybrid, "mode": mode}
        options |= {"exact": exact, "min_probability": min_probability, "retriever": retriever}
        options |= {"regions": regions, "log": log, "search_id": search_id, "draw": draw, "as_of": as_of}
        headers = {} if visitor is None else {"X-Diptych-Visitor": visitor.encode()}
        if isinstance(asked, os.PathLike):
            return self._send_picture(SearchResponse, self._at("search", "picture"), asked, options, headers=headers)
        options |= _query_body(asked)
        return self._read(SearchResponse, "POST", self._at("search"), json=options, headers=headers)

    def history(self) -> VersionList:
        """Return the versions of the items that ``as_of`` takes, the latest first."""
        return self._read(VersionList, "GET", self._at("history"))

    def keep_history(self, days: float) -> VersionList:
        """Choose for how many days items that were changed or removed are kept as they were."""
        return self._read(VersionList, "PUT", self._at("history"), json={"kept_days": days})

    def albums(self) -> list[AlbumDocument]:
        """Return the albums with the ids of their items."""
        return self._read(AlbumList, "GET", self._at("albums")).albums

    def album(self, title: str) -> AlbumDocument:
        """Return an album with the ids of its items."""
        return self._read(AlbumDocument, "GET", self._at("albums", title))

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
        return self._read(SavedSearchList, "GET", self._at("saved-searches")).searches

    def save_search(self, name: str, query: str = "", **how: Any) -> SavedSearchDocument:
        """Save a search: ``filter``, ``target``, ``mode``, ``retriever`` and ``min_probability`` as in a search."""
        return self._read(SavedSearchDocument, "PUT", self._at("saved-searches", name), json={"query": query, **how})

    def run_saved_search(self, name: str, *, limit: int = 30, offset: int = 0) -> SearchResponse:
        """Ask a saved search anew."""
        asked = {"limit": limit, "offset": offset}
        return self._read(SearchResponse, "GET", self._at("saved-searches", name, "answers"), params=asked)

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
        return self._read(FacetList, "GET", self._at("facets"), params={"filter": filter, "limit": limit}).facets

    def timeline(self, filter: str | None = None) -> list[PeriodDocument]:
        """Return how many items were taken in each month."""
        return self._read(Timeline, "GET", self._at("timeline"), params={"filter": filter}).periods

    def world(self, filter: str | None = None, **corners: float) -> list[MapCellDocument]:
        """Return where items were taken, in the whole world or between ``south``, ``west``, ``north`` and ``east``."""
        return self._read(WorldMap, "GET", self._at("world"), params={"filter": filter, **corners}).cells

    def suggestions(self, prefix: str, *, limit: int = 8) -> list[SuggestionDocument]:
        """Return ways to go on with what has been typed."""
        asked = {"prefix": prefix, "limit": limit}
        return self._read(SuggestionList, "GET", self._at("suggestions"), params=asked).suggestions

    def items(self, filter: str | None = None, *, page: int = 200, as_of: str | None = None) -> Iterator[ItemDocument]:
        """Yield the items that meet a filter, in the order of their addition."""
        yield from self._pages(self._at("items"), {"filter": filter, "as_of": as_of}, page)

    def _pages(self, address: str, asked: Mapping[str, Any], page: int) -> Iterator[ItemDocument]:
        offset: int | None = 0
        while offset is not None:
            found = self._read(ItemList, "GET", address, params={**asked, "limit": page, "offset": offset})
            yield from found.items
            offset = found.next_offset

    def item(self, item_id: str, *, as_of: str | None = None) -> ItemDocument:
        """Return what is known of an item."""
        return self._read(ItemDocument, "GET", self._at("items", item_id), params={"as_of": as_of})

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
        asked = {"target": target, "limit": limit, "retriever": retriever}
        return self._read(SearchResponse, "GET", self._at("items", item_id, "neighbours"), params=asked)

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
        return self._read(MapDocument, "GET", self._at("map"), params={"retriever": retriever})

    def retrievers(self) -> RetrieverList:
        """Return the retrievers of the collection, and those that can be added by name."""
        return self._read(RetrieverList, "GET", self._at("retrievers"))

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
        return self._read(RehearsalList, "GET", self._at("rehearsals")).rehearsals

    def start(self, kind: JobKind, **parameters: Any) -> JobDocument:
        """Start a job: ``index``, ``train``, ``learn``, ``reencode``, ``map``, ``retriever`` or ``rehearse``."""
        return self._read(JobDocument, "POST", self._at("jobs"), json={"kind": kind, "parameters": parameters})

    def jobs(self, *, limit: int = 50) -> list[JobDocument]:
        """Return jobs, the newest first."""
        return self._read(JobList, "GET", self._at("jobs"), params={"limit": limit}).jobs

    def job(self, job_id: str) -> JobDocument:
        """Return how far a job has come."""
        return self._read(JobDocument, "GET", self._at("jobs", job_id))

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
        return self._read(InterleavingList, "GET", self._at("interleaving")).interleavings

    def stop_interleaving(self) -> InterleavingDocument:
        """Let the active retriever answer alone again."""
        return self._read(InterleavingDocument, "DELETE", self._at("interleaving"))

    def learning(self) -> LearningDocument:
        """Return every change of the retriever and every comparison, the latest first, and the way back."""
        return self._read(LearningDocument, "GET", self._at("learning"))

    def roll_back(self) -> LearningStep:
        """Let searches use the retriever from before the last change again."""
        return self._read(LearningStep, "POST", self._at("learning", "rollback"))

    def query_log(self, *, days: int = 30) -> QueryLogDocument:
        """Return what was asked how often, and what found nothing."""
        return self._read(QueryLogDocument, "GET", self._at("query-log"), params={"days": days})


def _query_body(asked: str | Sequence[Term]) -> dict[str, Any]:
    return {"query": asked} if isinstance(asked, str) else {"terms": [dict(term) for term in asked]}
