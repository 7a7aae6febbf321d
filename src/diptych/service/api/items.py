"""Item routes: list, add, read, change and remove the items of a collection, and send their pictures."""

from __future__ import annotations

from collections.abc import Collection as Several
from contextlib import suppress
from pathlib import Path as FilePath
from pathlib import PurePath
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, Form, Path, Query, Request, Response, UploadFile, status
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, Json, StringConstraints
from starlette.convertors import PathConvertor, register_url_convertor

from diptych.collection import Collection, CollectionError, Item, Record
from diptych.collection.export import rendered_picture
from diptych.collection.indexing.records import record_name
from diptych.collection.item import LONGEST_CAPTION, LONGEST_LABEL, MOST_NAMES, MOST_TEXTS
from diptych.collection.store.listing import Order
from diptych.data.picture_files import split_moment
from diptych.encoders.image.picture_formats import picture_format
from diptych.encoders.image.picture_parts import PictureText
from diptych.errors import without_folders
from diptych.service.api.documents import Document, RequestDocument, binary_response, with_examples
from diptych.service.api.files import file_response, has_current_version, open_original
from diptych.service.api.search import ItemSummary, item_members, request_filter
from diptych.service.context import Context, Decoding, Hosted, InTurn, Reading, Searching, ServiceContext, Writing
from diptych.service.hosting import HostedCollection
from diptych.service.problems import Problem, problem_response
from diptych.service.security.limits import client_network
from diptych.service.uploads import CheckedPicture, remove_stored_picture, remove_unused_picture, store_picture


class ItemIdConvertor(PathConvertor):
    """Takes ids as they are, slashes included, up to the part of the item that an address may end with."""

    regex = r"(?:(?!/(?:thumbnail|original|rendering)$).)+"


register_url_convertor("item", ItemIdConvertor())


class ItemDocument(ItemSummary):
    """A stored picture or text."""

    path: str | None
    """The file, from the root of the collection; null without one and for a file elsewhere."""
    size: int
    """Of the file, in bytes; 0 without one."""
    added: str
    """When it was added, ISO 8601."""
    updated: str
    """When it was last changed, ISO 8601."""
    picture_text: PictureText | None = None
    """The text in the picture, for one item; null in lists, and where it has not been read."""


class ItemList(Document):
    """A page of items."""

    items: list[ItemDocument]
    """In the order that was asked for."""
    total: int
    """How many all pages have."""
    next: str | None
    """The cursor of the next page; null when there is none."""


Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_CAPTION, pattern=r"\S")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_LABEL, pattern=r"\S")]


class ItemChange(RequestDocument):
    """Captions, labels and metadata of an item; what is absent or null stays, what is empty is erased."""

    model_config = with_examples({"captions": ["a red boat"], "labels": ["boat"]})

    captions: list[Text] | None = Field(default=None, max_length=MOST_TEXTS)
    """What is said of the picture, or the text itself."""
    labels: list[Label] | None = Field(default=None, max_length=MOST_TEXTS)
    """What it shows."""
    metadata: dict[str, Any] | None = Field(default=None, max_length=MOST_NAMES)
    """What else is known of it; JSON values, 16 levels deep and 100,000 letters long at most."""


class NewItem(ItemChange):
    """What is known of a picture, or a text, which needs a caption."""

    model_config = with_examples({"captions": ["a red boat"], "metadata": {"year": 2010}})

    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._~-]*$", max_length=200)
    """Its name in addresses; without one it is made up."""


class PictureItem(Document):
    """A picture or video, and what is known of it."""

    picture: UploadFile
    """The picture or video."""
    item: Json[NewItem] = NewItem()
    """Captions, labels, metadata and id, as JSON."""


def item_document(item: Item, text: PictureText | None = None) -> ItemDocument:
    """Return an item as clients see it; where a file outside the root lies is not their business."""
    file = None if item.path is None else split_moment(item.path)[0]
    return ItemDocument(
        **item_members(item),
        path=None if file is None or file.is_absolute() else file.as_posix(),
        size=item.size,
        added=item.added,
        updated=item.updated,
        picture_text=text,
    )


def find_item(collection: Collection, item_id: str) -> Item:
    """Return the item of an id; paths, which a collection takes as well, are no names here."""
    with suppress(CollectionError):
        item = collection[item_id]
        if item.id == item_id:
            return item
    raise Problem(404, "no-such-item", f"There is no item {item_id!r} in this collection; take the id of an answer.")


