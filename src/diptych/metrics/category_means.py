"""Means per category of values per query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError


def category_means(values: FloatArray, labels: ArrayLike) -> dict[Any, float]:
    """Return the mean of ``values`` over the queries of each category; with average precision, MAP per category.

    ``values`` are those that an evaluation keeps per query, ``labels`` the true classes of the queries (Costa Pereira
    et al., TPAMI 2014, fig. 11). Skipped queries (NaN) are left out, and categories that have no others. The unweighted
    mean of the result is not MAP, which weights categories by their queries.

    >>> import numpy as np
    >>> from diptych.metrics import category_means
    >>> category_means(np.array([0.2, 0.4, 0.9]), ["art", "art", "music"])
    {'art': 0.30000000000000004, 'music': 0.9}
    """
    classes = np.asarray(labels)
    numbers = np.asarray(values, dtype=np.float64)
    if classes.ndim != 1 or numbers.shape != classes.shape:
        raise InvalidInputError(
            f"values and labels must be lists with one entry per query, got shapes {numbers.shape} and {classes.shape}"
        )
    known = ~np.isnan(numbers)
    names, codes = np.unique(classes[known], return_inverse=True)
    means = np.bincount(codes, weights=numbers[known]) / np.bincount(codes)
    return dict(zip(names.tolist(), means.tolist(), strict=True))
