"""Which model a retriever learns, with which checkpoints, and whether it is better than the one it would replace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.data import Pairs
from diptych.estimators import BaseEstimator, clone
from diptych.metrics import AP, randomisation_test
from diptych.models import (
    CCA,
    ContrastiveProjection,
    CrossModalModel,
    MarginalSM,
    Preprocessed,
    QueryBankNormalized,
)
from diptych.protocols import TwoWayEvaluation, evaluate_model


def choose_model(features: Pairs) -> CrossModalModel:
    """Return the model that does best on a quarter of the pairs: CCA, its contrastive continuation, or by labels.

    The continuation is corrected by a bank of the training pairs, which costs nothing beside the fit.
    """
    train, held_out = features.split(0.25)
    candidates: list[CrossModalModel] = [
        Preprocessed(model=CCA(n_components=256, regularization=1.0, weight_power=0.5), images="l2"),
        Preprocessed(model=QueryBankNormalized(model=ContrastiveProjection(temperature=0.03)), images="l2"),
    ]
    if features.labels is not None:
        candidates.append(Preprocessed(model=MarginalSM(C=3.0), images="l2"))
    rows = train.aligned()
    return max(candidates, key=lambda model: evaluate_model(model.fit(*rows), held_out).average(AP()))


_Model = TypeVar("_Model", bound=CrossModalModel)


@contextmanager
def separate_checkpoint(model: _Model, part: str) -> Iterator[_Model]:
    """Give an unfitted copy of ``model`` whose checkpoints, while it is fitted, lie in the folder ``part`` of its own.

    A retriever learns from most pairs and then from all: neither training may take up the other's state.

    >>> from diptych.models import LDSP
    >>> with separate_checkpoint(LDSP(checkpoint="kept"), "trial") as model:
    ...     during = model.checkpoint
    >>> during, model.checkpoint
    ('kept/trial', 'kept')
    """
    copied: _Model = clone(model)
    given = {name: value for name, value in copied.get_params().items() if value is not None}
    kept = {name: value for name, value in given.items() if name.rpartition("__")[2] == "checkpoint"}
    copied.set_params(**{name: (Path(value) / part).as_posix() for name, value in kept.items()})
    yield copied
    copied.set_params(**kept)


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
    comparison = Comparison(n_held_out=len(ours), new=float(np.nanmean(ours)), chance=new.chance(AP()))
    if old is not None:
        theirs = _per_picture(old, owners)
        p_value = randomisation_test(ours, theirs).p_value
        comparison.set_params(baseline=baseline, old=float(np.nanmean(theirs)), p_value=p_value)
    return comparison


def _per_picture(evaluation: TwoWayEvaluation, owners: IntArray) -> FloatArray:
    of_images = np.asarray(evaluation.image_query.values[AP()])
    of_texts = np.nan_to_num(np.asarray(evaluation.text_query.values[AP()]))
    counts = np.bincount(owners, minlength=len(of_images))
    means = np.bincount(owners, weights=of_texts, minlength=len(of_images)) / np.maximum(counts, 1)
    return np.asarray((of_images + means) / 2)
