"""Search over REST: requests, answers and why they are there, facets, suggestions, and uploaded pictures."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from diptych.collection.searching.query import MAX_QUERY_CHARACTERS, MAX_TERMS
from diptych.collection.searching.request import Sort, Target
from diptych.service.schemas import Document, Pixels, RequestDocument, with_examples
from diptych.service.schemas.retrievers import RetrieverSummary

_Words = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=400)]


class TermRequest(RequestDocument):
    """Words, a stored item or an uploaded picture, with a weight; exactly one of the three is given."""

    text: _Words | None = None
    """Words, exactly as they are."""
    item: _Name | None = None
    """The id of a stored item."""
    upload: _Name | None = None
    """The id of an uploaded picture."""
    weight: float = Field(default=1.0, ge=-100, le=100)
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


SearchMode = Literal["auto", "similarity", "words", "both"]


class SavedOptions(Document):
    """What every way to search can be told, and what a saved search keeps."""

    target: Target = "images"
    """What to find: pictures or texts."""
    filter: str | None = Field(default=None, max_length=2000, examples=["label:dog and year>=2010"])
    """Which items to consider."""
    exact: bool | None = None
    """Compare everything (true), use the index (false), or decide by size."""
    min_probability: float | None = Field(default=None, ge=0, le=1)
    """Leave out answers that are less likely relevant."""
    sort: Sort = "relevance"
    """The order of the good answers: relevance, taken or added (the latest first), or name. The click log remembers
    only searches by relevance."""
    retriever: str | None = Field(default=None, min_length=1, max_length=200)
    """The name of a search model (retriever) of the collection; by default the active one."""
    regions: bool = True
    """Whether parts of pictures are compared too, where a job of kind regions has read them."""


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


class SearchRequest(SearchOptions, RequestDocument):
    """What to look for, as text of the query language or as terms: exactly one of the two."""

    model_config = with_examples(
        {"query": "a dog on the beach - snow", "limit": 10},
        {"terms": [{"text": "a dog", "weight": 2}, {"item": "5f2b"}], "target": "texts"},
    )

    query: str | None = Field(default=None, min_length=1, max_length=MAX_QUERY_CHARACTERS)
    """Words; with + and - between terms, weights as in 2:dog, and item:ID for a stored item."""
    terms: list[TermRequest] | None = Field(default=None, min_length=1, max_length=MAX_TERMS)
    """The terms of a query one by one."""

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.query is None) == (self.terms is None):
            raise ValueError("a search has exactly one of query and terms")
        return self


class SearchParameters(SearchOptions):
    """The parameters of a search by address."""

    q: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, examples=["a dog on the beach - snow"])
    """Words; with + and - between terms, weights as in 2:dog, and item:ID for a stored item."""


class PictureWordDocument(Document):
    """A word that stands in a picture."""

    text: str
    corners: list[tuple[float, float]]
    """Its box: (x, y) from the top left of the word clockwise, as shares of the width and height of the picture."""


class RegionDocument(Document):
    """A part of a picture; its sides are shares of the width and height of the picture."""

    left: float
    top: float
    right: float
    bottom: float
    place: str
    """Where it is, in words."""


class AnswerDocument(Document):
    """An item that a search found."""

    rank: int
    """The place of the answer, from 1."""
    id: str
    """The item."""
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
    picture: bool
    width: Pixels
    height: Pixels
    labels: list[str]
    captions: list[str]
    """The first captions of the item, at most five."""
    metadata: dict[str, Any]
    """What else people gave the item."""
    facts: dict[str, Any]
    """What its file says of itself: date, camera, place; where metadata have the same name, they hold."""
    name: str | None
    """The name of the file, without its folder."""
    seconds: float | None
    """Where in a video the picture is, from its beginning; null for what is no video."""
    content_hash: str | None
    """The SHA-256 of the picture; the v of a thumbnail's address."""
    matched_fields: list[str] = Field(default_factory=list)
    """Where the words stand: caption, file name, label, keyword, text in picture, or a field of the metadata."""
    has_words: bool = False
    """Whether all the words are there that were looked for."""
    picture_words: list[PictureWordDocument] = Field(default_factory=list)
    """The words that were found in the picture."""
    region: RegionDocument | None = None
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
    next_offset: int | None
    """Where the next page begins; null when there is none."""
    notes: list[str] = Field(default_factory=list)
    """Remarks for the person who asked: a language that is not understood, a field that no item has."""
    mode: Literal["similarity", "words", "both"] = "similarity"
    """What was compared."""
    unwanted: list[str] = Field(default_factory=list)
    """Words of negative terms, which answers should be unlike: people, in "beach - people" or "beach, no people"."""
    did_you_mean: str | None = None
    """The query with misspelt words corrected; null where all are known, or nothing is near."""
    is_corrected: bool = False
    """Whether the corrected query was searched for, since no other spelling was likely; quoted words stay as typed."""
    draw: str | None = None
    """What the order was drawn with while two search models are interleaved, to be sent along; null otherwise."""


