"""Matrix factorisation hashing in moments alone: two views on one scale and the alternating steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.models.base import check_counts, check_numbers
from diptych.models.moments import Moments


@dataclass(frozen=True)
class ScaledViews:
    """Means, scales and, per row, the joint second moment of [X, Y] both centred and divided by their scale."""

    sums: Moments
    image_scale: float
    text_scale: float
    joint: FloatArray

    @classmethod
    def of(cls, sums: Moments) -> ScaledViews:
        """Scale two views to one mean square."""
        sums.check_varies()
        image_scale, text_scale = (float(np.sqrt(np.trace(part) / sums.n_rows)) for part in (sums.image, sums.text))
        image, text = sums.image / image_scale / image_scale, sums.text / text_scale / text_scale
        cross = sums.cross / image_scale / text_scale
        return cls(sums, image_scale, text_scale, np.block([[image, cross], [cross.T, text]]) / sums.n_rows)

    @property
    def image_width(self) -> int:
        """Columns of the first view."""
        return len(self.sums.image)

    @property
    def image(self) -> FloatArray:
        """Mean of xxᵀ."""
        return self.joint[: self.image_width, : self.image_width]

    @property
    def text(self) -> FloatArray:
        """Mean of yyᵀ."""
        return self.joint[self.image_width :, self.image_width :]

    def unscaled(self, both: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split a map of the scaled views into one for each, to be applied to rows that are centred alone."""
        return both[: self.image_width] / self.image_scale, both[self.image_width :] / self.text_scale


def check_factorisation(model: object) -> None:
    """Raise unless the parameters of a method that factorises can be used."""
    check_numbers(model, "balance", low=0, high=1)
    check_numbers(model, "mu", "regularization", low=0, open_low=True)
    check_counts(model, "max_iter")
    check_numbers(model, "tol", low=0)


class CollectiveFactorisation:
    """λ‖X − VU₁‖² + (1−λ)‖Y − VU₂‖² + μ(‖V − XP₁‖² + ‖V − YP₂‖²) + γ(norms), per row, for a V known by its moments.

    What is needed of V is ``square`` = VᵀV and ``products`` = [X, Y]ᵀV, both divided by the number of rows. U₁ and U₂
    stand side by side in one matrix, P₁ above P₂ in another.
    """

    def __init__(self, views: ScaledViews, balance: float, mu: float, regularization: float) -> None:
        self.views, self.mu, self.regularization = views, mu, regularization
        self.weights = np.repeat([balance, 1 - balance], [views.image_width, len(views.joint) - views.image_width])
        ridge = regularization / mu
        self._solvers = [
            scipy.linalg.cho_factor(part + ridge * np.eye(len(part))) for part in (views.image, views.text)
        ]

    def alternate(
        self,
        square: FloatArray,
        products: FloatArray,
        latent_of: Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]],
        *,
        coupling: float,
        max_iter: int,
        tol: float,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Solve for U, P and V in turn and return what ``latent_of`` made of V, the last products, and the objectives.

        ``latent_of`` takes G of `attraction` and returns its own form of V, ``square`` and ``products``. It ends after
        ``max_iter`` rounds, or when the objective falls by less than a share ``tol`` of itself.
        """
        objectives: list[float] = []
        while len(objectives) < max_iter:
            bases, predictors = self.bases(square, products), self.predictors(products)
            latent, square, products = latent_of(self.attraction(bases, predictors, coupling))
            objectives.append(self.objective(square, products, bases, predictors))
            if len(objectives) > 1 and objectives[-2] - objectives[-1] <= tol * abs(objectives[-2]):
                break
        return latent, products, np.array(objectives)

    def bases(self, square: FloatArray, products: FloatArray) -> FloatArray:
        """Return U: how each side is rebuilt from V."""
        parts = []
        for weight, part in zip((self.weights[0], self.weights[-1]), self._split(products), strict=True):
            regular = weight * square + self.regularization * np.eye(len(square))
            parts.append(np.linalg.solve(regular, weight * part.T))
        return np.hstack(parts)

    def predictors(self, products: FloatArray) -> FloatArray:
        """Return P: how V is predicted from each side."""
        parts = zip(self._solvers, self._split(products), strict=True)
        return np.vstack([scipy.linalg.cho_solve(solver, part) for solver, part in parts])

    def attraction(self, bases: FloatArray, predictors: FloatArray, coupling: float) -> FloatArray:
        """Return G with [X, Y]G = the best V for these U and P; ``coupling`` is μ where nothing is wrong."""
        system = (bases * self.weights) @ bases.T + (2 * self.mu + self.regularization) * np.eye(len(bases))
        return np.linalg.solve(system, self.weights * bases + coupling * predictors.T).T

    def objective(self, square: FloatArray, products: FloatArray, bases: FloatArray, predictors: FloatArray) -> float:
        """Return the value of everything that is minimised."""
        views, trace = self.views, float(np.trace(square))
        rebuilt = np.diag(views.joint) - 2 * (bases.T * products).sum(axis=1) + ((square @ bases) * bases).sum(axis=0)
        first, second = self._split(predictors)
        moved = np.vstack([views.image @ first, views.text @ second])
        predicted = 2 * trace - 2 * float((predictors * products).sum()) + float((predictors * moved).sum())
        norms = float((bases**2).sum() + (predictors**2).sum()) + trace
        return float(self.weights @ rebuilt) + self.mu * predicted + self.regularization * norms

    def _split(self, both: FloatArray) -> list[FloatArray]:
        return np.split(both, [self.views.image_width])
