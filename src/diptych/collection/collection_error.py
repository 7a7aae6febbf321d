"""The error of collections."""

from __future__ import annotations

from diptych.errors import DiptychError


class CollectionError(DiptychError):
    """A collection is missing, foreign, of another version, being written by another process, or has no such item.

    >>> from diptych.collection import Collection, CollectionError
    >>> try:
    ...     Collection.open("no/such/folder")
    ... except CollectionError as error:
    ...     print(error)
    no/such/folder is not a collection: collection.json is missing; make one with Collection.create or `diptych index`
    """
