"""Measures as other tools count them and by the names that they give them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from diptych.arrays import FloatArray
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.metrics import AP, CMC, NDCG, Measure, Precision, RankedGroups, Recall

_NEEDS_CUTOFF: dict[str, Callable[[int], Measure]] = {"P": Precision, "R": Recall, "Success": CMC}
_FORM = re.compile(r"(?P<name>[A-Za-z-]+)(?:@(?P<cutoff>[0-9]+))?")

# What `find_measure` understands, k being a number.
MEASURE_NAMES = ("AP", "AP@k", "P@k", "R@k", "RR", "nDCG", "nDCG@k", "nDCG-exp", "nDCG-exp@k", "Success@k")


@dataclass(frozen=True)
class LinearNDCG(Measure):
    """Normalised discounted cumulative gain where the gain is the grade itself.

        NDCG@k = Σ_{i ≤ k} relᵢ / log₂(i + 1), divided by that of the query's best list

    It is trec_eval's ``ndcg`` and ``ndcg_cut`` (after Järvelin & Kekäläinen, TOIS 2002), ``ndcg`` of ranx and ``nDCG``
    of ir_measures. :class:`~diptych.metrics.NDCG` has the gain 2^rel − 1, called ``ndcg_burges`` by ranx and
    ``nDCG(dcg='exp-log2')`` by ir_measures. Both agree where grades are 0 and 1. Exact in expectation under ties.

    >>> from diptych.benchmark.exchange import LinearNDCG
    >>> from diptych.metrics import NDCG, GradedRelevance, evaluate_scores
    >>> relevance, measures = GradedRelevance([[1, 3, 0]]), [LinearNDCG(), NDCG(None, "ideal")]
    >>> [round(value, 4) for value in evaluate_scores([[0.9, 0.8, 0.7]], relevance, measures).mean.values()]
    [0.7967, 0.7098]
    """

    cutoff: int | None = None

    def __post_init__(self) -> None:
        NDCG(self.cutoff, "ideal")

    @property
    def label(self) -> str:
        """``NDCG@k`` with its gain."""
        return f"NDCG{'' if self.cutoff is None else f'@{self.cutoff}'} (linear gain)"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        # A gain of 2^g' − 1 with g' = log₂(1 + g) is g.
        return NDCG(self.cutoff, "ideal").compute(replace(groups, grades=np.log2(1 + groups.grades)))


@dataclass(frozen=True)
class RR(Measure):
    """One over the rank of the first relevant item; its mean over queries is MRR.

    Under ties the first of r relevant items among n stands at position j of the group with probability
    C(n − j, r − 1) / C(n, r), and with N items before the group

        E[RR] = Σ_{j = 1 … n − r + 1} C(n − j, r − 1) / C(n, r) · 1 / (N + j)

    which is exact (McSherry & Najork, "Computing information retrieval performance measures efficiently in the presence
    of tied scores", ECIR 2008). Use it where one right answer ends the search.

    >>> from diptych.benchmark.exchange import RR
    >>> from diptych.metrics import SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog", "dog"])
    >>> evaluate_scores([[0.9, 0.5, 0.5], [0.9, 0.5, 0.5]], relevance, [RR()])[RR()]
    0.75
    """

    @property
    def label(self) -> str:
        """``MRR``."""
        return "MRR"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        values = np.zeros(groups.n_queries)
        for index in groups.first:
            share = _first_positions(int(groups.size[index]), int(groups.hits[index]))
            ranks = groups.before[index] + np.arange(1, len(share) + 1)
            values[groups.query[index]] = float(np.sum(share / ranks))
        return values


def _first_positions(size: int, hits: int) -> FloatArray:
    """Return the probability that the first of ``hits`` relevant items stands at position 1, 2, … of ``size``."""
    drawn = np.arange(size - hits, dtype=np.float64)
    missed = np.concatenate([[1.0], np.cumprod((size - hits - drawn) / (size - drawn))])
    found = hits / (size - np.arange(size - hits + 1, dtype=np.float64))
    return cast(FloatArray, missed * found)


_MAY_HAVE_CUTOFF: dict[str, Callable[[int | None], Measure]] = {
    "AP": AP,
    "nDCG": LinearNDCG,
    "nDCG-exp": lambda cutoff: NDCG(cutoff, "ideal"),
}

_WHOLE: dict[str, Callable[[], Measure]] = {"RR": RR}


def find_measure(name: str) -> Measure:
    """Return the measure that ir_measures calls ``name``: AP, P@10, R@10, RR, nDCG@10, Success@5 and the like.

    AP@k divides by all relevant items, as trec_eval's ``map_cut``; ``nDCG`` has the grade for a gain, ``nDCG-exp``
    2^grade − 1; ``Success@k`` asks whether any of the first k is relevant.

    >>> from diptych.benchmark.exchange import find_measure
    >>> find_measure("P@10"), find_measure("nDCG@5")
    (Precision(cutoff=10), LinearNDCG(cutoff=5))
    """
    form = _FORM.fullmatch(name)
    known = {one.lower(): one for one in (*_NEEDS_CUTOFF, *_MAY_HAVE_CUTOFF, *_WHOLE)}
    kind = known.get(form["name"].lower()) if form else None
    if form is None or kind is None:
        raise UnknownNameError("measure", name, MEASURE_NAMES)
    cutoff = int(form["cutoff"]) if form["cutoff"] else None
    if kind in _WHOLE and cutoff is None:
        return _WHOLE[kind]()
    if kind in _MAY_HAVE_CUTOFF:
        return _MAY_HAVE_CUTOFF[kind](cutoff)
    if kind in _NEEDS_CUTOFF and cutoff is not None:
        return _NEEDS_CUTOFF[kind](cutoff)
    fix = f"leave the cutoff out: {kind}" if kind in _WHOLE else f"add one, such as {kind}@10"
    raise InvalidInputError(f"the measure {name!r} {'has no' if kind in _WHOLE else 'needs a'} cutoff; {fix}")
