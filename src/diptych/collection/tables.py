"""The names of the tables of vectors."""

from __future__ import annotations

from diptych.collection.contract import Side
from diptych.collection.retriever_names import RetrieverNames


def features_table(names: RetrieverNames, side: Side) -> str:
    """Return the table of features, named by the encoder that made them."""
    return f"features_{side}_{names.image_fingerprint if side == 'image' else names.text_fingerprint}"


def points_table(names: RetrieverNames, side: Side) -> str:
    """Return the table of points, named by the retriever that made them."""
    return f"points_{side}_{names.fingerprint}"
