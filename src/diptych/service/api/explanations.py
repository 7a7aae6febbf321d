"""Why an answer is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from fastapi import APIRouter
from pydantic import Field, model_validator, with_config

from diptych.collection import Collection, Item
from diptych.collection.retriever_protocol import without_disk_cache
from diptych.collection.searching.options import Target
from diptych.retriever.explaining.explanation import Explanation
from diptych.service.api.documents import DOCUMENTED, RetrieverChoice, with_examples
from diptych.service.api.items import find_item
from diptych.service.api.search import Question, TermRequest
from diptych.service.context import Context, Hosted, Reading, Searching, ServiceContext
from diptych.service.problems import Problem

if TYPE_CHECKING:
    from diptych.retriever import Retriever, Subject

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
def explain_answer(context: Context, hosted: Hosted, request: ExplanationRequest) -> Explanation:
    """Tell why an item answers a query: by parts, classes, labels or words, as the model has it."""
    # Imported where something is explained, as below: a service starts without the methods.
    from diptych.retriever import Retriever, Subject, explain

    collection = hosted.collection
    retriever = collection.retriever_named(request.retriever)
    if not isinstance(retriever, Retriever):
        raise Problem(422, "not-explainable", "The search model of this collection cannot tell why; choose another.")
    terms = request.asked
    item = find_item(collection, request.item)
    answer = (
        _picture_subject(collection, retriever, item, request.retriever)
        if request.target == "images"
        else Subject.of_text(retriever, _caption(item, request.caption_id))
    )
    if answer is None:
        raise Problem(422, "no-picture", f"The item {item.id!r} has no picture that was searched; ask for its texts.")
    subjects = [_term_subject(context, collection, retriever, term, request.retriever) for term in terms]
    return explain(without_disk_cache(retriever), subjects, answer, weights=[term.weight for term in terms])


def _term_subject(
    context: ServiceContext, collection: Collection, retriever: Retriever, term: TermRequest, name: str | None
) -> Subject:
    from diptych.retriever import Subject

    if term.text is not None:
        return Subject.of_text(retriever, term.text, asks=True)
    if term.upload is not None:
        return replace(Subject.of_picture(retriever, context.uploads.find(term.upload).file), name="your picture")
    item = find_item(collection, term.item or "")
    # Several pictures may be asked with, so that each goes by its own name.
    shown = item.id if item.path is None else Path(item.path).name
    picture = _picture_subject(collection, retriever, item, name, shown)
    return Subject.of_text(retriever, _caption(item, None)) if picture is None else picture


def _picture_subject(
    collection: Collection, retriever: Retriever, item: Item, name: str | None, shown: str = "the picture"
) -> Subject | None:
    """Return an item's picture by what is stored of it, None where that is nothing."""
    from diptych.retriever import Subject

    _, points = collection.points("image", [item.id], name)
    _, features = collection.features("image", [item.id], name)
    return Subject.of_stored_picture(retriever, features, points, shown) if len(points) else None


def _caption(item: Item, caption_id: str | None) -> str:
    if caption_id is None and item.captions:
        return item.captions[0]
    if caption_id is None:
        raise Problem(422, "no-caption", f"The item {item.id!r} has no text; ask for its picture.")
    if caption_id not in item.caption_ids:
        detail = f"The item {item.id!r} has no text {caption_id!r}; take that of an answer."
        raise Problem(404, "no-such-caption", detail)
    return item.captions[item.caption_ids.index(caption_id)]
