"""Matrix factorisation hashing with labels and a rotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray, map_rows, row_blocks
from diptych.models.base import Grid, Need, Side
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.labels import Targets
from diptych.models.linear import centre, check_varies, column_means
from diptych.models.parameters import Count, Positive


@dataclass(frozen=True)
class RbfAnchors:
    """The map x ↦ exp(−‖x − a‖² / 2s) over the anchors a, where s is the mean squared distance of training rows."""

    mean: FloatArray
    scale: float
    anchors: FloatArray  # centred and scaled, so that features of any size leave the same room for rounding

    @classmethod
    def drawn(cls, rows: FloatArray, n_anchors: int, seed: int) -> RbfAnchors:
        """Take ``n_anchors`` different training rows, or all where there are fewer."""
        mean = column_means(rows)
        chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:n_anchors])
        # Over all pairs, mean ‖x − x′‖² is twice the total variance: no distances are needed for it.
        scale = float(np.sqrt(2 * _total_variance(rows, mean)))
        return cls(mean, scale, centre(rows[chosen], mean).astype(np.float64) / scale)

    def features(self, rows: FloatArray) -> FloatArray:
        """Return the (rows, anchors) matrix of features in the precision of ``rows``."""
        return map_rows(self._block, rows, len(self.anchors))

    def project(self, rows: FloatArray, projection: FloatArray, offset: FloatArray) -> FloatArray:
        """Return features @ ``projection`` − ``offset`` without holding the features of more than a block of rows."""
        kernel, shift = projection.astype(rows.dtype, copy=False), offset.astype(rows.dtype, copy=False)
        return map_rows(lambda block: self._block(block) @ kernel - shift, rows, projection.shape[1])

    def _block(self, rows: FloatArray) -> FloatArray:
        scaled = centre(rows, self.mean) / rows.dtype.type(self.scale)
        anchors = self.anchors.astype(rows.dtype, copy=False)
        squares = np.einsum("ij,ij->i", scaled, scaled)[:, None] + np.einsum("ij,ij->i", anchors, anchors)
        squares -= 2 * (scaled @ anchors.T)
        np.maximum(squares, 0, out=squares)
        squares *= -0.5
        return np.asarray(np.exp(squares, out=squares))


def _total_variance(rows: FloatArray, mean: FloatArray) -> float:
    total = 0.0
    for block in row_blocks(len(rows)):
        deviations = centre(rows[block], mean)
        # The sum of a block in its own precision, the sum of blocks in float64.
        total += float(np.einsum("ij,ij->", deviations, deviations))
    return total / len(rows)


@dataclass(frozen=True)
class AnchoredSide:
    """Centred features Φ of the training rows, their moment ΦᵀΦ, and the factor of ΦᵀΦ + ridge·I for regressions."""

    anchors: RbfAnchors
    feature_mean: FloatArray
    features: FloatArray
    moment: FloatArray
    factor: tuple[FloatArray, bool]

    @classmethod
    def of(cls, rows: FloatArray, n_anchors: int, ridge: float, seed: int) -> AnchoredSide:
        """Draw anchors among ``rows`` and compute their features once."""
        anchors = RbfAnchors.drawn(rows, n_anchors, seed)
        features = anchors.features(rows)
        feature_mean = column_means(features)
        features -= feature_mean.astype(features.dtype)
        moment = np.zeros((features.shape[1], features.shape[1]))
        for block in row_blocks(len(features)):
            moment += features[block].T @ features[block]
        return cls(
            anchors, feature_mean, features, moment, scipy.linalg.cho_factor(moment + ridge * np.eye(len(moment)))
        )

    def products(self, latent: FloatArray) -> FloatArray:
        """Return ΦᵀV."""
        return (self.features.T @ latent.astype(self.features.dtype, copy=False)).astype(np.float64)

    def reconstruction_error(self, basis: FloatArray, products: FloatArray, gram: FloatArray) -> float:
        """Return ‖Φ − VU‖² from ΦᵀV and VᵀV."""
        return float(np.trace(self.moment) - 2 * (basis.T * products).sum() + (basis @ basis.T * gram).sum())

    def regression_error(self, weights: FloatArray, products: FloatArray, gram: FloatArray) -> float:
        """Return ‖V − ΦW‖² from ΦᵀV and VᵀV."""
        return float(np.trace(gram) - 2 * (weights * products).sum() + (weights * (self.moment @ weights)).sum())


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
        """Return W = (ΦᵀΦ + ridge·I)⁻¹ ΦᵀV of both sides, which predict the latent rows."""
        return [
            scipy.linalg.cho_solve(side.factor, product)
            for side, product in zip(self.sides, self.products, strict=True)
        ]

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
            weighted = weights.reconstruction * basis.T + weights.agreement * regression
            wanted += side.features @ weighted.astype(side.features.dtype, copy=False)
        self._set_latent(np.ascontiguousarray(scipy.linalg.solve(system, wanted.T, assume_a="pos").T))
        left, _, right = scipy.linalg.svd(self.latent.T @ codes)
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
        return np.asarray(scipy.linalg.solve(self.gram + ridge, products.T, assume_a="pos"))

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


@dataclass(kw_only=True, eq=False, repr=False)
class SCRATCH(HashingModel):
    """Factorise both sides and the labels through one latent row per pair, and rotate these towards binary codes.

        λ(‖Φ − VU₁‖² + ‖Ψ − VU₂‖²) + α‖L − VG‖² + μ(‖V − ΦW₁‖² + ‖V − ΨW₂‖²) + ‖B − VR‖² + γ(norms),
        B ∈ {−1, 1}, RᵀR = I

    Φ and Ψ are centred radial basis functions around random training rows of each side, L the 0/1 labels. Every block
    of variables has a closed form given the others (ridge regressions, a sign, an orthogonal Procrustes problem), so
    that the objective never rises and an iteration costs O(n·anchors·bits). Codes are sgn(φ(x)W₁R) and sgn(ψ(y)W₂R).

    The unified code of a pair is sgn(vR) with the latent row v that minimises the objective for this pair without its
    label, which a new item does not have, and without the rotation term, whose code is what is asked for.

    Parameters
    ----------
    n_bits : int
        Length of the codes; nothing limits it but the number of anchors.
    n_anchors : int
        Basis functions per side; where there are fewer pairs, every pair is one.
    reconstruction, label_weight, agreement, ridge : float
        λ, α, μ and γ.
    n_iter : int
        Rounds of all updates.
    random_state : int
        Of the anchors and of the start.

    Attributes
    ----------
    objectives_ : array
        The objective after each round.

    References
    ----------
    Li, Chen, Zhang, Luo, Nie and Xu, "SCRATCH: a scalable discrete matrix factorization hashing for cross-modal
    retrieval", ACM Multimedia 2018. The weights are those of public code; the start is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import SCRATCH
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels]
    >>> images = meaning @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(120, 8))
    >>> texts = meaning @ rng.normal(size=(3, 5)) + 0.3 * rng.normal(size=(120, 5))
    >>> model = SCRATCH(n_bits=8).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Codes from many labelled pairs when straight hyperplanes are too simple."
    grid: ClassVar[Grid] = {"ridge": [0.5, 5.0]}

    n_anchors: Count = 500
    reconstruction: Positive = 0.5
    label_weight: Positive = 500.0
    agreement: Positive = 1000.0
    ridge: Positive = 5.0
    n_iter: Count = 20

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        check_varies(images=images, texts=texts)
        ridge = self.ridge / self.agreement
        image, text = (AnchoredSide.of(rows, self.n_anchors, ridge, self.random_state) for rows in (images, texts))
        weights = FactorWeights(self.reconstruction, self.label_weight, self.agreement, self.ridge)
        factors = RotatedFactorisation((image, text), targets.indicator, weights, self.n_bits, self.random_state)
        self.objectives_ = np.array([factors.update() for _ in range(self.n_iter)])
        bases, regressions = factors.bases(), factors.regressions()
        # vR of a pair without label is linear in the features of its sides.
        to_code = scipy.linalg.solve(unlabelled_system(bases, weights), factors.rotation, assume_a="pos")
        for name, side, basis, regression in zip(("image", "text"), factors.sides, bases, regressions, strict=True):
            learned = {
                "mean": side.anchors.mean,
                "scale": side.anchors.scale,
                "anchors": side.anchors.anchors,
                "feature_mean": side.feature_mean,
                "projection": regression @ factors.rotation,
                "pair_projection": (weights.reconstruction * basis.T + weights.agreement * regression) @ to_code,
            }
            for part, value in learned.items():
                setattr(self, f"{name}_{part}_", value)

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        return self._project(side, rows, "projection")

    def _decide_pairs(self, images: FloatArray, texts: FloatArray) -> FloatArray:
        image_part = self._project("image", images, "pair_projection")
        return np.asarray(image_part + self._project("text", texts, "pair_projection"))

    def _project(self, side: Side, rows: FloatArray, name: str) -> FloatArray:
        parts = self._of_side(side, "mean", "scale", "anchors", "feature_mean", name)
        mean, scale, anchors, feature_mean, projection = parts
        return RbfAnchors(mean, scale, anchors).project(rows, projection, feature_mean @ projection)
