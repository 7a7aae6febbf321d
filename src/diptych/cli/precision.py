"""The numbers that the image networks of a collection compute with: float32, or eight-bit integers where it pays."""

from __future__ import annotations

from copy import copy

from diptych.cluster import available_processors
from diptych.collection.storage.retriever_protocol import RetrieverProtocol
from diptych.encoders.eight_bits import in_int8, is_worth_int8, precision_of
from diptych.encoders.networks.onnx_network import idle_card_note, uses_card
from diptych.errors import InvalidInputError, counted
from diptych.retriever import Retriever


def int8_retriever(retriever: Retriever) -> Retriever:
    """Return a retriever with the same model on image networks in eight bits, where it has such.

    Its points are others, so its fingerprint is: a collection keeps to the one that it was made with.
    """
    changed = copy(retriever)
    changed.image_encoder_ = in_int8(retriever.image_encoder_)
    if retriever.image_encoder is not None:
        changed.image_encoder = in_int8(retriever.image_encoder)
    return changed


# A trial of int8 takes a few seconds, and so do this many pictures.
_WORTH_A_TRIAL = 500


def in_precision(retriever: Retriever, precision: str, n_pictures: int, stored: str | None = None) -> Retriever:
    """Return a retriever in the precision that was asked for: ``float32``, ``int8`` or ``auto``.

    ``auto`` keeps to that of the collection whose points have the fingerprint ``stored``, and takes int8 for another
    only where many pictures gain by it on this machine.
    """
    if precision == "float32":
        return retriever
    rounded = int8_retriever(retriever)
    if precision == "int8" and rounded.fingerprint == retriever.fingerprint:
        raise InvalidInputError(f"the search model {retriever.name} has no int8 networks; leave out --precision")
    if precision == "int8" or stored == rounded.fingerprint:
        return rounded
    # Cards have no such networks.
    if stored == retriever.fingerprint or n_pictures < _WORTH_A_TRIAL or uses_card():
        return retriever
    return rounded if is_worth_int8(retriever.image_encoder_) else retriever


def check_precision(retriever: RetrieverProtocol, precision: str) -> None:
    """Raise unless the retriever of a collection computes with the numbers that were asked for."""
    encoder = getattr(retriever, "image_encoder_", None)
    if precision not in ("auto", "float32" if encoder is None else precision_of(encoder)):
        raise InvalidInputError(
            f"the collection was not made with {precision}; name its search model, too (--retriever), and all pictures "
            "are encoded again"
        )


def describe_encoding(retriever: RetrieverProtocol) -> list[str]:
    """Return what encodes pictures, and what could do it faster."""
    encoder = getattr(retriever, "image_encoder_", None)
    place = "an NVIDIA card" if uses_card() else counted(available_processors(), "core")
    numbers = "" if encoder is None else f" in {precision_of(encoder)}"
    return [f"encoding on {place}{numbers}", *filter(None, [idle_card_note()])]
