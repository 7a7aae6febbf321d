"""Why an answer is there: a query and an item of a collection, as the search compared them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.collection.item import Item
from diptych.collection.reading import CollectionReader
from diptych.collection.retriever_protocol import without_disk_cache
from diptych.collection.searching.query import Query, Term
from diptych.errors import InvalidInputError

if TYPE_CHECKING:
    from diptych.retriever import Subject
    from diptych.retriever.explaining.explanation import Explanation


def explain_answer(
    collection: CollectionReader, query: Query, item: Item, *, caption: str | None = None, retriever: str | None = None
) -> Explanation:
    """Return why an item answers a query: its picture by what is stored of it, or one of its texts (``caption``)."""
    # Imported lazily: other searches do without the methods.
    from diptych.retriever import Retriever, Subject, explain

    source = collection.retriever_named(retriever)
    if not isinstance(source, Retriever):
        raise InvalidInputError("the search model of this collection cannot tell why; choose another")
    source = without_disk_cache(source)

    def picture(item: Item, name: str) -> Subject | None:
        _, points = collection.points("image", [item.id], retriever)
        _, features = collection.features("image", [item.id], retriever)
        return Subject.of_stored_picture(source, features, points, name) if len(points) else None

    def subject(term: Term) -> Subject:
        if term.kind == "text":
            return Subject.of_text(source, term.value, asks=True)
        if term.kind == "picture":
            return Subject.of_picture(source, term.value)
        item = collection[term.value]
        # Several pictures may be asked with, so each goes by its own name.
        found = picture(item, item.id if item.path is None else Path(item.path).name)
        if found is None and not item.captions:
            raise InvalidInputError(f"the item {item.id!r} has neither a picture that was read nor a text")
        return Subject.of_text(source, item.captions[0]) if found is None else found

    answer = picture(item, "the picture") if caption is None else Subject.of_text(source, caption)
    if answer is None:
        raise InvalidInputError(f"the item {item.id!r} has no picture that was searched; ask for its texts")
    return explain(source, [subject(term) for term in query.terms], answer, weights=[one.weight for one in query.terms])
