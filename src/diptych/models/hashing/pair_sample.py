"""Fewer training pairs, for methods whose cost leaves no other way."""

from __future__ import annotations

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.parameters import check_count


def sample_pairs(
    images: FloatArray, texts: FloatArray, max_pairs: int | None, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return at most ``max_pairs`` aligned rows, drawn without replacement; all of them where it is None."""
    if max_pairs is None or len(images) <= check_count("max_pairs", max_pairs):
        return images, texts
    chosen = np.sort(np.random.default_rng(seed).choice(len(images), max_pairs, replace=False))
    return images[chosen], texts[chosen]
