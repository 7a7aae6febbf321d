"""The similarity of labels, without anything of size n × n."""

from __future__ import annotations

from diptych.arrays import FloatArray, unit_rows
from diptych.models.class_means import weighted_sums


def semantic_factors(
    images: FloatArray, texts: FloatArray, image_mean: FloatArray, text_mean: FloatArray, indicator: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return F and G, one column per class, with 2FGᵀ = XᵀSY for centred X and Y.

    S = 2L̃L̃ᵀ − 11ᵀ is the cosine of two label vectors, stretched to [−1, 1]; L̃ are the labels with rows of unit length.
    Centring makes the second term vanish, so that rows without a label do not count.
    """
    labels = unit_rows(indicator)
    return weighted_sums(images, image_mean, labels).T, weighted_sums(texts, text_mean, labels).T
