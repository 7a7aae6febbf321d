"""Explanations over REST: why an item answers a query."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from diptych.service.schemas import Document, RequestDocument, with_examples
from diptych.service.schemas.search import Target, TermRequest


class ExplanationRequest(RequestDocument):
    """The search as it was sent, and one of its answers."""

    model_config = with_examples({"query": "a dog on the beach", "item": "5f2b"})

    query: str | None = Field(default=None, min_length=1, max_length=2000)
    """Words of the query language, as in a search."""
    terms: list[TermRequest] | None = Field(default=None, min_length=1, max_length=16)
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
