"""Routes of what people keep of a collection (albums, saved searches) and take from it (zip files, galleries)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, status
from fastapi.responses import StreamingResponse
from pydantic import AliasChoices, Field, StringConstraints

from diptych.collection import Album, Collection, Item, SavedSearch, parse_query
from diptych.collection.export import PictureExport
from diptych.collection.items_to_export import items_to_export
from diptych.collection.searching.options import Target
from diptych.collection.searching.query import HYBRID_OF_MODE
from diptych.service.api.documents import Document, RequestDocument, RetrieverChoice, binary_response, with_examples
from diptych.service.api.files import open_original
from diptych.service.api.items import Cursor, ItemList, find_item, item_document
from diptych.service.api.search import (
    SavedOptions,
    SearchMode,
    SearchOptions,
    SearchResponse,
    request_filter,
    request_terms,
    run_search,
)
from diptych.service.context import Context, Hosted, Reading, Searching, Writing
from diptych.service.problems import Problem, problem_response

Name = Annotated[str, StringConstraints(min_length=1, max_length=80)]
ItemIds = Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=400)]], Field(max_length=10_000)]


class AlbumDocument(Document):
    """Items under a title, in an order of their own."""

    title: str
    """What people call it."""
    items: list[str] = Field(validation_alias=AliasChoices("items", "ids"))
    """Ids of those that are in the collection, in the order of the album."""


class AlbumList(Document):
    """The albums of a collection, in the order in which they were made."""

    albums: list[AlbumDocument]
    """The oldest first."""


class AlbumItems(RequestDocument):
    """The items that an album is to have."""

    model_config = with_examples({"items": ["5f2b", "0c11"]})

    items: ItemIds
    """Ids of items, in the order that the album is to have."""


class AlbumChange(RequestDocument):
    """What is to be changed of an album: its title, and what comes in and goes out."""

    model_config = with_examples({"add": ["5f2b"]}, {"title": "Summer 2024"})

    title: Name | None = None
    """Its new title."""
    add: ItemIds | None = None
    """Ids of items to put at its end; those that are in it stay where they are."""
    remove: ItemIds | None = None
    """Ids of items to take out."""


class SavedSearchRequest(SavedOptions, RequestDocument):
    """What a saved search asks: words, a filter, or both."""

    model_config = with_examples({"query": "a dog - sofa", "filter": "year>=2020"})

    query: str = Field(default="", max_length=2000)
    """Words, as in a search; empty for a filter alone."""
    mode: SearchMode = "auto"
    """Whether to go by meaning, by words, or by both; auto decides by the words."""


class SavedSearchDocument(SavedSearchRequest):
    """A search under a name, asked anew each time."""

    name: str
    """What people call it."""


class SavedSearchList(Document):
    """The saved searches of a collection, in the order in which they were saved."""

    searches: list[SavedSearchDocument]
    """The oldest first."""


class NewName(RequestDocument):
    """Another name for a saved search."""

    model_config = with_examples({"name": "Dogs outside"})

    name: Name
    """What it is called from now on."""


router = APIRouter(prefix="/v1", tags=["albums"], dependencies=[Reading])
_ALBUMS = "/collections/{collection}/albums"
_ALBUM = _ALBUMS + "/{title}"
_SEARCHES = "/collections/{collection}/saved-searches"
_SEARCH = _SEARCHES + "/{name}"
_TAKEN: dict[int | str, dict[str, Any]] = {409: problem_response("The name is taken.")}
Limit = Annotated[int, Query(ge=1, le=200, description="How many.")]
Offset = Annotated[int, Query(ge=0, le=10_000, description="How many to leave out before them.")]
Title = Annotated[str, Path(description="Title of the album.", max_length=400)]
SearchName = Annotated[str, Path(description="Name of the saved search.", max_length=400)]


@router.get(_ALBUMS, operation_id="listAlbums", response_model=AlbumList)
def list_albums(hosted: Hosted) -> dict[str, list[Album]]:
    """List the albums with the ids of their items."""
    return {"albums": list(hosted.collection.albums)}


@router.get(_ALBUM + "/items", operation_id="listAlbumItems", dependencies=[Searching])
def list_album_items(hosted: Hosted, title: Title, limit: Limit = 30, cursor: Cursor = None) -> ItemList:
    """List the items of an album in its order."""
    ids = find_album(hosted.collection, title).ids
    start = _album_place(ids, cursor)
    end = start + limit
    page = [item_document(hosted.collection[item_id]) for item_id in ids[start:end]]
    return ItemList(items=page, total=len(ids), next=f"{end}:{ids[end]}" if end < len(ids) else None)


def _album_place(ids: Sequence[str], cursor: str | None) -> int:
    """Return where a page begins: at the item that the cursor names, or at its place if that has left the album."""
    place, _, item_id = (cursor or "0:").partition(":")
    if not (place.isascii() and place.isdigit()):
        raise Problem(422, "invalid-input", "The cursor is not of an album; take the next of the page before.")
    return ids.index(item_id) if item_id in ids else int(place)


@router.put(_ALBUM, operation_id="setAlbum", response_model=AlbumDocument, dependencies=[Writing])
def set_album(hosted: Hosted, title: Title, request: AlbumItems) -> Album:
    """Let an album have these items, in this order; one that is not there yet is made."""
    return hosted.collection.albums.set(title, _ids(hosted.collection, request.items))


@router.patch(
    _ALBUM, operation_id="changeAlbum", response_model=AlbumDocument, dependencies=[Writing], responses=_TAKEN
)
def change_album(hosted: Hosted, title: Title, request: AlbumChange) -> Album:
    """Put items into an album, take some out, or give it another title."""
    albums, album = hosted.collection.albums, find_album(hosted.collection, title)
    if request.title is not None and request.title.casefold() != album.title.casefold() and request.title in albums:
        raise _taken("album", request.title)
    if request.add:
        album = albums.add(title, _ids(hosted.collection, request.add))
    if request.remove:
        album = albums.remove(title, _ids(hosted.collection, request.remove))
    if request.title is not None:
        album = albums.rename(title, request.title)
    return album


@router.delete(_ALBUM, operation_id="deleteAlbum", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Writing])
def delete_album(hosted: Hosted, title: Title) -> None:
    """Delete an album; its items stay in the collection."""
    hosted.collection.albums.delete(find_album(hosted.collection, title).title)


@router.get(_SEARCHES, operation_id="listSavedSearches", response_model=SavedSearchList)
def list_saved_searches(hosted: Hosted) -> dict[str, list[SavedSearch]]:
    """List the saved searches with what they ask."""
    return {"searches": list(hosted.collection.saved_searches)}


@router.get(_SEARCH + "/answers", operation_id="runSavedSearch", dependencies=[Searching])
def run_saved_search(
    context: Context, hosted: Hosted, name: SearchName, limit: Limit = 30, offset: Offset = 0
) -> SearchResponse:
    """Ask a saved search anew; such a search is not remembered."""
    search = find_saved_search(hosted.collection, name)
    if not search.query:
        detail = f"The saved search {search.name!r} is a filter without words; ask /items with its filter."
        raise Problem(422, "no-words", detail)
    told = {"filter": search.filter, "mode": search.mode, **search.options}
    options = SearchOptions(limit=limit, offset=offset, log=False, **told)
    return run_search(context, hosted, request_terms(search.query), options)


@router.put(_SEARCH, operation_id="saveSearch", response_model=SavedSearchDocument, dependencies=[Writing])
def save_search(context: Context, hosted: Hosted, name: SearchName, request: SavedSearchRequest) -> SavedSearch:
    """Save a search under a name; one of the same name is replaced."""
    request_filter(context, request.filter)
    if request.query:
        request_terms(request.query)
    hosted.collection.retriever_named(request.retriever)
    return hosted.collection.saved_searches.save(SavedSearch(name, **request.model_dump()))


@router.patch(
    _SEARCH,
    operation_id="renameSavedSearch",
    response_model=SavedSearchDocument,
    dependencies=[Writing],
    responses=_TAKEN,
)
def rename_saved_search(hosted: Hosted, name: SearchName, request: NewName) -> SavedSearch:
    """Give a saved search another name."""
    searches, search = hosted.collection.saved_searches, find_saved_search(hosted.collection, name)
    if request.name.casefold() != search.name.casefold() and request.name in searches:
        raise _taken("saved search", request.name)
    return searches.rename(name, request.name)


@router.delete(
    _SEARCH, operation_id="deleteSavedSearch", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Writing]
)
def delete_saved_search(hosted: Hosted, name: SearchName) -> None:
    """Delete a saved search."""
    hosted.collection.saved_searches.delete(find_saved_search(hosted.collection, name).name)


def find_album(collection: Collection, title: str) -> Album:
    """Return an album, or say that there is none."""
    if title not in collection.albums:
        raise Problem(404, "no-such-album", f"There is no album {title!r}; /albums lists those there are.")
    return collection.albums[title]


def find_saved_search(collection: Collection, name: str) -> SavedSearch:
    """Return a saved search, or say that there is none."""
    if name not in collection.saved_searches:
        detail = f"There is no saved search {name!r}; /saved-searches lists those there are."
        raise Problem(404, "no-such-saved-search", detail)
    return collection.saved_searches[name]


def _taken(kind: str, name: str) -> Problem:
    return Problem(409, "name-taken", f"There is another {kind} {name!r}; choose another name, or delete that one.")


def _ids(collection: Collection, items: list[str]) -> list[str]:
    return [find_item(collection, item_id).id for item_id in items]


exports_router = APIRouter(prefix="/v1", tags=["exports"], dependencies=[Reading])

_ZIP: dict[int | str, dict[str, Any]] = {200: binary_response("A zip file.", ["application/zip"])}


class ExportParameters(Document):
    """Which answers to export, and as what."""

    kind: Literal["zip", "gallery"] = "zip"
    """The picture files with their captions, or pictures with a page to look at them."""
    q: str | None = Field(default=None, min_length=1, max_length=2000)
    """Words, as in a search: its good answers."""
    filter: str | None = Field(default=None, max_length=2000)
    """Which items, as in a search."""
    album: str | None = Field(default=None, min_length=1, max_length=80)
    """The items of an album, in its order."""
    saved: str | None = Field(default=None, min_length=1, max_length=80)
    """The answers to a saved search."""
    target: Target = "images"
    """What words find: pictures or texts."""
    mode: SearchMode = "auto"
    """How words are compared, as in a search."""
    retriever: RetrieverChoice = None
    min_probability: float | None = Field(default=None, ge=0, le=1)
    """Which answers are good, as in a search; by default the search model says."""
    limit: int = Field(default=200, ge=1, le=10_000)
    """How many answers at most."""
    keep_metadata: bool | None = None
    """Send the files as they are, or drawn again without place, time and camera; by default a gallery goes without."""
    title: str | None = Field(default=None, min_length=1, max_length=200)
    """The title of a gallery."""


@exports_router.get(
    "/collections/{collection}/export",
    operation_id="exportAnswers",
    response_class=StreamingResponse,
    responses=_ZIP,
    dependencies=[Searching],
)
def export_answers(context: Context, hosted: Hosted, asked: Annotated[ExportParameters, Query()]) -> StreamingResponse:
    """Send answers, the items of a filter or an album as a zip file; it names what could not be read."""
    collection, most = hosted.collection, context.settings.limits.exported_items
    if sum(one is not None for one in (asked.q, asked.album, asked.saved)) > 1:
        raise Problem(422, "invalid-request", "Give one of q, album and saved.")
    if asked.q is not None:
        request_terms(asked.q)
    request_filter(context, asked.filter)
    chosen, about = items_to_export(
        collection,
        query=None if asked.q is None else parse_query(asked.q, find_picture=lambda _: None),
        filter=asked.filter,
        album=None if asked.album is None else find_album(collection, asked.album).title,
        saved=None if asked.saved is None else find_saved_search(collection, asked.saved).name,
        k=min(asked.limit, most),
        target=asked.target,
        hybrid=HYBRID_OF_MODE[asked.mode],
        retriever=asked.retriever,
        min_probability=asked.min_probability,
    )
    if len(chosen) > most:
        raise Problem(422, "too-many-items", f"{len(chosen):,} items are more than {most:,}; narrow them by a filter.")

    def opened(item: Item) -> BinaryIO | None:
        with suppress(Problem):
            return open_original(collection, item)[0]
        return None

    title = asked.title or asked.album or asked.saved or asked.q or hosted.name
    files = PictureExport(
        chosen,
        opened,
        collection.thumbnails,
        title=title,
        about=about,
        gallery=asked.kind == "gallery",
        keep_metadata=asked.keep_metadata,
    )
    name = quote(f"{title[:60]}.zip", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}", "Cache-Control": "private, no-store"}
    return StreamingResponse(files.zipped(), media_type="application/zip", headers=headers)
