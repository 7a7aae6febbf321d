"""Search routes: search with words, items and pictures, facets, suggestions and uploads of pictures to search with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Form, Path, Query, Response, UploadFile, status
from pydantic import Field, StringConstraints, model_validator

from diptych.collection import Answer, Answers, Filter, Item, Term, parse_query
from diptych.collection import Query as SearchQuery
from diptych.collection.searching import options as library
from diptych.collection.searching import query as library_query
from diptych.collection.searching.options import Target
from diptych.collection.searching.query import HYBRID_OF_MODE, MAX_QUERY_CHARACTERS, MAX_TERMS
from diptych.collection.store.facets import Facet
from diptych.collection.store.suggestions import Suggestion
from diptych.data.picture_files import split_moment
from diptych.encoders.image.picture_parts import PictureWord
from diptych.service.api.documents import (
    Document,
    Pixels,
    RequestDocument,
    RetrieverSummary,
    binary_response,
    document_of,
    with_examples,
)
from diptych.service.clicks.interleaved_search import interleaved_answers
from diptych.service.clicks.records import InterleavedPage, iso_time
from diptych.service.context import Clicking, Context, Decoding, Hosted, Reading, Searching, ServiceContext, Visitor
from diptych.service.hosting import HostedCollection
from diptych.service.problems import Problem

MAX_WEIGHT = 100

Name = Annotated[str, StringConstraints(min_length=1, max_length=400)]
QueryText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
FilterText = Annotated[str | None, Query(max_length=2000, description="Count only items that meet it.")]
SearchMode = Literal["auto", "similarity", "words", "both"]


class TermRequest(RequestDocument):
    """Words, a stored item or an uploaded picture, with a weight; exactly one of the three is given."""

    text: QueryText | None = None
    """Words, exactly as they are."""
    item: Name | None = None
    """The id of a stored item."""
    upload: Name | None = None
    """The id of an uploaded picture."""
    weight: float = Field(default=1.0, ge=-MAX_WEIGHT, le=MAX_WEIGHT)
    """How much the term counts, other than 0; below 0 asks for what is unlike it."""
    quoted: bool = False
    """Whether the words are asked for as they stand: what holds them one after the other comes first."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(value is not None for value in (self.text, self.item, self.upload)) != 1:
            raise ValueError("a term has exactly one of text, item and upload")
        if self.weight == 0:
            raise ValueError("the weight of a term is a number other than 0")
        if self.text is not None and not self.text.strip():
            raise ValueError("the text of a term holds words")
        return self

    def term(self, context: ServiceContext | None = None) -> Term:
        """Return the term of a query; with the context, an upload is its picture, and otherwise its name."""
        if self.text is not None:
            return Term("text", self.text, self.weight, self.quoted)
        if self.item is not None:
            return Term("item", self.item, self.weight)
        upload = f"upload:{self.upload}" if context is None else context.uploads.find(self.upload or "").file
        return Term("picture", upload, self.weight)


class Question(RequestDocument):
    """What is asked, as text of the query language or as terms: exactly one of the two."""

    query: QueryText | None = None
    """Words; with + and - between terms, weights as in 2:dog, and item:ID for a stored item."""
    terms: list[TermRequest] | None = Field(default=None, min_length=1, max_length=MAX_TERMS)
    """The terms of a query one by one."""

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.query is None) == (self.terms is None):
            raise ValueError("give exactly one of query and terms")
        return self

    @property
    def asked(self) -> list[TermRequest]:
        """The terms."""
        return request_terms(self.query or "") if self.terms is None else self.terms


LibraryOptions: Any = document_of(library.SearchOptions)


class SavedOptions(LibraryOptions):
    """What every way to search can be told, and what a saved search keeps."""

    filter: str | None = Field(default=None, max_length=2000, examples=["label:dog and year>=2010"])
    """Which items to consider."""


