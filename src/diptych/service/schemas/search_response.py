"""The answers of a search, as clients see them."""

from __future__ import annotations

from diptych.service.schemas.answer_document import AnswerDocument
from diptych.service.schemas.document import Document
from diptych.service.schemas.retriever_summary import RetrieverSummary
from diptych.service.schemas.search_options import Target


class SearchResponse(Document):
    """Answers, best first, and what can be said of all of them."""

    search_id: str | None
    """The name of the search in the click log; null when it is not remembered."""
    query: str
    """The query as it was understood."""
    target: Target
    """What was searched."""
    retriever: RetrieverSummary
    """Which retriever answered."""
    limit: int
    """How many answers were asked for."""
    offset: int
    """How many were left out before them."""
    considered: int
    """How many pictures or texts the filter left."""
    exact: bool
    """Whether all of them were compared."""
    seconds: float
    """How long the search took."""
    no_good_match: bool
    """Whether even the best answer is below the cut-off."""
    cutoff: float
    """The probability from which an answer is a good match."""
    upload: str | None
    """The uploaded picture that was asked with, for further pages."""
    answers: list[AnswerDocument]
    """The answers."""
    next_offset: int | None
    """Where the next page begins; null when there is none."""
    draw: str | None = None
    """What the order was drawn with while two retrievers are interleaved, to be sent along; null otherwise."""
