"""Do two numbers of the same queries rise and fall together?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from diptych.metrics.paired_values import paired


@dataclass(frozen=True)
class SpearmanCorrelation:
    """A rank correlation: ``p_value`` is how probable one as strong is where the two have nothing to do with another.

    >>> from diptych.metrics import SpearmanCorrelation
    >>> SpearmanCorrelation(coefficient=0.224, p_value=0.001, n_queries=1000).coefficient
    0.224
    """

    coefficient: float
    p_value: float
    n_queries: int


def spearman(a: ArrayLike, b: ArrayLike) -> SpearmanCorrelation:
    """Return Spearman's rank correlation of two values of the same queries.

    It is the correlation of the ranks, where equal values share the mean of their ranks; the short form with squared
    differences of ranks is wrong where there are ties, and lengths and visualness of queries are full of them. 1 says
    that either is an increasing function of the other, −1 a decreasing one. Queries with a missing value (NaN) are left
    out. Where all values of one side are equal there is no order to compare: NaN. The p-value is two-sided, from
    Student's t distribution, which is rough for fewer than ten queries.

    Reference: Spearman, "The proof and measurement of association between two things", American Journal of Psychology
    1904. Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", 2018, compare with it
    how well visualness and the reciprocal of length predict whether a query is answered.

    >>> from diptych.metrics import spearman
    >>> round(spearman([1, 2, 2, 4], [10, 30, 20, 40]).coefficient, 4)
    0.9487
    """
    from scipy.stats import spearmanr

    first, second = paired(a, b)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return SpearmanCorrelation(float("nan"), float("nan"), len(first))
    found = spearmanr(first, second)
    # Rounding can leave the range of correlations; and two queries, always in some order, prove nothing.
    coefficient = float(np.clip(found.statistic, -1, 1))
    return SpearmanCorrelation(coefficient, float(found.pvalue) if len(first) > 2 else 1.0, len(first))