class FacetValueDocument(Document):
    """A value, how many items have it, and the filter that finds them."""

    value: bool | int | float | str
    count: int
    filter: str
    """What to send as filter to find those."""


class FacetDocument(Document):
    """A field to narrow a search down by."""

    field: str
    """The name that filters use."""
    kind: Literal["values", "range"]
    """Whether it has a few values or a range of numbers."""
    values: list[FacetValueDocument]
    """The most frequent values."""
    minimum: float | None
    maximum: float | None


class FacetList(Document):
    """Fields to narrow a search down by."""

    facets: list[FacetDocument]


class SuggestionDocument(Document):
    """A query suggestion."""

    text: str
    """The whole query."""
    kind: Literal["label", "caption", "query"]
    """Where it comes from."""
    count: int
    """How often it occurs there."""


class SuggestionList(Document):
    """Query suggestions, the likeliest first."""

    suggestions: list[SuggestionDocument]


class UploadDocument(Document):
    """A picture that was sent, to be named in the terms of searches."""

    id: str
    """Its name; whoever knows it can search with it."""
    width: int
    """In pixels, as it is seen."""
    height: int
    expires: str
    """When it is forgotten, ISO 8601."""


class ExplanationRequest(RequestDocument):
    """The search as it was sent, and one of its answers."""

    model_config = with_examples({"query": "a dog on the beach", "item": "5f2b"})

    query: str | None = Field(default=None, min_length=1, max_length=MAX_QUERY_CHARACTERS)
    """Words of the query language, as in a search."""
    terms: list[TermRequest] | None = Field(default=None, min_length=1, max_length=MAX_TERMS)
    """The terms of a query one by one."""
    item: str = Field(min_length=1, max_length=400)
    """The id of the answer."""
    caption_id: str | None = Field(default=None, min_length=1, max_length=400)
    """Which of the item's texts, where texts were searched; by default the first."""
    target: Target = "images"
    """What was searched: pictures or texts."""
    retriever: str | None = Field(default=None, min_length=1, max_length=200)
    """The name of a search model (retriever) of the collection; by default the active one."""

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.query is None) == (self.terms is None):
            raise ValueError("an explanation has exactly one of query and terms")
        if self.caption_id is not None and self.target == "images":
            raise ValueError("caption_id belongs to the target texts")
        return self


class ContributionDocument(Document):
    """What one class, label, word or pair of features adds to the score."""

    name: str
    """The class, label, word or pair."""
    query: float | None
    """How strong it is in the query, where that is a number."""
    answer: float | None
    """How strong it is in the answer, where that is a number."""
    contribution: float
    """What it adds to the score; below 0 it counts against the answer."""
    term: int
    """The number of the query's term that it belongs to, from 0."""


class ExplainedTermDocument(Document):
    """A term of the query and what it brings."""

    name: str
    """The words, or the name of the picture."""
    weight: float
    score: float
    """The score of the answer for this term alone."""
    contribution: float
    """Its part of the score of the whole query; the parts of all terms sum to it."""


class ViewDocument(Document):
    """The bars of one idea."""

    kind: Literal["parts", "classes", "labels", "words", "pairs"]
    """What the bars stand for."""
    title: str
    sentence: str
    bars: list[ContributionDocument]
    """Words in the order of the text, everything else with the weightiest first."""
    additive: bool
    """Whether bars and remainder sum to the score."""
    remainder: float | None
    """What everything without a bar adds, where that is known."""
    note: str
    """What was left out, and how the numbers were made."""


class ExplanationDocument(Document):
    """Why an answer is there: a sentence, the bars that tell most, and all views."""

    kind: Literal["parts", "classes", "labels", "words", "pairs", "none"]
    """What the bars stand for: fused models, classes, labels of a picture, words left out, pairs of features."""
    summary: str
    """The explanation in plain English."""
    score: float
    terms: list[ExplainedTermDocument]
    """The terms of the query, each with its part of the score."""
    bars: list[ContributionDocument]
    note: str
    """What the bars leave out, and how the score was made."""
    views: list[ViewDocument]
    """All views, the one that tells most first."""