router = APIRouter(prefix="/v1", tags=["items"], dependencies=[Reading])
_ITEMS = "/collections/{collection}/items"
_ITEM = _ITEMS + "/{item_id:item}"
_CACHE_IMMUTABLE = "private, max-age=31536000, immutable"
_CACHE_REVALIDATE = "private, no-cache"

# What browsers show themselves. Everything else is saved when it is asked for: a drawing could hold a script.
_TYPES = {
    **dict.fromkeys((".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"), "image/jpeg"),
    **{f".{name}": f"image/{name}" for name in ("png", "gif", "webp", "avif", "bmp")},
    **{f".{name}": f"video/{name}" for name in ("mp4", "webm")},
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".mkv": "video/x-matroska",
    ".ogv": "video/ogg",
}
_SHOWN = {name: f"image/{name.lower()}" for name in ("JPEG", "PNG", "GIF", "WebP", "AVIF", "BMP")}

_UNCHANGED = {"description": "The client has it already."}
_THUMBNAIL: dict[int | str, dict[str, Any]] = {
    200: binary_response("A small JPEG.", ["image/jpeg"]),
    304: _UNCHANGED,
}


def _file_responses(kinds: Several[str]) -> dict[int | str, dict[str, Any]]:
    return {
        200: binary_response("The whole file.", kinds),
        206: binary_response("The range that was asked for.", kinds),
        304: _UNCHANGED,
        416: problem_response("The range lies outside the file."),
    }


_ORIGINAL = _file_responses({*_TYPES.values(), "application/octet-stream"})
_RENDERING = _file_responses(set(_SHOWN.values()))

Cursor = Annotated[str | None, Query(max_length=2000, description="The next of the page before.")]
ItemId = Annotated[str, Path(description="Id of the item.", max_length=400)]


