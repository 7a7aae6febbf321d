"""The retriever that a request names."""

from __future__ import annotations

from diptych.collection import Collection, CollectionError, PointSource
from diptych.service.problem import Problem


def chosen_retriever(collection: Collection, name: str | None) -> PointSource:
    """Return a stored retriever by name, the active one without a name."""
    if name is None:
        return collection.retriever
    try:
        return collection.retriever_named(name)
    except CollectionError as error:
        if "there is no retriever" not in str(error):
            raise
        detail = f"There is no retriever {name!r} in this collection; its address /retrievers lists those there are."
        raise Problem(404, "no-such-retriever", detail) from None
