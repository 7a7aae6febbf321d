"""Keeping the points of a collection with the retriever that made them."""

from __future__ import annotations

import copy

from diptych.collection.collection_error import CollectionError
from diptych.collection.contract import PointSource
from diptych.collection.retriever_names import RetrieverNames


def own_copy(retriever: PointSource) -> PointSource:
    """Return a copy that its owner's later training leaves alone, or the retriever itself where it has no copies."""
    try:
        return copy.deepcopy(retriever)
    # Whatever a retriever holds that cannot be copied, it can still be used: every write checks its fingerprint.
    except Exception:
        return retriever


def check_same_points(retriever: PointSource, names: RetrieverNames) -> None:
    """Refuse a retriever that no longer makes the points it is stored for."""
    if retriever.fingerprint != names.fingerprint:
        raise CollectionError(
            f"the retriever {names.name!r} no longer makes the points of this collection: it was fitted again, or the "
            "weights of an encoder changed; put the old weights back, or call set_retriever (`diptych index "
            "--retriever`) with the retriever to use from now on"
        )
