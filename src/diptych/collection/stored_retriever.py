"""A retriever whose points a collection keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoredRetriever:
    """One of the retrievers of a collection.

    ``active`` marks the one that searches use unless they name another. ``ready`` is false while its points have never
    all been made, because making them was interrupted; ``missing`` counts the pictures and captions without a point,
    which may also be pictures that could not be read. ``kind`` is the class of its model, empty when the retriever has
    none.
    """

    name: str
    fingerprint: str
    active: bool
    ready: bool
    missing: int
    kind: str
