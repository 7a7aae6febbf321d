"""Search routes: search, interleaved or not, with facets, suggestions and uploads of pictures to search with."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Query, Response, UploadFile, status

from diptych.collection import (
    Answer,
    Answers,
    Collection,
    Filter,
    Item,
    Term,
    UnknownRetrieverError,
    parse_query,
)
from diptych.collection import Query as SearchQuery
from diptych.collection.searching.query import HYBRID_OF_MODE
from diptych.collection.searching.request import SearchRequest as CollectionRequest
from diptych.data.picture_files import split_moment
from diptych.metrics import team_draft
from diptych.service.clicks import ClickLog
from diptych.service.clicks.interleavings import Interleaving
from diptych.service.clicks.records import InterleavedPage, is_plain
from diptych.service.clicks.reports import iso_time
from diptych.service.context import (
    Clicking,
    Context,
    Decoding,
    Hosted,
    Reading,
    Searching,
    ServiceContext,
    Visitor,
)
from diptych.service.hosting import HostedCollection
from diptych.service.problems import Problem
from diptych.service.schemas import Document
from diptych.service.schemas.retrievers import RetrieverSummary
from diptych.service.schemas.search import (
    AnswerDocument,
    FacetList,
    PictureWordDocument,
    RegionDocument,
    SearchOptions,
    SearchParameters,
    SearchRequest,
    SearchResponse,
    SuggestionList,
    TermRequest,
    UploadDocument,
)

_SAME_OPTIONS = {one.name for one in fields(CollectionRequest)} & SearchOptions.model_fields.keys() - {
    "filter",
    "hybrid",
}


def request_filter(context: ServiceContext, text: str | None) -> Filter | None:
    """Return what a text filters by; every condition costs a look at every item, so there may be only so many."""
    if text is None:
        return None
    wanted = Filter.parse(text)
    most = context.settings.limits.filter_conditions
    conditions = _count_conditions(wanted)
    if conditions > most:
        raise Problem(422, "filter-too-long", f"The filter has {conditions} conditions; write it with at most {most}.")
    return wanted


def _count_conditions(wanted: Filter) -> int:
    return sum(_count_conditions(part) for part in wanted.parts) or 1


def _interleaved_answers(
    collection: Collection,
    log: ClickLog | None,
    request: CollectionRequest,
    terms: Sequence[TermRequest],
    options: SearchOptions,
) -> tuple[Answers, InterleavedPage] | None:
    """Return one page of both retrievers' answers with their teams, or None where one retriever is to answer.

    Two answer while the log says that they are interleaved, and both are there as they were when that began. Only
    searches for pictures with words alone take part.
    """
    # Whoever names a retriever wants that one, and two retrievers do not mean the same by a least probability.
    is_usual = options.target == "images" and options.retriever is None and options.min_probability is None
    is_usual = is_usual and options.sort == "relevance"
    if log is None or not is_usual or not is_plain(str(request.query), _term_documents(terms)):
        return None
    present = log.interleaving()
    if present is None:
        return None
    draw = options.draw or _continued_search(log, present, request.query, options) or secrets.token_hex(16)
    rankings = _rankings(collection, present, request)
    return None if rankings is None else _interleaved_page(present, rankings, options, draw)


def _term_documents(terms: Sequence[TermRequest]) -> list[dict[str, Any]]:
    return [term.model_dump(exclude_none=True) for term in terms]


def _continued_search(log: ClickLog, present: Interleaving, query: SearchQuery, options: SearchOptions) -> str | None:
    """Return the search that this page goes on with, whose id its teams were drawn with."""
    asked = {"query": str(query), "retriever": present.name, "fingerprint": present.fingerprint}
    if options.search_id is None or not log.may_continue(options.search_id, target=options.target, **asked):
        return None
    return options.search_id


def _rankings(
    collection: Collection, present: Interleaving, request: CollectionRequest
) -> tuple[Answers, Answers] | None:
    whole = replace(request, k=request.offset + request.k, offset=0)
    try:
        a, b = (collection.answer(replace(whole, retriever=one)) for one in (present.a, present.b))
    except UnknownRetrieverError:
        return None
    is_as_it_was = (a.fingerprint, b.fingerprint) == (present.a_fingerprint, present.b_fingerprint)
    return (a, b) if is_as_it_was else None


def _interleaved_page(
    present: Interleaving, rankings: tuple[Answers, Answers], options: SearchOptions, draw: str
) -> tuple[Answers, InterleavedPage]:
    a, b = rankings
    found = {"a": {answer.id: answer for answer in a}, "b": {answer.id: answer for answer in b}}
    end = options.offset + options.limit
    drafted = team_draft(list(found["a"]), list(found["b"]), end, seed=bytes.fromhex(draw))[options.offset :]
    page = tuple(
        replace(found[team][item], rank=rank) for rank, (item, team) in enumerate(drafted, start=options.offset + 1)
    )
    answers = Answers(
        page,
        no_good_match=a.no_good_match and b.no_good_match,
        considered=max(a.considered, b.considered),
        exact=a.exact and b.exact,
        seconds=a.seconds + b.seconds,
        notes=a.notes,
        retriever=present.name,
        fingerprint=present.fingerprint,
        cutoff=min(a.cutoff, b.cutoff),
        mode=a.mode,
        did_you_mean=a.did_you_mean,
        is_corrected=a.is_corrected,
    )
    return answers, InterleavedPage(present.number, draw, [team for _, team in drafted])


def request_terms(query: str | None, terms: Sequence[TermRequest] | None) -> list[TermRequest]:
    """Return what is asked as terms; names of files in a text are never looked up on this machine."""
    if terms is not None:
        return list(terms)
    return [_term_request(term) for term in parse_query(query or "", find_picture=lambda _: None).terms]


def _query_text(terms: Sequence[TermRequest]) -> str:
    return str(SearchQuery(tuple(Term(_term_kind(term), _term_text(term), term.weight, term.quoted) for term in terms)))


def run_search(
    context: ServiceContext,
    hosted: HostedCollection,
    terms: Sequence[TermRequest],
    options: SearchOptions,
    visitor: str | None = None,
) -> SearchResponse:
    """Search, remember the search where that is wanted, and return what the client gets."""
    limits = context.settings.limits
    if options.limit > limits.page_size:
        raise Problem(422, "page-too-large", f"A page has at most {limits.page_size} answers; ask for the next page.")
    if options.offset > limits.deepest_answer:
        raise Problem(422, "page-too-deep", f"Answers end at {limits.deepest_answer:,}; ask more precisely.")
    answers, page = _search_answers(context, hosted, terms, options)
    # What is learned from clicks is learned about rankings.
    is_logged = options.log and options.sort == "relevance"
    context.metrics.count_search(hosted.name, no_good_match=answers.no_good_match)
    end = options.offset + options.limit
    more = len(answers) > 0 and end < answers.considered and end <= limits.deepest_answer
    return SearchResponse(
        search_id=_record_search(context, hosted, terms, options, answers, page, visitor) if is_logged else None,
        query=_query_text(terms),
        target=options.target,
        retriever=RetrieverSummary(name=answers.retriever, fingerprint=answers.fingerprint),
        limit=options.limit,
        offset=options.offset,
        considered=answers.considered,
        exact=answers.exact,
        seconds=answers.seconds,
        no_good_match=answers.no_good_match,
        cutoff=answers.cutoff,
        upload=next((term.upload for term in terms if term.upload is not None), None),
        answers=[_document(answer, answer.item, answers.cutoff) for answer in answers if answer.item is not None],
        next_offset=end if more else None,
        notes=list(answers.notes),
        mode=answers.mode,
        unwanted=[term.text for term in terms if term.text is not None and term.weight < 0],
        did_you_mean=answers.did_you_mean,
        is_corrected=answers.is_corrected,
        draw=None if page is None else page.draw,
    )


def _search_answers(
    context: ServiceContext, hosted: HostedCollection, terms: Sequence[TermRequest], options: SearchOptions
) -> tuple[Answers, InterleavedPage | None]:
    request = _collection_request(context, terms, options)
    log = context.click_logs.get(hosted.name)
    both = _interleaved_answers(hosted.collection, log, request, terms, options)
    return (hosted.collection.answer(request), None) if both is None else both


def _collection_request(
    context: ServiceContext, terms: Sequence[TermRequest], options: SearchOptions
) -> CollectionRequest:
    """Return what a collection is asked; options that it has by the same name mean the same."""
    return CollectionRequest(
        SearchQuery(tuple(_term(context, term) for term in terms)),
        k=options.limit,
        filter=request_filter(context, options.filter),
        hybrid=options.hybrid if options.mode is None else HYBRID_OF_MODE[options.mode],
        **options.model_dump(include=_SAME_OPTIONS),
    )


def _record_search(
    context: ServiceContext,
    hosted: HostedCollection,
    terms: Sequence[TermRequest],
    options: SearchOptions,
    answers: Answers,
    page: InterleavedPage | None,
    visitor: str | None,
) -> str | None:
    log = context.click_logs.get(hosted.name)
    if log is None or context.log_wait(visitor, "search"):
        return None
    return log.record_search(
        query=_query_text(terms),
        retriever=answers.retriever,
        fingerprint=answers.fingerprint,
        target=options.target,
        shown=[(answer.id, answer.rank) for answer in answers],
        no_good_match=answers.no_good_match,
        best_probability=answers[0].probability if answers else None,
        continues=options.search_id,
        terms=_term_documents(terms),
        visitor=visitor,
        page=page,
    )


def item_members(item: Item) -> dict[str, Any]:
    """Return what documents of items and of answers have in common."""
    return {
        **{name: getattr(item, name) for name in ("id", "seconds", "width", "height", "content_hash")},
        **{name: dict(getattr(item, name)) for name in ("metadata", "facts")},
        "labels": list(item.labels),
        "captions": list(item.captions),
        "picture": item.path is not None,
        "name": None if item.path is None else split_moment(item.path)[0].name,
    }


def _document(answer: Answer, item: Item, cutoff: float) -> AnswerDocument:
    members = item_members(item)
    members |= {name: getattr(answer, name) for name in ("rank", "score", "probability", "caption", "caption_id")}
    region = answer.region
    # Nothing here comes from outside, so it need not be checked again.
    return AnswerDocument.model_construct(
        **members | {"captions": members["captions"][:5]},
        good=answer.probability >= cutoff or answer.has_words,
        matched_by=list(answer.matched_by),
        matched_fields=list(answer.matched_fields),
        has_words=answer.has_words,
        picture_words=[
            PictureWordDocument.model_construct(text=word.text, corners=list(word.corners))
            for word in answer.picture_words
        ],
        region=None if region is None else RegionDocument.model_construct(**asdict(region), place=region.place),
    )


def _term_request(term: Term) -> TermRequest:
    if abs(term.weight) > 100:
        raise Problem(422, "weight-too-large", f"A weight is at most 100, got {term.weight:g}; write a smaller one.")
    return TermRequest.model_validate({term.kind: term.value, "weight": term.weight, "quoted": term.is_quoted})


def _term(context: ServiceContext, term: TermRequest) -> Term:
    if term.upload is not None:
        return Term("picture", context.uploads.find(term.upload).file, term.weight)
    return Term(_term_kind(term), _term_text(term), term.weight, term.quoted)


def _term_kind(term: TermRequest) -> Any:
    return "text" if term.text is not None else "item" if term.item is not None else "picture"


def _term_text(term: TermRequest) -> str:
    return term.text or term.item or f"upload:{term.upload}"


class UploadForm(Document):
    """A picture to search with."""

    picture: UploadFile
    """The picture: JPEG, PNG, GIF, WebP, AVIF, TIFF, BMP or PPM."""


class PictureSearch(SearchOptions, UploadForm):
    """A picture and how to search with it."""


router = APIRouter(prefix="/v1", tags=["search"], dependencies=[Reading])


@router.post("/collections/{collection}/search", operation_id="search", dependencies=[Searching])
def search(
    context: Context,
    hosted: Hosted,
    visitor: Visitor,
    request: SearchRequest,
) -> SearchResponse:
    """Find pictures or texts with words, stored items, uploaded pictures, or a weighted sum of them."""
    return run_search(context, hosted, request_terms(request.query, request.terms), request, visitor)


@router.get("/collections/{collection}/search", operation_id="searchByAddress", dependencies=[Searching])
def search_by_address(
    context: Context, hosted: Hosted, visitor: Visitor, request: Annotated[SearchParameters, Query()]
) -> SearchResponse:
    """Find pictures or texts with a query in the address."""
    return run_search(context, hosted, request_terms(request.q, None), request, visitor)


@router.post("/collections/{collection}/search/picture", operation_id="searchWithPicture", dependencies=[Decoding])
def search_with_picture(
    context: Context,
    hosted: Hosted,
    visitor: Visitor,
    request: Annotated[PictureSearch, Form(media_type="multipart/form-data")],
) -> SearchResponse:
    """Find what resembles a picture that is sent along; the answer names the upload, for further pages."""
    upload = context.uploads.add(request.picture.file)
    return run_search(context, hosted, [TermRequest(upload=upload.id)], request, visitor)


@router.get("/collections/{collection}/facets", operation_id="listFacets", dependencies=[Searching])
def list_facets(
    context: Context,
    hosted: Hosted,
    filter: Annotated[str | None, Query(max_length=2000, description="Count only items that meet it.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="How many values of each field.")] = 10,
) -> FacetList:
    """Count the labels and metadata of the items that meet a filter."""
    found = hosted.collection.facets(request_filter(context, filter), limit=limit)
    return FacetList.model_validate({"facets": found}, from_attributes=True)


@router.get("/collections/{collection}/suggestions", operation_id="listSuggestions")
def list_suggestions(
    hosted: Hosted,
    prefix: Annotated[str, Query(max_length=200, description="What has been typed so far.")] = "",
    limit: Annotated[int, Query(ge=1, le=50, description="How many.")] = 8,
) -> SuggestionList:
    """Suggest ways to go on with what has been typed, from labels and captions."""
    found = hosted.collection.suggestions(prefix, limit)
    return SuggestionList.model_validate({"suggestions": found}, from_attributes=True)


uploads_router = APIRouter(prefix="/v1", tags=["uploads"], dependencies=[Reading])

_PREVIEW: dict[int | str, dict[str, Any]] = {
    200: {"description": "A small JPEG.", "content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}}
}


@uploads_router.post(
    "/uploads", operation_id="upload", status_code=status.HTTP_201_CREATED, dependencies=[Clicking, Decoding]
)
def upload(
    context: Context, form: Annotated[UploadForm, Form(media_type="multipart/form-data")], response: Response
) -> UploadDocument:
    """Send a picture to search with; it is kept for a while and then forgotten."""
    kept = context.uploads.add(form.picture.file)
    context.metrics.uploads.inc()
    response.headers["Location"] = f"/v1/uploads/{kept.id}"
    return UploadDocument(id=kept.id, width=kept.width, height=kept.height, expires=iso_time(int(kept.expires)))


@uploads_router.get("/uploads/{upload_id}", operation_id="getUpload", response_class=Response, responses=_PREVIEW)
def get_upload(
    context: Context, upload_id: Annotated[str, Path(description="Id of the upload.", max_length=400)]
) -> Response:
    """Return a small JPEG of a picture that was sent."""
    kept, preview = context.uploads.read_preview(upload_id)
    headers = {"Cache-Control": "private, max-age=3600", "ETag": f'"{kept.id}"'}
    return Response(preview, media_type="image/jpeg", headers=headers)
