"""Rehearsals over REST: which retriever is tried, and what came out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.service.schemas import Document, RequestDocument
from diptych.service.schemas.retrievers import Fingerprint


class RehearsalRequest(RequestDocument):
    """Which search model is tried, and on how much."""

    retriever: str = Field(min_length=1, max_length=200)
    """One that needs no training, as this version has it, or the name of a stored one."""
    sample: int = Field(default=500, ge=2, le=100_000)
    """How many pictures are encoded."""
    n_queries: int = Field(default=1000, ge=1, le=100_000)
    """How many captions, and how many logged queries, are asked at most."""
    random_state: int = Field(default=0, ge=0, lt=2**31)
    """Of the draws."""


class MeasureDocument(Document):
    """A measure with both search models, and how far luck explains the difference."""

    measure: str
    old: float
    """Its mean with the present search model."""
    new: float
    """Its mean with the one that was tried."""
    low: float
    """The lower end of new − old, with a confidence of 95 %."""
    high: float
    """The upper end."""
    p_value: float
    """How likely so large a difference is if neither is better: a randomisation test, two-sided."""


class QuestionDocument(Document):
    """A question whose right answer came further up or down."""

    text: str
    asked: float
    """How often it was asked; 1 for a caption."""
    old_rank: float
    """The place of the first right answer in the sample, with the present search model."""
    new_rank: float
    """Its place with the one that was tried."""
    right: list[str]
    """The ids of the right answers."""
    old_answers: list[str]
    """The ids of the first answers of the present search model."""
    new_answers: list[str]
    """The ids of the first answers of the one that was tried."""


class QuestionsDocument(Document):
    """What came out of one kind of question."""

    kind: Literal["captions", "queries"]
    """Captions, each of which should find its picture, or logged queries, which should find what was clicked."""
    n_questions: int
    n_units: int
    """How many of them are independent: pictures, or queries of different words."""
    differences: list[MeasureDocument]
    """The reciprocal rank first."""
    no_match_old: float
    """The share of questions that the present search model answers with no good match."""
    no_match_new: float
    """The same of the one that was tried."""
    n_won: int
    n_lost: int
    won: list[QuestionDocument]
    """Those whose right answer came up furthest."""
    lost: list[QuestionDocument]
    """Those whose right answer went down furthest."""


class RehearsalDocument(Document):
    """Two search models, side by side, on a sample of the collection."""

    retriever: str
    """What was asked for."""
    made: str
    """When, ISO 8601."""
    old: str
    """The present search model then."""
    old_fingerprint: Fingerprint
    new: str
    """The one that was tried."""
    new_fingerprint: Fingerprint
    outcome: Literal["better", "worse", "mixed", "undecided"]
    """What the questions say of the one that was tried; mixed where captions and queries contradict each other."""
    verdict: list[str]
    """The same in words, a sentence for each kind of question."""
    sampled: str
    """What was drawn, in words."""
    n_sample: int
    n_pictures: int
    n_captions: int
    alpha: float
    """How small p must be."""
    questions: list[QuestionsDocument]
    n_unjudged: int
    """How many logged queries have no clicked picture in the sample."""
    overlap: float | None
    """The share of the first ten answers to these that both search models have in common."""
    reencode_seconds: float
    """What encoding the whole collection would take at the pace of the sample."""
    reads_pictures: bool
    """Whether pictures would have to be read again."""
    notes: list[str]
    """What makes the comparison less fair, or less sure, than it looks."""


class RehearsalList(Document):
    """What was tried, the latest first; one report for each search model."""

    rehearsals: list[RehearsalDocument]
