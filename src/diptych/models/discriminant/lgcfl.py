from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray, row_blocks
from diptych.models.base import Grid, Need, check_counts, check_number
from diptych.models.discriminant._base import LabelRegressionModel, RegressionSums
from diptych.models.labels import Targets
from diptych.models.moments import moments

_LEAST_GROUP = 1e-8


class LGCFL(LabelRegressionModel):
    """Local group consistent feature learning, unofficial: a method in the spirit of the name, not the published one.

        ½‖A U_a − (Y + E∘T)‖² + ½‖B U_b − (Y + E∘T)‖² + λ Σ_g (‖U_a^g‖ + ‖U_b^g‖),    T ≥ 0

    E is +1 where a row has the label and −1 elsewhere, so that targets may be dragged further apart, never closer; both
    sides share them. Features are switched off in groups g of neighbouring columns. The formulas of the paper could not
    be read: results must not be presented as its.

    Parameters
    ----------
    sparsity : float
        λ.
    group_size : int
        Neighbouring features that are switched on and off together.
    n_iter : int
        Alternations between weights and targets.
    metric : str
        Name of the `Space`.

    Attributes
    ----------
    objectives_ : array
        The smoothed objective after each alternation.

    References
    ----------
    The name is that of Kang, Xiang, Liao, Xu and Pan, "Learning consistent feature representation for cross-modal
    multimedia retrieval", IEEE Transactions on Multimedia 2015; the method here is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import LGCFL
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels] + 0.1 * rng.normal(size=(120, 3))
    >>> images, texts = meaning @ rng.normal(size=(3, 8)), meaning @ rng.normal(size=(3, 5))
    >>> bool(LGCFL().fit(images, texts, labels).score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "To compare with label regression; unofficial, since the paper could not be read."
    title: ClassVar[str] = "LGCFL, unofficial"
    grid: ClassVar[Grid] = {"sparsity": [0.1, 1.0, 10.0]}

    objectives_: FloatArray

    def __init__(self, *, sparsity: float = 0.1, group_size: int = 8, n_iter: int = 10, metric: str = "cosine") -> None:
        self.sparsity = sparsity
        self.group_size = group_size
        self.n_iter = n_iter
        self.metric = metric

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("sparsity", self.sparsity, low=0)
        check_counts(self, "group_size", "n_iter")

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        assert targets is not None, "the base class has checked that labels were given"
        images, texts, targets = targets.with_labels_only(images, texts)
        sums, labels = RegressionSums.of(moments(images, texts, targets)), targets.indicator
        sides = ((images, sums.image_scale, sums.image), (texts, sums.text_scale, sums.text))
        weights: list[FloatArray] = [np.zeros((len(moment), labels.shape[1])) for _, _, moment in sides]
        goals, objectives = labels, []
        for _ in range(self.n_iter):
            weights = [
                self._solve(moment, _product(rows, goals) / scale, before)
                for (rows, scale, moment), before in zip(sides, weights, strict=True)
            ]
            scaled = weights[0] / sums.image_scale, weights[1] / sums.text_scale
            goals, loss = _dragged_targets(images, texts, *scaled, labels)
            objectives.append(loss + self.sparsity * sum(float(self._group_norms(part).sum()) for part in weights))
        self.objectives_ = np.array(objectives)
        self._keep(targets.classes, sums, weights[0], weights[1])

    def _solve(self, moment: FloatArray, goals: FloatArray, before: FloatArray) -> FloatArray:
        norms = self._group_norms(before) if before.any() else np.ones(-(-len(moment) // self.group_size))
        system = moment.copy()
        ridge = np.repeat(self.sparsity / norms, self.group_size)[: len(moment)]
        system[np.diag_indices_from(system)] += ridge + 1e-12 * float(np.trace(moment))
        return np.asarray(scipy.linalg.solve(system, goals, assume_a="pos"))

    def _group_norms(self, weights: FloatArray) -> FloatArray:
        starts = np.arange(0, len(weights), self.group_size)
        return np.asarray(np.sqrt(np.add.reduceat((weights**2).sum(axis=1), starts) + _LEAST_GROUP))


def _product(rows: FloatArray, targets: FloatArray) -> FloatArray:
    """Return ``rowsᵀ targets`` in float64, block by block."""
    total = np.zeros((rows.shape[1], targets.shape[1]))
    for block in row_blocks(len(rows)):
        total += rows[block].T.astype(np.float64) @ targets[block]
    return total


def _dragged_targets(
    images: FloatArray, texts: FloatArray, image_weights: FloatArray, text_weights: FloatArray, labels: FloatArray
) -> tuple[FloatArray, float]:
    """Return the best targets for the present scores, and the loss that they leave."""
    goals, loss = np.empty_like(labels), 0.0
    for block in row_blocks(len(labels)):
        image, text = images[block] @ image_weights, texts[block] @ text_weights
        middle, wanted = (image + text) / 2, labels[block]
        goals[block] = np.where(wanted > 0, np.maximum(middle, 1.0), np.minimum(middle, 0.0))
        loss += 0.5 * float(((image - goals[block]) ** 2).sum() + ((text - goals[block]) ** 2).sum())
    return goals, loss
