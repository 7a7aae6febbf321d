"""The items of a collection."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request, Response, status

from diptych.collection import Item, Record
from diptych.service.api.asked_filter import asked_filter
from diptych.service.api.asking import run_search
from diptych.service.api.file_answer import file_answer, is_known
from diptych.service.api.item_documents import find_item, item_document
from diptych.service.api.item_ids import ITEM_ID
from diptych.service.api.open_original import open_original, original_tag
from diptych.service.api.sent_item import REQUEST_BODY, Sent
from diptych.service.context import Context, Hosted
from diptych.service.problem import Problem
from diptych.service.problem_response import problem_response
from diptych.service.schemas.item_change import ItemChange
from diptych.service.schemas.item_document import ItemDocument
from diptych.service.schemas.item_list import ItemList
from diptych.service.schemas.search_options import SearchOptions, Target
from diptych.service.schemas.search_response import SearchResponse
from diptych.service.schemas.term_request import TermRequest
from diptych.service.security.guards import Reading, Searching, Writing
from diptych.service.uploads.added_files import write_added_file
from diptych.service.uploads.sent_picture import SentPicture

router = APIRouter(prefix="/v1", tags=["items"], dependencies=[Reading])

_ITEMS = "/collections/{collection}/items"
_ITEM = f"{_ITEMS}/{ITEM_ID}"
_FOR_EVER = "private, max-age=31536000, immutable"
_ASK_AGAIN = "private, no-cache"
_TYPES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".jpe": "image/jpeg",
    ".jfif": "image/jpeg",
    ".png": "image/png",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
}
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_UNCHANGED = {"description": "The client has it already."}
_THUMBNAIL: dict[int | str, dict[str, Any]] = {
    200: {"description": "A small JPEG.", "content": {"image/jpeg": _BYTES}},
    304: _UNCHANGED,
}
_KINDS = dict.fromkeys(sorted({*_TYPES.values(), "application/octet-stream"}), _BYTES)
_ORIGINAL: dict[int | str, dict[str, Any]] = {
    200: {"description": "The whole file.", "content": _KINDS},
    206: {"description": "The range that was asked for.", "content": _KINDS},
    304: _UNCHANGED,
    416: problem_response("The range lies outside the file."),
}

ItemId = Annotated[str, Path(description="Id of the item.", max_length=400)]


@router.get(_ITEMS, operation_id="listItems", dependencies=[Searching])
def list_items(
    context: Context,
    hosted: Hosted,
    filter: Annotated[str | None, Query(max_length=2000, description="Which items, as in a search.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 30,
    offset: Annotated[int, Query(ge=0, le=2**53, description="How many to leave out before them.")] = 0,
) -> ItemList:
    """List items in the order of their addition."""
    items = hosted.collection.items(asked_filter(context, filter))
    end = offset + limit
    return ItemList(
        items=[item_document(item) for item in items[offset:end]],
        total=len(items),
        next_offset=end if end < len(items) else None,
    )


@router.post(
    _ITEMS,
    operation_id="addItem",
    status_code=status.HTTP_201_CREATED,
    dependencies=[Writing],
    responses={409: problem_response("The id is taken.")},
    openapi_extra={"requestBody": REQUEST_BODY},
)
def add_item(context: Context, hosted: Hosted, sent: Sent, response: Response) -> ItemDocument:
    """Add a picture that is sent along, or a text."""
    collection = hosted.collection
    described = sent.item
    if described.id is not None and described.id in {item.id for item in collection}:
        raise Problem(409, "id-taken", f"There is an item {described.id!r} already; change it with PATCH.")
    if sent.picture is None:
        record = Record(None, described.captions, described.labels, described.metadata, described.id)
        item = _added_text(hosted, record)
    else:
        picture = SentPicture.read(sent.picture, context.settings.limits)
        path = write_added_file(collection.root, sent.picture, picture.suffix)
        record = Record(path, described.captions, described.labels, described.metadata, described.id)
        item = _added_picture(hosted, record)
    response.headers["Location"] = f"/v1/collections/{quote(hosted.name, safe='')}/items/{quote(item.id, safe='')}"
    return item_document(item)


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
    headers = {"ETag": etag, "Cache-Control": _FOR_EVER if v and v == item.content_hash else _ASK_AGAIN}
    if item.content_hash is not None and is_known(request, etag):
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    content = hosted.collection.thumbnail(item.id)
    if not content:
        raise Problem(404, "no-picture", f"Item {item_id!r} has no picture that could be read; read its captions.")
    return Response(content, media_type="image/jpeg", headers=headers)


@router.get(_ITEM + "/original", operation_id="getOriginal", response_class=Response, responses=_ORIGINAL)
@router.head(_ITEM + "/original", operation_id="headOriginal", response_class=Response, responses=_ORIGINAL)
def get_original(request: Request, hosted: Hosted, item_id: ItemId) -> Response:
    """Return the picture file of an item, whole or a range of its bytes."""
    item = find_item(hosted.collection, item_id)
    file = open_original(hosted.collection, item)
    document = item_document(item)
    name = document.name or "picture"
    suffix = name[name.rfind(".") :].lower()
    media_type = _TYPES.get(suffix, "application/octet-stream")
    headers = {
        "ETag": original_tag(item, file),
        "Cache-Control": _ASK_AGAIN,
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": f"inline; filename*=UTF-8''{quote(name, safe='')}",
    }
    return file_answer(request, file, media_type, headers)


@router.get(_ITEM + "/neighbours", operation_id="listNeighbours", dependencies=[Searching])
def list_neighbours(
    context: Context,
    hosted: Hosted,
    item_id: ItemId,
    target: Annotated[Target, Query(description="What to find: pictures or texts.")] = "images",
    limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 12,
    retriever: Annotated[
        str | None, Query(min_length=1, max_length=200, description="By default the active one.")
    ] = None,
) -> SearchResponse:
    """Find what resembles an item; such a search is not remembered."""
    item = find_item(hosted.collection, item_id)
    options = SearchOptions(target=target, limit=limit, retriever=retriever, log=False)
    return run_search(context, hosted, [TermRequest(item=item.id)], options)


@router.get(_ITEM, operation_id="getItem")
def get_item(hosted: Hosted, item_id: ItemId) -> ItemDocument:
    """Return what is known of an item."""
    return item_document(find_item(hosted.collection, item_id))


@router.patch(_ITEM, operation_id="changeItem", dependencies=[Writing])
def change_item(hosted: Hosted, item_id: ItemId, change: ItemChange) -> ItemDocument:
    """Replace captions, labels or metadata of an item."""
    item = find_item(hosted.collection, item_id)
    changed = hosted.collection.update(
        item.id, captions=change.captions, labels=change.labels, metadata=change.metadata
    )
    return item_document(changed)


@router.delete(_ITEM, operation_id="removeItem", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Writing])
def remove_item(hosted: Hosted, item_id: ItemId) -> None:
    """Remove an item from the collection; its file stays where it is."""
    hosted.collection.remove(find_item(hosted.collection, item_id).id)


def _added_text(hosted: Hosted, record: Record) -> Item:
    report = hosted.collection.add([record])
    if report.skipped:
        raise _refused(report.skipped)
    if record.id is not None:
        return hosted.collection[record.id]
    # The same text is the same item, wherever it came from.
    texts = tuple(record.captions or ())
    return next(item for item in hosted.collection if item.path is None and item.captions == texts)


def _added_picture(hosted: Hosted, record: Record) -> Item:
    report = hosted.collection.add([record])
    if report.skipped:
        raise _refused(report.skipped)
    return hosted.collection[record.path or ""]


def _refused(skipped: dict[str, str]) -> Problem:
    reason = next(iter(skipped.values()))
    return Problem(422, "not-added", f"The item could not be added: {reason}")
