"""Whether a new model is better than the one it would replace."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from diptych.arrays import FloatArray, IntArray
from diptych.metrics import AP, randomisation_test
from diptych.protocols import TwoWayEvaluation


class Comparison(BaseEstimator):
    """The held-out quality of a new model and of the one it had to beat: MAP, both directions, per picture.

    ``p_value`` is that of a paired randomisation test over the held-out pictures; ``replaced`` tells whether the new
    model was taken. Without a baseline only the chance level stands beside the new model.

    >>> from diptych.retriever import Comparison
    >>> print(Comparison(n_held_out=100, new=0.41, chance=0.02, baseline="default", old=0.35, p_value=0.003))
    MAP 0.410 on 100 held-out pictures, default 0.350: better by 0.060 (p = 0.003), chance 0.020
    """

    def __init__(
        self,
        *,
        n_held_out: int,
        new: float,
        chance: float,
        baseline: str | None = None,
        old: float | None = None,
        p_value: float | None = None,
        replaced: bool = True,
    ) -> None:
        self.n_held_out = n_held_out
        self.new = new
        self.chance = chance
        self.baseline = baseline
        self.old = old
        self.p_value = p_value
        self.replaced = replaced

    @property
    def is_better(self) -> bool:
        """Whether the new model has the larger value, by chance or not."""
        return self.old is None or self.new > self.old

    def is_significant(self, level: float = 0.05) -> bool:
        """Whether the difference is more than luck at this level."""
        return self.p_value is not None and self.p_value < level

    def __str__(self) -> str:
        start = f"MAP {self.new:.3f} on {self.n_held_out} held-out pictures"
        if self.old is None or self.p_value is None:
            return f"{start}, chance {self.chance:.3f}"
        word = "better" if self.is_better else "worse"
        difference = f"{word} by {abs(self.new - self.old):.3f} (p = {self.p_value:.3f})"
        return f"{start}, {self.baseline} {self.old:.3f}: {difference}, chance {self.chance:.3f}"


def compare(
    new: TwoWayEvaluation, owners: IntArray, baseline: str | None = None, old: TwoWayEvaluation | None = None
) -> Comparison:
    """Compare two evaluations of the same pairs; a picture and its texts count as one independent unit."""
    ours = _per_picture(new, owners)
    chance = new.chance(AP())
    if old is None:
        return Comparison(n_held_out=len(ours), new=float(np.nanmean(ours)), chance=chance)
    theirs = _per_picture(old, owners)
    test = randomisation_test(ours, theirs)
    return Comparison(
        n_held_out=len(ours),
        new=float(np.nanmean(ours)),
        chance=chance,
        baseline=baseline,
        old=float(np.nanmean(theirs)),
        p_value=test.p_value,
    )


def _per_picture(evaluation: TwoWayEvaluation, owners: IntArray) -> FloatArray:
    of_images = np.asarray(evaluation.image_query.values[AP()])
    of_texts = np.nan_to_num(np.asarray(evaluation.text_query.values[AP()]))
    counts = np.bincount(owners, minlength=len(of_images))
    means = np.bincount(owners, weights=of_texts, minlength=len(of_images)) / np.maximum(counts, 1)
    return np.asarray((of_images + means) / 2)
