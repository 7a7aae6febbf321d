"""Why an answer is there."""

from __future__ import annotations

from typing import Self

from fastapi import APIRouter
from pydantic import Field, model_validator, with_config

from diptych.collection import Item, Query
from diptych.collection.searching.explaining import explain_answer
from diptych.collection.searching.options import Target
from diptych.retriever.explaining.explanation import Explanation
from diptych.service.api.documents import DOCUMENTED, RetrieverChoice, with_examples
from diptych.service.api.items import find_item
from diptych.service.api.search import Question
from diptych.service.context import Context, Hosted, Reading, Searching
from diptych.service.problems import Problem

with_config(DOCUMENTED)(Explanation)


class ExplanationRequest(Question):
    """The search as it was sent, and one of its answers."""

    model_config = with_examples({"query": "a dog on the beach", "item": "5f2b"})

    item: str = Field(min_length=1, max_length=400)
    """The id of the answer."""
    caption_id: str | None = Field(default=None, min_length=1, max_length=400)
    """Which of the item's texts, where texts were searched; by default the first."""
    target: Target = "images"
    """What was searched: pictures or texts."""
    retriever: RetrieverChoice = None

    @model_validator(mode="after")
    def _caption_of_texts(self) -> Self:
        if self.caption_id is not None and self.target == "images":
            raise ValueError("caption_id belongs to the target texts")
        return self


router = APIRouter(prefix="/v1", tags=["explanations"], dependencies=[Reading])


@router.post("/collections/{collection}/explanations", operation_id="explainAnswer", dependencies=[Searching])
def explain(context: Context, hosted: Hosted, request: ExplanationRequest) -> Explanation:
    """Tell why an item answers a query: by parts, classes, labels or words, as the model has it."""
    item = find_item(hosted.collection, request.item)
    caption = None if request.target == "images" else _caption(item, request.caption_id)
    query = Query(tuple(term.term(context) for term in request.asked))
    return explain_answer(hosted.collection, query, item, caption=caption, retriever=request.retriever)


def _caption(item: Item, caption_id: str | None) -> str:
    if caption_id is None and item.captions:
        return item.captions[0]
    if caption_id is None:
        raise Problem(422, "no-caption", f"The item {item.id!r} has no text; ask for its picture.")
    if caption_id not in item.caption_ids:
        detail = f"The item {item.id!r} has no text {caption_id!r}; take that of an answer."
        raise Problem(404, "no-such-caption", detail)
    return item.captions[item.caption_ids.index(caption_id)]
