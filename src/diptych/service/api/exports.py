"""The route that sends answers as a zip file: pictures with their captions, or a gallery for a browser."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from diptych.collection import Collection, Filter, Item, parse_query
from diptych.collection.browse.export import PictureExport
from diptych.collection.search.answers import HYBRID_OF_MODE
from diptych.service.api.albums import find_album, find_saved_search
from diptych.service.api.files import open_original
from diptych.service.api.search import request_filter, request_terms
from diptych.service.context import Context, Hosted, Reading, Searching
from diptych.service.problems import Problem
from diptych.service.schemas import PARAMETERS, Document
from diptych.service.schemas.search import SearchMode, Target

router = APIRouter(prefix="/v1", tags=["exports"], dependencies=[Reading])

_ZIP: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A zip file.",
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class ExportParameters(Document):
    """Which answers to export, and as what."""

    model_config = PARAMETERS

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
    retriever: str | None = Field(default=None, min_length=1, max_length=200)
    """The name of a search model; by default the active one."""
    min_probability: float | None = Field(default=None, ge=0, le=1)
    """Which answers are good, as in a search; by default the search model says."""
    limit: int = Field(default=200, ge=1, le=10_000)
    """How many answers at most."""
    keep_metadata: bool | None = None
    """Send the files as they are, or drawn again without place, time and camera; by default a gallery goes without."""
    title: str | None = Field(default=None, min_length=1, max_length=200)
    """The title of a gallery."""


@router.get(
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
        request_terms(context, asked.q, None)
    wanted = request_filter(context, asked.filter)
    chosen, about = _chosen(collection, asked, wanted, min(asked.limit, most))
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


def _chosen(
    collection: Collection, asked: ExportParameters, wanted: Filter | None, limit: int
) -> tuple[Sequence[Item], str]:
    """Return the items to send, and a line that says what they are."""
    search = None if asked.saved is None else find_saved_search(collection, asked.saved)
    query = asked.q if search is None else search.query
    told = asked.filter if search is None else search.filter
    if query:
        how = asked if search is None else search
        found = collection.search(
            parse_query(query, find_picture=lambda _: None),
            limit,
            filter=wanted if search is None else search.filter,
            target=how.target,
            hybrid=HYBRID_OF_MODE[how.mode],
            retriever=how.retriever,
            min_probability=how.min_probability,
        )
        good = [one.item for one in found if one.probability >= found.cutoff or one.has_words]
        narrowed = f", only {told}" if told else ""
        return [item for item in good if item is not None], f"Answers to \u201c{query}\u201d{narrowed}"
    if asked.album is not None:
        items = collection.albums.items(find_album(collection, asked.album).title)
        kept = None if wanted is None else {item.id for item in collection.items(wanted)}
        return [item for item in items if kept is None or item.id in kept], "Album"
    return collection.items(wanted if search is None else search.filter), f"Items with {told}" if told else ""