class SearchOptions(SavedOptions):
    """How to search, which answers, and what becomes of the search."""

    limit: int = Field(default=30, ge=1, le=200)
    """How many answers."""
    offset: int = Field(default=0, ge=0, le=10_000)
    """How many answers to leave out before them."""
    hybrid: float | None = Field(default=None, ge=0, le=1)
    """Join similarity and words, with this weight of the words; used where there is no mode."""
    mode: SearchMode | None = None
    """Whether to compare what the query means (similarity), to look for its words in captions, file names, labels,
    metadata and the text in pictures (words), or to join these (both); auto looks for names, numbers and quoted words
    by their words, and is what happens where there is neither mode nor hybrid."""
    log: bool = True
    """Whether to remember the search, where searches are remembered at all."""
    search_id: str | None = Field(default=None, min_length=1, max_length=100)
    """The search that this one goes on with, for a further page."""
    draw: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    """What an earlier answer to the same search was drawn with, to see it again or go on with it."""


class SearchRequest(SearchOptions, Question):
    """What to look for, as text of the query language or as terms: exactly one of the two."""

    model_config = with_examples(
        {"query": "a dog on the beach - snow", "limit": 10},
        {"terms": [{"text": "a dog", "weight": 2}, {"item": "5f2b"}], "target": "texts"},
    )


class SearchParameters(SearchOptions):
    """The parameters of a search by address."""

    q: QueryText = Field(examples=["a dog on the beach - snow"])
    """Words; with + and - between terms, weights as in 2:dog, and item:ID for a stored item."""


class UploadForm(Document):
    """A picture to search with."""

    picture: UploadFile
    """The picture: JPEG, PNG, GIF, WebP, AVIF, TIFF, BMP or PPM."""


class PictureSearch(SearchOptions, UploadForm):
    """A picture and how to search with it."""


class RegionDocument(Document):
    """A part of a picture; its sides are shares of the width and height of the picture."""

    left: float
    """The left side, from 0."""
    top: float
    """The upper side, from 0."""
    right: float
    """The right side, up to 1."""
    bottom: float
    """The lower side, up to 1."""
    place: str
    """Where it is, in words."""


class ItemSummary(Document):
    """What lists and answers tell of an item."""

    id: str
    """Its name in addresses."""
    name: str | None
    """The name of the file, without its folder."""
    seconds: float | None
    """Where in a video the picture is, from its beginning; null for what is no video."""
    picture: bool
    """Whether it has a picture."""
    width: Pixels
    height: Pixels
    labels: list[str]
    """What it shows."""
    captions: list[str]
    """What is said of it, or the text itself; of an answer the first five."""
    metadata: dict[str, Any]
    """What else people gave it."""
    facts: dict[str, Any]
    """What its file says of itself: date, camera, place; where metadata have the same name, they hold."""
    content_hash: str | None
    """The SHA-256 of the picture file; the v of a thumbnail's address."""


class AnswerDocument(ItemSummary):
    """An item that a search found."""

    rank: int
    """The place of the answer, from 1."""
    score: float
    """The similarity by this search model; larger is better."""
    probability: float
    """The calibrated probability that the answer is relevant."""
    good: bool
    """Whether that reaches the cut-off, or all the words are there that were looked for."""
    caption: str | None
    """The text that was found, when texts are searched."""
    caption_id: str | None
    """The id of that text."""
    matched_by: list[str]
    """What brought the answer up: "points" of the space, "words" that it holds."""
    matched_fields: list[str]
    """Where the words stand: caption, file name, label, keyword, text in picture, or a field of the metadata."""
    has_words: bool
    """Whether all the words are there that were looked for."""
    picture_words: list[PictureWord]
    """The words that were found in the picture."""
    region: RegionDocument | None
    """The part of the picture that answers better than the whole; null where the whole does."""


