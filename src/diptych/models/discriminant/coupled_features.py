"""Coupled regressions of both sides to classes that choose features, or groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray, row_blocks
from diptych.models.base import Grid, Need
from diptych.models.discriminant._base import LabelRegressionModel, RegressionSums
from diptych.models.labels import Targets
from diptych.models.moments import MomentModel, Moments, moments
from diptych.models.parameters import Count, NonNegative, Positive

_LEAST_ROW = 1e-7
_NOISE = 1e-13


@dataclass(kw_only=True, eq=False, repr=False)
class LCFS(MomentModel, LabelRegressionModel):
    """Coupled feature spaces: regress the labels from few features, with scores of both sides of low rank together.

        ½‖A U_a − Y‖² + ½‖B U_b − Y‖² + λ₁/2 (‖U_a‖₂,₁ + ‖U_b‖₂,₁) + λ₂ ‖[A U_a  B U_b]‖_*

    solved by half-quadratic iterations U ← (XᵀX + λ₁R + λ₂XᵀS⁻¹X)⁻¹XᵀY with R = diag(1/(2√(‖uⁱ‖² + ε))) and
    S = (MMᵀ + μI)^½ for M = [A U_a  B U_b]. The n × n matrix S is never formed: with the thin SVD of M all that is
    needed follows from the products XᵀX, AᵀB and XᵀY, so that an iteration costs nothing that grows with n.

    Parameters
    ----------
    sparsity, low_rank : float
        λ₁ and λ₂ as in the authors' code, whose R makes the first the double of what multiplies the norm.
    smoothing : float
        μ. Outside the span of M the term S⁻¹ is 1/√μ, so the result depends on μ and not on λ₂ alone; 1e-7 is what the
        authors use.
    n_iter : int
        Iterations; 5 in the authors' demonstrations.
    metric : str
        Name of the `Space`; cosine is our choice.

    Attributes
    ----------
    objectives_ : array
        The smoothed objective before the first iteration and after each.

    References
    ----------
    Wang, He, Wang, Wang and Tan, "Learning coupled feature spaces for cross-modal matching", ICCV 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import LCFS
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels] + 0.1 * rng.normal(size=(120, 3))
    >>> images, texts = meaning @ rng.normal(size=(3, 8)), meaning @ rng.normal(size=(3, 5))
    >>> bool(LCFS().fit(images, texts, labels).score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Labelled pairs with many useless features: whole features are switched off."
    labelled_only: ClassVar[bool] = True
    grid: ClassVar[Grid] = {"sparsity": [0.1, 1.0, 10.0]}

    sparsity: NonNegative = 0.1
    low_rank: NonNegative = 0.001
    smoothing: Positive = 1e-7
    n_iter: Count = 5
    metric: str = "cosine"

    def _fit_moments(self, sums: Moments) -> None:
        scaled, classes = RegressionSums.of(sums), sums.known_labels.classes
        n_labels = float(sums.known_labels.totals.sum())
        image: FloatArray = np.eye(len(sums.image), len(classes))
        text: FloatArray = np.eye(len(sums.text), len(classes))
        objectives = [self._objective(scaled, image, text, n_labels, sums.n_rows)]
        for _ in range(self.n_iter):
            image, text = self._step(scaled, image, text)
            objectives.append(self._objective(scaled, image, text, n_labels, sums.n_rows))
        self.objectives_ = np.array(objectives)
        self._keep(classes, scaled, image, text)

    def _step(self, sums: RegressionSums, image: FloatArray, text: FloatArray) -> tuple[FloatArray, FloatArray]:
        # Xᵀ M for both sides, from which everything about the scores' singular values follows.
        image_scores = np.hstack([sums.image @ image, sums.cross @ text])
        text_scores = np.hstack([sums.cross.T @ image, sums.text @ text])
        squares, vectors = np.linalg.eigh(_score_gram(sums, image, text))
        kept = squares > _NOISE * max(squares[-1], np.finfo(np.float64).tiny)
        squares, vectors = squares[kept], vectors[:, kept]
        plain = self.smoothing**-0.5
        inside = ((squares + self.smoothing) ** -0.5 - plain) / squares
        steps = []
        for moment, scores, labels, weights in (
            (sums.image, image_scores @ vectors, sums.image_labels, image),
            (sums.text, text_scores @ vectors, sums.text_labels, text),
        ):
            rows = np.sqrt((weights**2).sum(axis=1) + _LEAST_ROW)
            system = (1 + self.low_rank * plain) * moment + self.low_rank * (scores * inside) @ scores.T
            # What smoothing takes away may leave rounding below zero on the diagonal.
            system[np.diag_indices_from(system)] += self.sparsity / (2 * rows) + _NOISE * float(np.trace(moment))
            steps.append(scipy.linalg.solve((system + system.T) / 2, labels, assume_a="sym"))
        return steps[0], steps[1]

    def _objective(
        self, sums: RegressionSums, image: FloatArray, text: FloatArray, n_labels: float, n_rows: int
    ) -> float:
        total = 0.0
        for moment, labels, weights in ((sums.image, sums.image_labels, image), (sums.text, sums.text_labels, text)):
            total += 0.5 * float((weights * (moment @ weights)).sum() - 2 * (weights * labels).sum() + n_labels)
            total += 0.5 * self.sparsity * float(np.sqrt((weights**2).sum(axis=1) + _LEAST_ROW).sum())
        squares = np.maximum(np.linalg.eigvalsh(_score_gram(sums, image, text)), 0)
        outside = max(n_rows - len(squares), 0) * np.sqrt(self.smoothing)
        return total + self.low_rank * float(np.sqrt(squares + self.smoothing).sum() + outside)


def _score_gram(sums: RegressionSums, image: FloatArray, text: FloatArray) -> FloatArray:
    """Return MᵀM of the scores M = [A U_a  B U_b]."""
    both = image.T @ sums.cross @ text
    return np.block([[image.T @ sums.image @ image, both], [both.T, text.T @ sums.text @ text]])


_LEAST_GROUP = 1e-8


@dataclass(kw_only=True, eq=False, repr=False)
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

    sparsity: NonNegative = 0.1
    group_size: Count = 8
    n_iter: Count = 10
    metric: str = "cosine"

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
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
