"""What a search was told beside the query."""

from __future__ import annotations

from dataclasses import dataclass

from diptych.cli.choices import AnswerFormat, RerankBy, Target, Thumbnails
from diptych.collection import Filter


@dataclass(frozen=True)
class SearchSettings:
    """How to search, and how to show what was found.

    ``min_probability`` None shows the best answers if the first of them passes the cut-off of the collection's
    retriever, and nothing otherwise; a number is asked of every single answer, and 0 shows everything. ``rerank`` is
    how many of the nearest binary codes are scored again.
    """

    k: int = 10
    offset: int = 0
    target: Target = Target.IMAGES
    filter: Filter | None = None
    hybrid: bool = False
    exact: bool = False
    min_probability: float | None = None
    rerank: int | None = None
    rerank_by: RerankBy = RerankBy.CODES
    format: AnswerFormat = AnswerFormat.AUTO
    thumbnails: Thumbnails = Thumbnails.AUTO
