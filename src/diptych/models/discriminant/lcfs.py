from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.models.base import Grid, Need, check_count, check_number, check_numbers
from diptych.models.discriminant._base import LabelRegressionModel, RegressionSums
from diptych.models.moments import MomentModel, Moments

_LEAST_ROW = 1e-7
_NOISE = 1e-13


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

    objectives_: FloatArray

    def __init__(
        self,
        *,
        sparsity: float = 0.1,
        low_rank: float = 0.001,
        smoothing: float = 1e-7,
        n_iter: int = 5,
        metric: str = "cosine",
    ) -> None:
        self.sparsity = sparsity
        self.low_rank = low_rank
        self.smoothing = smoothing
        self.n_iter = n_iter
        self.metric = metric

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_numbers(self, "sparsity", "low_rank", low=0)
        check_number("smoothing", self.smoothing, low=0, open_low=True)
        check_count("n_iter", self.n_iter)

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
