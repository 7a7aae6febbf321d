"""The alternation behind SCRATCH."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve, svd

from diptych.arrays import FloatArray
from diptych.models.hashing.anchored_side import AnchoredSide


@dataclass(frozen=True)
class FactorWeights:
    """λ, α, μ and γ of the objective."""

    reconstruction: float
    labels: float
    agreement: float
    ridge: float


class RotatedFactorisation:
    """Latent rows V of the training pairs, a rotation R towards codes, and everything else given these two."""

    def __init__(
        self,
        sides: tuple[AnchoredSide, AnchoredSide],
        labels: FloatArray,
        weights: FactorWeights,
        n_bits: int,
        seed: int,
    ) -> None:
        self.sides = sides
        self.labels = labels
        self.weights = weights
        rng = np.random.default_rng(seed)
        self.rotation: FloatArray = np.linalg.qr(rng.normal(size=(n_bits, n_bits)))[0]
        self._set_latent(rng.normal(size=(len(labels), n_bits)))

    def bases(self) -> list[FloatArray]:
        """Return U of both sides."""
        return [self._basis(product, self.weights.reconstruction) for product in self.products]

    def regressions(self) -> list[FloatArray]:
        """Return W of both sides."""
        return [side.regression(product) for side, product in zip(self.sides, self.products, strict=True)]

    def update(self) -> float:
        """Minimise over every block of variables once and return the objective."""
        weights = self.weights
        codes = np.where(self.latent @ self.rotation >= 0, 1.0, -1.0)
        bases, regressions = self.bases(), self.regressions()
        label_basis = self._basis(self.label_products, weights.labels)
        system = unlabelled_system(bases, weights) + weights.labels * label_basis @ label_basis.T
        system += np.eye(len(system))
        wanted = weights.labels * self.labels @ label_basis.T + codes @ self.rotation.T
        for side, basis, regression in zip(self.sides, bases, regressions, strict=True):
            wanted += side.mapped(weights.reconstruction * basis.T + weights.agreement * regression)
        self._set_latent(np.ascontiguousarray(solve(system, wanted.T, assume_a="pos").T))
        left, _, right = svd(self.latent.T @ codes)
        self.rotation = left @ right
        return self._objective(codes, bases, regressions, label_basis)

    def _set_latent(self, latent: FloatArray) -> None:
        self.latent = latent
        self.gram = latent.T @ latent
        self.products = [side.products(latent) for side in self.sides]
        self.label_products = self.labels.T @ latent

    def _basis(self, products: FloatArray, weight: float) -> FloatArray:
        """Return (VᵀV + γ/weight·I)⁻¹ Vᵀ(what is reconstructed)."""
        ridge = self.weights.ridge / weight * np.eye(len(self.gram))
        return np.asarray(solve(self.gram + ridge, products.T, assume_a="pos"))

    def _objective(
        self, codes: FloatArray, bases: list[FloatArray], regressions: list[FloatArray], label_basis: FloatArray
    ) -> float:
        weights, gram = self.weights, self.gram
        label_error = float(((self.labels - self.latent @ label_basis) ** 2).sum())
        rotation_error = float(((codes - self.latent @ self.rotation) ** 2).sum())
        norms = float(np.trace(gram) + (label_basis**2).sum())
        total = weights.labels * label_error + rotation_error
        for side, products, basis, regression in zip(self.sides, self.products, bases, regressions, strict=True):
            total += weights.reconstruction * side.reconstruction_error(basis, products, gram)
            total += weights.agreement * side.regression_error(regression, products, gram)
            norms += float((basis**2).sum() + (regression**2).sum())
        return total + weights.ridge * norms


def unlabelled_system(bases: list[FloatArray], weights: FactorWeights) -> FloatArray:
    """Return λ(U₁U₁ᵀ + U₂U₂ᵀ) + (2μ + γ)I, what the latent row of a pair without label solves."""
    identity = np.eye(len(bases[0]))
    reconstruction = sum((basis @ basis.T for basis in bases), start=np.zeros_like(identity))
    return np.asarray(weights.reconstruction * reconstruction + (2 * weights.agreement + weights.ridge) * identity)
