"""What people call the labels that an encoder of images gives probabilities of."""

from __future__ import annotations

from functools import singledispatch

from diptych.encoders import Encoder, ImageNetLabels, imagenet_labels


@singledispatch
def label_names(encoder: Encoder, n_labels: int) -> list[str]:
    """Return the names of the columns of an encoder's features; numbers where it does not name them."""
    del encoder
    return [f"class {number}" for number in range(n_labels)]


@label_names.register
def _(encoder: ImageNetLabels, n_labels: int) -> list[str]:
    del encoder
    return [label.lemmas[0] for label in imagenet_labels()[:n_labels]]
