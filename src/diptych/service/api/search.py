"""Searching."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Form, Query, Request

from diptych.service.api.asking import asked_terms, run_search
from diptych.service.api.expected_thumbnails import expect_thumbnails
from diptych.service.context import Context, Hosted
from diptych.service.schemas.picture_search import PictureSearch
from diptych.service.schemas.search_parameters import SearchParameters
from diptych.service.schemas.search_request import SearchRequest
from diptych.service.schemas.search_response import SearchResponse
from diptych.service.schemas.term_request import TermRequest
from diptych.service.security.guards import Reading, Searching

router = APIRouter(prefix="/v1", tags=["search"], dependencies=[Reading])


@router.post("/collections/{collection}/search", operation_id="search", dependencies=[Searching])
def search(
    context: Context, hosted: Hosted, request: SearchRequest, raw: Request, background: BackgroundTasks
) -> SearchResponse:
    """Find pictures or texts with words, stored items, uploaded pictures, or a weighted sum of them."""
    found = run_search(context, hosted, asked_terms(context, request.query, request.terms), request)
    expect_thumbnails(raw, background, hosted, found)
    return found


@router.get("/collections/{collection}/search", operation_id="searchByAddress", dependencies=[Searching])
def search_by_address(
    context: Context, hosted: Hosted, request: Annotated[SearchParameters, Query()]
) -> SearchResponse:
    """Find pictures or texts with a query in the address."""
    return run_search(context, hosted, asked_terms(context, request.q, None), request)


@router.post("/collections/{collection}/search/picture", operation_id="searchWithPicture", dependencies=[Searching])
def search_with_picture(
    context: Context, hosted: Hosted, request: Annotated[PictureSearch, Form(media_type="multipart/form-data")]
) -> SearchResponse:
    """Find what resembles a picture that is sent along; the answer names the upload, for further pages."""
    upload = context.uploads.keep(request.picture.file)
    return run_search(context, hosted, [TermRequest(upload=upload.id)], request)
