"""Why an answer is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter

from diptych.collection import Collection, Item
from diptych.collection.retriever_protocol import without_disk_cache
from diptych.service.api.items import find_item
from diptych.service.api.search import request_terms
from diptych.service.context import Context, Hosted, Reading, Searching, ServiceContext
from diptych.service.problems import Problem
from diptych.service.schemas.search import ExplanationDocument, ExplanationRequest, TermRequest

if TYPE_CHECKING:
    from diptych.retriever import Retriever, Subject

router = APIRouter(prefix="/v1", tags=["explanations"], dependencies=[Reading])


@router.post("/collections/{collection}/explanations", operation_id="explainAnswer", dependencies=[Searching])
def explain_answer(context: Context, hosted: Hosted, request: ExplanationRequest) -> ExplanationDocument:
    """Tell why an item answers a query: by parts, classes, labels, words or pairs of features, as the model has it."""
    # Imported where something is explained, as below: a service starts without the methods.
    from diptych.retriever import Retriever, Subject, explain

    collection = hosted.collection
    retriever = collection.retriever_named(request.retriever)
    if not isinstance(retriever, Retriever):
        raise Problem(422, "not-explainable", "The search model of this collection cannot tell why; choose another.")
    terms = request_terms(request.query, request.terms)
    item = find_item(collection, request.item)
    answer = (
        _picture_subject(collection, retriever, item, request.retriever)
        if request.target == "images"
        else Subject.of_text(retriever, _caption(item, request.caption_id))
    )
    if answer is None:
        raise Problem(422, "no-picture", f"The item {item.id!r} has no picture that was searched; ask for its texts.")
    subjects = [_term_subject(context, collection, retriever, term, request.retriever) for term in terms]
    explanation = explain(without_disk_cache(retriever), subjects, answer, weights=[term.weight for term in terms])
    return ExplanationDocument.model_validate(explanation.document())


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