class SearchResponse(Document):
    """Answers, best first, and what can be said of all of them."""

    search_id: str | None
    """The name of the search in the click log; null when it is not remembered."""
    query: str
    """The query as it was understood."""
    target: Target
    """Whether pictures or texts were searched."""
    retriever: RetrieverSummary
    """The search model that answered."""
    limit: int
    """How many answers were asked for."""
    offset: int
    """How many better answers were passed over, for earlier pages."""
    considered: int
    """How many pictures or texts the filter left."""
    exact: bool
    """Whether all of them were compared."""
    seconds: float
    """How long the service took to find the answers."""
    no_good_match: bool
    """Whether even the best answer is unlikely: below the cut-off."""
    cutoff: float
    """The probability from which an answer is a good match."""
    upload: str | None
    """The uploaded picture that was asked with, for further pages."""
    answers: list[AnswerDocument]
    """Best first."""
    next_offset: int | None
    """Where the next page begins; null when there is none."""
    notes: list[str]
    """Remarks for the person who asked: a language that is not understood, a field that no item has."""
    mode: Literal["similarity", "words", "both"]
    """What was compared."""
    unwanted: list[str]
    """Words of negative terms, which answers should be unlike: people, in "beach - people" or "beach, no people"."""
    did_you_mean: str | None
    """The query with misspelt words corrected; null where all are known, or nothing is near."""
    is_corrected: bool
    """Whether the corrected query was searched for, since no other spelling was likely; quoted words stay as typed."""
    draw: str | None
    """What the order was drawn with while two search models are interleaved, to be sent along; null otherwise."""


class FacetList(Document):
    """Fields to narrow a search down by."""

    facets: list[Facet]
    """The fields with their most frequent values."""


class SuggestionList(Document):
    """Query suggestions, the likeliest first."""

    suggestions: list[Suggestion]
    """The likeliest first."""


class UploadDocument(Document):
    """A picture that was sent, to be named in the terms of searches."""

    id: str
    """Its name; whoever knows it can search with it."""
    width: int
    """In pixels, as it is seen."""
    height: int
    """In pixels, as it is seen."""
    expires: str
    """When it is forgotten, ISO 8601."""


router = APIRouter(prefix="/v1", tags=["search"], dependencies=[Reading])
_COLLECTION = "/collections/{collection}"


@router.post(_COLLECTION + "/search", operation_id="search", dependencies=[Searching])
def search(context: Context, hosted: Hosted, visitor: Visitor, request: SearchRequest) -> SearchResponse:
    """Find pictures or texts with words, stored items, uploaded pictures, or a weighted sum of them."""
    return run_search(context, hosted, request.asked, request, visitor)


@router.get(_COLLECTION + "/search", operation_id="searchByAddress", dependencies=[Searching])
def search_by_address(
    context: Context, hosted: Hosted, visitor: Visitor, request: Annotated[SearchParameters, Query()]
) -> SearchResponse:
    """Find pictures or texts with a query in the address."""
    return run_search(context, hosted, request_terms(request.q), request, visitor)


@router.post(_COLLECTION + "/search/picture", operation_id="searchWithPicture", dependencies=[Decoding])
def search_with_picture(
    context: Context,
    hosted: Hosted,
    visitor: Visitor,
    request: Annotated[PictureSearch, Form(media_type="multipart/form-data")],
) -> SearchResponse:
    """Find what resembles a picture that is sent along; the answer names the upload, for further pages."""
    upload = context.uploads.add(request.picture.file)
    return run_search(context, hosted, [TermRequest(upload=upload.id)], request, visitor)


@router.get(_COLLECTION + "/facets", operation_id="listFacets", dependencies=[Searching])
def list_facets(
    context: Context,
    hosted: Hosted,
    filter: FilterText = None,
    limit: Annotated[int, Query(ge=1, le=100, description="How many values of each field.")] = 10,
) -> FacetList:
    """Count the labels and metadata of the items that meet a filter."""
    return FacetList(facets=hosted.collection.facets(request_filter(context, filter), limit=limit))


@router.get(_COLLECTION + "/suggestions", operation_id="listSuggestions")
def list_suggestions(
    hosted: Hosted,
    prefix: Annotated[str, Query(max_length=200, description="What has been typed so far.")] = "",
    limit: Annotated[int, Query(ge=1, le=50, description="How many.")] = 8,
) -> SuggestionList:
    """Suggest ways to go on with what has been typed, from labels and captions."""
    return SuggestionList(suggestions=hosted.collection.suggestions(prefix, limit))


