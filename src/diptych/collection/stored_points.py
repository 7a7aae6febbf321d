"""Stored features and points by the ids of what they belong to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from diptych.arrays import AnyArray
from diptych.collection.catalogue import Catalogue, text_hash
from diptych.collection.collection_error import CollectionError
from diptych.collection.contract import Side
from diptych.collection.live_state import LiveState
from diptych.collection.retriever_names import RetrieverNames
from diptych.collection.tables import features_table, points_table

_Table = Callable[[RetrieverNames, Side], str]


def stored_points(
    state: LiveState, side: Side, ids: Sequence[str] | None, retriever: str | None
) -> tuple[list[str], AnyArray]:
    """Return ids and points, as the retriever made them, in the order asked or of addition."""
    return state.settled(lambda: _read(points_table, state, side, ids, retriever))


def stored_features(
    state: LiveState, side: Side, ids: Sequence[str] | None, retriever: str | None
) -> tuple[list[str], AnyArray]:
    """Return ids and what the retriever's encoder made of them, in the order asked or of addition."""
    return state.settled(lambda: _read(features_table, state, side, ids, retriever))


def _read(
    table: _Table, state: LiveState, side: Side, ids: Sequence[str] | None, retriever: str | None
) -> tuple[list[str], AnyArray]:
    names, catalogue = state.layout.named(retriever), state.catalogue()
    contents = _contents(catalogue, side, ids)
    rows = {
        key: row
        for keys, vectors in state.store.read_vectors(table(names, side), list(dict.fromkeys(contents.values())))
        for key, row in zip(keys, vectors, strict=True)
    }
    found = [item_id for item_id, content in contents.items() if content in rows]
    matrix = np.stack([rows[contents[item_id]] for item_id in found]) if found else np.zeros((0, 0), dtype=np.float32)
    return found, matrix


def _contents(catalogue: Catalogue, side: Side, ids: Sequence[str] | None) -> dict[str, str]:
    """Return what the points are stored under, by id."""
    known = catalogue.items if side == "image" else catalogue.captions
    wanted = list(known) if ids is None else list(ids)
    unknown = [item_id for item_id in wanted if item_id not in known]
    if unknown:
        what = "item" if side == "image" else "caption"
        raise CollectionError(f"there is no {what} {unknown[0]!r} in the collection; take the id of an answer")
    if side == "text":
        return {caption_id: text_hash(catalogue.captions[caption_id][1]) for caption_id in wanted}
    return {item_id: content for item_id in wanted if (content := catalogue.items[item_id].content_hash) is not None}
