"""Fewer features before a benchmark starts, as the papers have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from diptych.arrays import FloatArray
from diptych.data import DatasetSplits


def with_principal_components(splits: DatasetSplits, n_image: int, n_text: int) -> DatasetSplits:
    """Replace a side that is wider than asked for by its principal components, learned from the training part.

    Menon et al. (2015, section 7.1) reduce pictures to 128 and texts to 10 features before anything else; training
    times leave this step out, as theirs do.

    >>> import numpy as np
    >>> from diptych.benchmark.principal_components import with_principal_components
    >>> from diptych.data import DatasetSplits, Pairs
    >>> rng = np.random.default_rng(0)
    >>> train, test = (Pairs(rng.normal(size=(n, 6)), rng.normal(size=(n, 3))) for n in (20, 5))
    >>> reduced = with_principal_components(DatasetSplits(train=train, test=test), 4, 10)
    >>> reduced.test.images.shape, reduced.test.texts.shape
    ((5, 4), (5, 3))
    """
    parts: dict[str, Any] = dict(splits.parts)
    for side, wanted in (("images", n_image), ("texts", n_text)):
        rows = np.asarray(getattr(splits.train, side))
        if rows.shape[1] > wanted:
            mean, axes = _principal_axes(rows, wanted)
            parts = {
                name: pairs.with_features(**{side: ((getattr(pairs, side) - mean) @ axes).astype(rows.dtype)})
                for name, pairs in parts.items()
            }
    return replace(splits, **parts)


def _principal_axes(rows: FloatArray, wanted: int) -> tuple[FloatArray, FloatArray]:
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    width = rows.shape[1]
    _, axes = eigh(centred.T @ centred, subset_by_index=(width - wanted, width - 1))
    axes = axes[:, ::-1]
    # An axis and its opposite serve alike; one of them is taken, so that every machine has the same features.
    return mean, axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(wanted)])
