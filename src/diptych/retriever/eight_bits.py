"""Retrievers whose image networks compute in eight-bit integers."""

from __future__ import annotations

from copy import copy

from diptych.encoders.eight_bits import in_int8
from diptych.retriever.retriever import Retriever


def int8_retriever(retriever: Retriever) -> Retriever:
    """Return a retriever with the same model on image networks in eight bits, where it has such.

    Its points are others, so its fingerprint is: a collection keeps to the one that it was made with.
    """
    changed = copy(retriever)
    changed.image_encoder_ = in_int8(retriever.image_encoder_)
    if retriever.image_encoder is not None:
        changed.image_encoder = in_int8(retriever.image_encoder)
    return changed
