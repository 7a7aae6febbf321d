"""Retrievers whose image networks compute in eight bits instead of float32."""

from __future__ import annotations

from copy import copy

from diptych.cluster import available_processors
from diptych.devices import idle_card_note, multiplies_bytes, network_device, uses_accelerator
from diptych.encoders.concatenated import Concatenated
from diptych.encoders.encoder import Encoder
from diptych.encoders.image.efficientnet_lite import EfficientNetLite
from diptych.errors import InvalidInputError, counted
from diptych.estimators import clone
from diptych.retriever.retriever import Retriever

MIN_PICTURES = 500
"""From so many pictures on ``auto`` takes eight bits; fewer gain only seconds."""


def encoder_in_eight_bits(encoder: Encoder) -> Encoder:
    """Return an encoder with its networks in eight bits where it has such; its features differ.

    >>> from diptych.encoders import EfficientNetLite, SideBySide
    >>> encoder_in_eight_bits(SideBySide(encoders=(EfficientNetLite(network="lite0"),))).encoders[0].precision
    'int8'
    """
    if isinstance(encoder, EfficientNetLite):
        return clone(encoder).set_params(precision="int8")
    if not isinstance(encoder, Concatenated):
        return encoder
    changed = copy(encoder)
    for name in ("encoders", "encoders_"):
        if hasattr(encoder, name):
            setattr(changed, name, tuple(encoder_in_eight_bits(part) for part in getattr(encoder, name)))
    return changed


def precision_of(encoder: Encoder) -> str:
    """Return what the networks of an encoder compute with: ``float32`` or ``int8``."""
    is_rounded = any(getattr(source, "precision", None) == "int8" for source in encoder.sources)
    return "int8" if is_rounded else "float32"


def in_eight_bits(retriever: Retriever) -> Retriever:
    """Return a retriever with the same model on image networks in eight bits, where it has such.

    Its points differ, and so does its fingerprint: a collection keeps to the one that it was made with.
    """
    changed = copy(retriever)
    changed.image_encoder_ = encoder_in_eight_bits(retriever.image_encoder_)
    if retriever.image_encoder is not None:
        changed.image_encoder = encoder_in_eight_bits(retriever.image_encoder)
    return changed


def in_precision(retriever: Retriever, precision: str, n_pictures: int, stored: str | None = None) -> Retriever:
    """Return a retriever in the precision that was asked for: ``float32``, ``int8`` or ``auto``.

    ``auto`` keeps to that of the collection whose points have the fingerprint ``stored``. Otherwise it takes eight bits
    for many pictures on a processor that has instructions for them.
    """
    if precision == "float32":
        return retriever
    rounded = in_eight_bits(retriever)
    if precision == "int8":
        if precision_of(rounded.image_encoder_) != "int8":
            raise InvalidInputError(
                f"the search model {retriever.name} has no networks in eight bits; leave out --precision"
            )
        return rounded
    if stored in (retriever.fingerprint, rounded.fingerprint):
        return retriever if stored == retriever.fingerprint else rounded
    is_worth = n_pictures >= MIN_PICTURES and not uses_accelerator() and multiplies_bytes()
    return rounded if is_worth else retriever


def check_precision(retriever: object, precision: str) -> None:
    """Raise unless the retriever of a collection computes with the numbers that were asked for."""
    encoder = getattr(retriever, "image_encoder_", None)
    if precision not in ("auto", "float32" if encoder is None else precision_of(encoder)):
        raise InvalidInputError(
            f"the collection was not made with {precision}; name its search model, too (--retriever), and all pictures "
            "are encoded again"
        )


def describe_encoding(retriever: object) -> list[str]:
    """Return what encodes pictures, and what could do it faster."""
    encoder = getattr(retriever, "image_encoder_", None)
    device = network_device()
    place = counted(available_processors(), "core") if device == "cpu" else device
    numbers = "" if encoder is None else f" in {precision_of(encoder)}"
    return [f"encoding on {place}{numbers}", *filter(None, [idle_card_note()])]