@router.get(_ITEMS, operation_id="listItems", dependencies=[Searching])
def list_items(
    context: Context,
    hosted: Hosted,
    filter: Annotated[str | None, Query(max_length=2000, description="Which items, as in a search.")] = None,
    sort: Annotated[Order, Query(description="What they are sorted by.")] = "added",
    order: Annotated[
        Literal["asc", "desc"] | None, Query(description="By default the latest first, and names from A to Z.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 30,
    cursor: Cursor = None,
) -> ItemList:
    """List items; pages neither repeat nor miss one while others write."""
    descending = None if order is None else order == "desc"
    wanted = request_filter(context, filter)
    page = hosted.collection.page(wanted, sort=sort, descending=descending, cursor=cursor, limit=limit)
    return ItemList(items=[item_document(item) for item in page.items], total=page.total, next=page.next)


_ADDING: dict[str, Any] = {
    "status_code": status.HTTP_201_CREATED,
    "responses": {409: problem_response("The id is taken.")},
}


@router.post(_ITEMS, operation_id="addText", dependencies=[Writing, InTurn], **_ADDING)
def add_text(hosted: Hosted, item: NewItem, response: Response) -> ItemDocument:
    """Add a text, which needs a caption."""
    return _added_document(hosted, item, None, response)


@router.post(_ITEMS + "/picture", operation_id="addPicture", dependencies=[Writing], **_ADDING)
async def add_picture(
    request: Request,
    context: Context,
    hosted: Hosted,
    form: Annotated[PictureItem, Form(media_type="multipart/form-data")],
    response: Response,
) -> ItemDocument:
    """Add a picture that is sent along."""
    client = client_network(request.scope)
    # Only while it is decoded: those that wait for their turn to write keep no place there.
    async with context.decoding_limit.slot(client, request.receive):
        path = await run_in_threadpool(_stored, context, hosted, form.picture.file)
    async with hosted.writes.slot(client, request.receive):
        return await run_in_threadpool(_added_document, hosted, form.item, path, response)


def _stored(context: ServiceContext, hosted: HostedCollection, picture: BinaryIO) -> FilePath:
    suffix = CheckedPicture.read(picture, context.settings.limits).suffix
    return store_picture(hosted.collection, picture, suffix)


def _added_document(hosted: HostedCollection, item: NewItem, path: FilePath | None, response: Response) -> ItemDocument:
    """Add one item, unless its id is taken; a picture that was sent is deleted where that fails."""
    collection = hosted.collection
    record = Record(path, item.captions, item.labels, item.metadata, item.id)
    try:
        if item.id is not None and item.id in collection and collection[item.id].id == item.id:
            raise Problem(409, "id-taken", f"There is an item {item.id!r} already; change it with PATCH.")
        if reason := collection.add([record]).skipped.get(record_name(record)):
            why = without_folders(reason, collection.root)
            raise Problem(422, "not-added", f"The item could not be added: {why}")
        added = collection.item_of(record)
    except Exception:
        if path is not None:
            remove_unused_picture(collection, path)
        raise
    response.headers["Location"] = f"/v1/collections/{quote(hosted.name, safe='')}/items/{quote(added.id, safe='')}"
    return item_document(added)


@router.get(_ITEM + "/thumbnail", operation_id="getThumbnail", response_class=Response, responses=_THUMBNAIL)
def get_thumbnail(
    request: Request,
    hosted: Hosted,
    item_id: ItemId,
    v: Annotated[
        str | None, Query(max_length=200, description="The content hash; the answer then never changes.")
    ] = None,
) -> Response:
    """Return a small JPEG of the picture of an item."""
    item = find_item(hosted.collection, item_id)
    etag = f'"{item.content_hash}"'
    headers = {"ETag": etag, "Cache-Control": _CACHE_IMMUTABLE if v and v == item.content_hash else _CACHE_REVALIDATE}
    if item.content_hash is not None and has_current_version(request, etag):
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    content = hosted.collection.thumbnail(item.id)
    if not content:
        raise Problem(404, "no-picture", f"Item {item_id!r} has no picture that could be read; read its captions.")
    return Response(content, media_type="image/jpeg", headers=headers)


@router.get(_ITEM + "/original", operation_id="getOriginal", response_class=Response, responses=_ORIGINAL)
@router.head(_ITEM + "/original", operation_id="headOriginal", response_class=Response, responses=_ORIGINAL)
def get_original(request: Request, hosted: Hosted, item_id: ItemId) -> Response:
    """Return the picture file of an item, of a moment the video, whole or a range of its bytes."""
    item = find_item(hosted.collection, item_id)
    file, tag = open_original(hosted.collection, item)
    name = item_document(item).name or "picture"
    media_type = _TYPES.get(PurePath(name).suffix.lower(), "application/octet-stream")
    how = "inline" if media_type != "application/octet-stream" else "attachment"
    headers = _file_headers(tag, f"{how}; filename*=UTF-8''{quote(name, safe='')}")
    return file_response(request, file, media_type, headers)


@router.get(
    _ITEM + "/rendering",
    operation_id="getRendering",
    response_class=Response,
    responses=_RENDERING,
    dependencies=[Decoding],
)
def get_rendering(request: Request, hosted: Hosted, item_id: ItemId) -> Response:
    """Return the picture of an item as every browser can show it.

    It is the file itself where it is one that browsers know, and otherwise a JPEG of it, with 2,560 pixels along its
    longest side at most; of a video, that of the moment; a drawing is a PNG.
    """
    item = find_item(hosted.collection, item_id)
    file, tag = open_original(hosted.collection, item)
    headers = _file_headers(tag, "inline")
    try:
        kind = picture_format(file)
        if kind in _SHOWN and not item.seconds:
            return file_response(request, file, _SHOWN[kind], headers)
        headers["ETag"] = f'{tag[:-1]}-rendered"'
        if has_current_version(request, headers["ETag"]):
            return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
        content, format = rendered_picture(file, item.seconds or None)
    except Exception as reason:
        file.close()
        why = without_folders(str(reason), hosted.collection.root)
        detail = f"The picture of item {item_id!r} cannot be read now: {why}; take the original."
        raise Problem(404, "no-picture", detail) from None
    file.close()
    return Response(content, media_type=f"image/{format.lower()}", headers=headers)


def _file_headers(tag: str, disposition: str) -> dict[str, str]:
    return {
        "ETag": tag,
        "Cache-Control": _CACHE_REVALIDATE,
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": disposition,
    }


@router.get(_ITEM, operation_id="getItem")
def get_item(hosted: Hosted, item_id: ItemId) -> ItemDocument:
    """Return what is known of an item."""
    item = find_item(hosted.collection, item_id)
    return item_document(item, hosted.collection.picture_text(item.id))


@router.patch(_ITEM, operation_id="changeItem", dependencies=[Writing, InTurn])
def change_item(hosted: Hosted, item_id: ItemId, change: ItemChange) -> ItemDocument:
    """Replace captions, labels or metadata of an item."""
    item = find_item(hosted.collection, item_id)
    return item_document(hosted.collection.update(item.id, **vars(change)), hosted.collection.picture_text(item.id))


@router.delete(_ITEM, operation_id="removeItem", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Writing, InTurn])
def remove_item(hosted: Hosted, item_id: ItemId) -> None:
    """Remove an item from the collection; its file stays where it is, unless it was sent to this service."""
    item = find_item(hosted.collection, item_id)
    hosted.collection.remove([item.id])
    remove_stored_picture(hosted.collection, item)
