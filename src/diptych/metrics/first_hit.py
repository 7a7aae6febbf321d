"""Whether any relevant item is among the first ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.arrays import FloatArray
from diptych.metrics.hypergeometric import miss_probability
from diptych.metrics.measure import Measure, check_cutoff, scope
from diptych.metrics.ranked_groups import RankedGroups


@dataclass(frozen=True)
class CMC(Measure):
    """Cumulative match characteristic: the share of queries whose first relevant item has rank ≤ ``rank``.

    One match suffices, however many exist. Under ties the probability is 1 − C(n − r, s) / C(n, s), for s positions
    inside the rank of the first group with r relevant among n items (McSherry & Najork, ECIR 2008). CMC(1) is P@1.
    Use it when the searcher needs one right answer.

    >>> from diptych.metrics import CMC, SameLabel, evaluate_scores
    >>> relevance = SameLabel(["cat", "dog"], ["cat", "dog", "cat"])
    >>> evaluate_scores([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7]], relevance, [CMC(1)])[CMC(1)]
    0.5
    """

    rank: int

    def __post_init__(self) -> None:
        check_cutoff(self.rank, name="rank")

    @property
    def label(self) -> str:
        """``CMC@k``."""
        return f"CMC@{self.rank}"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        return any_hit(groups, self.rank)


@dataclass(frozen=True)
class RecallAtK(Measure):
    """Recall@K of caption retrieval: the share of queries with at least one relevant item among the first ``cutoff``.

    With several captions per image an image query counts its best caption, as in the usual five-caption protocol
    (VSE; Karpathy & Fei-Fei, CVPR 2015): give :class:`~diptych.metrics.SameLabel` the image of each caption. The same
    number as :class:`~diptych.metrics.CMC`, under the name of that literature.

    >>> from diptych.metrics import RecallAtK, SameLabel, evaluate_scores
    >>> relevance = SameLabel([0, 1], [0, 0, 1, 1])
    >>> scores = [[0.1, 0.9, 0.3, 0.2], [0.8, 0.1, 0.2, 0.3]]
    >>> result = evaluate_scores(scores, relevance, [RecallAtK(1), RecallAtK(2)])
    >>> result[RecallAtK(1)], result[RecallAtK(2)]
    (0.5, 1.0)
    """

    cutoff: int

    def __post_init__(self) -> None:
        check_cutoff(self.cutoff)

    @property
    def label(self) -> str:
        """``R@k``."""
        return f"R@{self.cutoff}"

    def _expectation(self, groups: RankedGroups) -> FloatArray:
        return any_hit(groups, self.cutoff)


def any_hit(groups: RankedGroups, cutoff: int) -> FloatArray:
    """Return the probability that each query finds a relevant item among the first ``cutoff``."""
    inside = groups.inside(scope(cutoff, groups))
    found = np.zeros(groups.n_queries)
    for index in groups.first[inside[groups.first] > 0]:
        size, hits, reach = int(groups.size[index]), int(groups.hits[index]), int(inside[index])
        found[groups.query[index]] = 1.0 if hits == size else 1.0 - miss_probability(size, hits, reach)
    return found
