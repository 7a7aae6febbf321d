"""The error of a retriever that is not stored."""

from __future__ import annotations

from diptych.collection.collection_error import CollectionError


class UnknownRetrieverError(CollectionError):
    """A collection has no retriever of that name.

    >>> from diptych.collection import CollectionError, UnknownRetrieverError
    >>> issubclass(UnknownRetrieverError, CollectionError)
    True
    """