def request_terms(query: str) -> list[TermRequest]:
    """Return the terms of a text; names of files in it are never looked up on this machine."""
    terms = parse_query(query, find_picture=lambda _: None).terms
    for term in terms:
        if abs(term.weight) > MAX_WEIGHT:
            detail = f"A weight is at most {MAX_WEIGHT}, got {term.weight:g}; write a smaller one."
            raise Problem(422, "weight-too-large", detail)
    return [
        TermRequest.model_validate({term.kind: term.value, "weight": term.weight, "quoted": term.is_quoted})
        for term in terms
    ]


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
    request = library_query.SearchRequest(
        SearchQuery(tuple(term.term(context) for term in terms)),
        k=options.limit,
        offset=options.offset,
        filter=request_filter(context, options.filter),
        hybrid=options.hybrid if options.mode is None else HYBRID_OF_MODE[options.mode],
        **options.model_dump(include=set(LibraryOptions.model_fields)),
    )
    log = context.click_logs.get(hosted.name)
    logged_terms = [term.model_dump(exclude_none=True) for term in terms]
    both = interleaved_answers(
        hosted.collection, log, request, logged_terms, draw=options.draw, continues=options.search_id
    )
    answers, page = both or (hosted.collection.answer(request), None)
    context.metrics.count_search(hosted.name, no_good_match=answers.no_good_match)
    query = str(SearchQuery(tuple(term.term() for term in terms)))
    search_id = None
    # What is learned from clicks is learned about rankings.
    if log is not None and options.log and options.sort == "relevance" and not context.log_wait(visitor, "search"):
        search_id = log.record_search(
            query=query,
            retriever=answers.retriever,
            fingerprint=answers.fingerprint,
            target=options.target,
            shown=[(answer.id, answer.rank) for answer in answers],
            no_good_match=answers.no_good_match,
            best_probability=answers[0].probability if answers else None,
            continues=options.search_id,
            terms=logged_terms,
            visitor=visitor,
            page=page,
        )
    return _response(terms, options, answers, page, query, search_id, limits.deepest_answer)


def _response(
    terms: Sequence[TermRequest],
    options: SearchOptions,
    answers: Answers,
    page: InterleavedPage | None,
    query: str,
    search_id: str | None,
    deepest: int,
) -> SearchResponse:
    end = options.offset + options.limit
    more = len(answers) > 0 and end < answers.considered and end <= deepest
    same = ("considered", "exact", "seconds", "no_good_match", "cutoff", "mode", "did_you_mean", "is_corrected")
    return SearchResponse(
        search_id=search_id,
        query=query,
        target=options.target,
        retriever=RetrieverSummary(name=answers.retriever, fingerprint=answers.fingerprint),
        limit=options.limit,
        offset=options.offset,
        upload=next((term.upload for term in terms if term.upload is not None), None),
        answers=[answer_document(answer, answer.item, answers.cutoff) for answer in answers if answer.item is not None],
        next_offset=end if more else None,
        notes=list(answers.notes),
        unwanted=[term.text for term in terms if term.text is not None and term.weight < 0],
        draw=None if page is None else page.draw,
        **{name: getattr(answers, name) for name in same},
    )


def answer_document(answer: Answer, item: Item, cutoff: float) -> AnswerDocument:
    """Return an answer as clients see it."""
    same = ("rank", "score", "probability", "caption", "caption_id", "matched_by", "matched_fields", "has_words")
    members = item_members(item)
    return AnswerDocument(
        **members | {"captions": members["captions"][:5]},
        **{name: getattr(answer, name) for name in (*same, "picture_words", "region")},
        good=answer.probability >= cutoff or answer.has_words,
    )


def item_members(item: Item) -> dict[str, Any]:
    """Return what documents of items and of answers have in common."""
    same = ("id", "seconds", "width", "height", "content_hash", "metadata", "facts", "labels", "captions")
    return {
        **{name: getattr(item, name) for name in same},
        "picture": item.path is not None,
        "name": None if item.path is None else split_moment(item.path)[0].name,
    }


uploads_router = APIRouter(prefix="/v1", tags=["uploads"], dependencies=[Reading])
_PREVIEW: dict[int | str, dict[str, Any]] = {200: binary_response("A small JPEG.", ["image/jpeg"])}


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
