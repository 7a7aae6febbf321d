"""What lies within each radius of the codes of queries."""

from __future__ import annotations

from diptych.arrays import AnyArray
from diptych.data import Pairs
from diptych.metrics import HammingLookup, SameLabel, SharedLabel
from diptych.models import CrossModalModel
from diptych.protocols import Relevant, Retrieval
from diptych.space import DIRECTIONS, Direction

Codes = dict[Direction, AnyArray]


def codes_of(model: CrossModalModel, pairs: Pairs) -> Codes:
    """Return the codes of the pictures, which are image queries, and of the texts."""
    return {"image_query": model.encode_images(pairs.images), "text_query": model.encode_texts(pairs.texts)}


def look_up(
    queries: Codes, gallery: Codes, retrieval: Retrieval, n_bits: int, relevant: Relevant = "auto"
) -> dict[Direction, HammingLookup]:
    """Return what lies within each radius, for both directions; ``relevant`` as in `evaluate_retrieval`."""
    asked, carried = _truth(retrieval.queries, relevant), _truth(retrieval.gallery, relevant)
    lookups: dict[Direction, HammingLookup] = {}
    for way, other in zip(DIRECTIONS, reversed(DIRECTIONS), strict=True):
        kind = SameLabel if asked[way].ndim == 1 else SharedLabel
        lookups[way] = HammingLookup.from_codes(
            queries[way], gallery[other], kind(asked[way], carried[other]), n_bits=n_bits
        )
    return lookups


def _truth(pairs: Pairs, relevant: Relevant) -> dict[Direction, AnyArray]:
    if relevant == "instance" or pairs.labels is None or pairs.text_labels is None:
        return {"image_query": pairs.ids, "text_query": pairs.ids[pairs.owners]}
    return {"image_query": pairs.labels, "text_query": pairs.text_labels}
