"""The contrastive loss of two coupled siamese networks."""

from __future__ import annotations

import numpy as np

from diptych.arrays import BoolArray, FloatArray
from diptych.models.neural.pair_batch import PairBatch

_SMALLEST = 1e-6


def coupled_loss(
    images: FloatArray, texts: FloatArray, batch: PairBatch, *, margin: float, within: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return ℓ_XY + a(ℓ_X + ℓ_Y) of a batch's points and its slopes at the points of either side.

    Sums over pairs are means. ``images`` and ``texts`` are in the order of ``batch.rows``.
    """
    image, similar_image, other_image = np.split(images, 3)
    text, similar_text, other_text = np.split(texts, 3)
    own = batch.own[:, None]
    total, image_slopes, text_slopes = 0.0, np.zeros_like(images), np.zeros_like(texts)
    image_parts, text_parts = np.split(image_slopes, 3), np.split(text_slopes, 3)

    value, slope = _attract(image, np.where(own, text, similar_text))
    total += value
    image_parts[0] += slope
    text_parts[0] -= slope * own
    text_parts[1] -= slope * ~own
    value, slope = _repel(image, other_text, margin, batch.differs)
    total += value
    image_parts[0] += slope
    text_parts[2] -= slope

    for parts, (item, similar, other) in (
        (image_parts, (image, similar_image, other_image)),
        (text_parts, (text, similar_text, other_text)),
    ):
        value, slope = _attract(item, similar)
        total += within * value
        parts[0] += within * slope
        parts[1] -= within * slope
        value, slope = _repel(item, other, margin, batch.differs)
        total += within * value
        parts[0] += within * slope
        parts[2] -= within * slope
    return total, image_slopes, text_slopes


def _attract(left: FloatArray, right: FloatArray) -> tuple[float, FloatArray]:
    """Return the mean of ½‖a − b‖² over the rows and its slope at a; that at b is the opposite."""
    apart = left - right
    return float((apart**2).sum()) / (2 * len(apart)), np.asarray(apart / len(apart))


def _repel(left: FloatArray, right: FloatArray, margin: float, counted: BoolArray) -> tuple[float, FloatArray]:
    """Return the mean of ½ max(0, margin − ‖a − b‖)² over the counted rows and its slope at a.

    Points in one place have no direction to part in: their distance is taken as 1e-6, and their slope is zero.
    """
    apart = left - right
    distances = np.maximum(np.linalg.norm(apart, axis=1), _SMALLEST)
    missing = np.where(counted, np.maximum(margin - distances, 0), 0)
    n_counted = max(1, int(counted.sum()))
    slopes = -(missing / distances / n_counted)[:, None] * apart
    return float((missing**2).sum()) / (2 * n_counted), np.asarray(slopes)
