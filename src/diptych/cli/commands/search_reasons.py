"""``diptych search --why``: the reasons of the first answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.cli.console.paths import printable
from diptych.collection import Answer, Collection, Query, Term
from diptych.errors import InvalidInputError
from diptych.retriever import Retriever, Subject, explain

_MOST_ANSWERS = 3
_MOST_BARS = 5


def why_lines(collection: Collection, query: Query, answers: Sequence[Answer]) -> list[str]:
    """Return the reasons of the first answers, a sentence each and the bars that tell most below it."""
    retriever = collection.retriever
    if not isinstance(retriever, Retriever):
        raise InvalidInputError(f"a collection with a {type(retriever).__name__} cannot tell why")
    subjects = [_query_subject(collection, retriever, term) for term in query.terms]
    weights = [term.weight for term in query.terms]
    lines = []
    for answer in answers[:_MOST_ANSWERS]:
        explanation = explain(retriever, subjects, _answer_subject(collection, retriever, answer), weights=weights)
        lines.append(f"{answer.rank}  {printable(explanation.summary)}")
        strongest = sorted(explanation.bars, key=lambda bar: -abs(bar.contribution))[:_MOST_BARS]
        lines += [f"   {bar.contribution:+.3f}  {printable(bar.name)}" for bar in strongest]
    return lines


def _query_subject(collection: Collection, retriever: Retriever, term: Term) -> Subject:
    if term.kind == "text":
        return Subject.of_text(retriever, term.value, asks=True)
    if term.kind == "picture":
        return Subject.of_picture(retriever, term.value)
    item = collection[term.value]
    if item.path is None:
        return Subject.of_text(retriever, item.captions[0])
    return _stored_picture_subject(collection, retriever, item.id)


def _answer_subject(collection: Collection, retriever: Retriever, answer: Answer) -> Subject:
    if answer.caption is not None:
        return Subject.of_text(retriever, answer.caption)
    return _stored_picture_subject(collection, retriever, answer.id)


def _stored_picture_subject(collection: Collection, retriever: Retriever, item_id: str) -> Subject:
    """Return a picture by its stored point, with its features if its file is still the one that was added."""
    _, points = collection.points("image", [item_id])
    if not len(points):
        raise InvalidInputError(f"item {item_id} has no point to explain; index again")
    path = collection.picture_of(collection[item_id])
    try:
        features = None if path is None else retriever.image_features([path])
    except (InvalidInputError, OSError):
        features = None
    if features is None or not np.allclose(retriever.images_to_points(features), points, rtol=1e-3, atol=1e-5):
        return Subject.of_image_point(points)
    return Subject.of_image_features(retriever, features)
