"""Steps that several hashing methods share: whitening, similarity, extra bits, kernel regression, factorisation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from diptych.arrays import FloatArray, map_rows, row_blocks
from diptych.estimators import scikit_learn
from diptych.models.linear import column_means, fix_signs, whitener
from diptych.models.moments import Moments
from diptych.models.parameters import check_count


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


_NOISE, _EIGENVALUE_FLOOR, _TOLERANCE = 1e-7, 1e-10, 1e-4
_BLOCK_BYTES = 1 << 25
_ROWS_PER_CENTRE = 20


@dataclass(frozen=True)
class WhitenedPair:
    """Centred moments and, for each side, R with Rᵀ(moment + ridge·I)R = I."""

    sums: Moments
    image: FloatArray
    text: FloatArray

    @classmethod
    def of(cls, sums: Moments, regularization: float) -> WhitenedPair:
        """Whiten with a ridge relative to the mean variance of a feature."""
        sums.check_varies()
        image, text = (
            whitener(moment, regularization * float(np.trace(moment)) / len(moment), sums.precision)
            for moment in (sums.image, sums.text)
        )
        return cls(sums, image, text)


def factored_svd(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the thin SVD (U, s, V) of ``left @ right.T`` from its factors; V has columns, not rows."""
    left_basis, left_part = np.linalg.qr(left)
    right_basis, right_part = np.linalg.qr(right)
    inner_left, values, inner_right = np.linalg.svd(left_part @ right_part.T)
    kept = min(left_basis.shape[1], right_basis.shape[1])
    return left_basis @ inner_left[:, :kept], values[:kept], right_basis @ inner_right[:kept].T


def semantic_factors(sums: Moments) -> tuple[FloatArray, FloatArray]:
    """Return F and G, one column per class, with 2FGᵀ = XᵀSY for centred X and Y and labels with rows of unit length.

    S = 2L̃L̃ᵀ − 11ᵀ is the cosine of two label vectors L̃, stretched to [−1, 1]. Centring makes the second term vanish,
    so that rows without a label do not count.
    """
    return sums.known_labels.image.T, sums.known_labels.text.T


def mixed_directions(
    left: FloatArray, right: FloatArray, weights: FloatArray, n_bits: int, seed: int, kept: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return ``n_bits`` pairs of directions: the given ones, or the first ``kept``, then random mixtures of all.

    A mixture is a random hyperplane of the weighted common space, the same on both sides, so that their bits go on
    agreeing. Each is drawn by its own number, so that longer codes begin with the shorter ones. Pairs whose weight is
    at rounding level are noise, and mixtures take their place.
    """
    real = weights > _NOISE * weights.max(initial=0.0)
    # An SVD leaves signs open, and mixtures of other signs would be other bits.
    (left, right), weights = fix_signs(left[:, real], right[:, real]), weights[real]
    own = slice(0, min(n_bits, left.shape[1] if kept is None else kept))
    missing = n_bits - len(weights[own])
    if missing == 0:
        return left[:, own], right[:, own]
    draws = [np.random.default_rng([seed, number]).normal(size=left.shape[1]) for number in range(missing)]
    mixture = weights[:, None] * np.stack(draws, axis=1)
    return np.hstack([left[:, own], left @ mixture]), np.hstack([right[:, own], right @ mixture])


def random_complement(basis: FloatArray, n_columns: int, seed: int) -> FloatArray:
    """Return random orthonormal columns outside the span of an orthonormal ``basis``; for lack of room, some inside."""
    rng = np.random.default_rng([seed, len(basis)])
    room = len(basis) - basis.shape[1]
    outside = rng.normal(size=(len(basis), min(n_columns, room)))
    outside -= basis @ (basis.T @ outside)
    columns = np.linalg.qr(outside)[0]
    inside = rng.normal(size=(len(basis), n_columns - columns.shape[1]))
    return np.hstack([columns, inside / np.linalg.norm(inside, axis=0)])


def sample_pairs(
    images: FloatArray, texts: FloatArray, max_pairs: int | None, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return at most ``max_pairs`` aligned rows, drawn without replacement; all of them where it is None."""
    if max_pairs is None or len(images) <= check_count("max_pairs", max_pairs):
        return images, texts
    chosen = np.sort(np.random.default_rng(seed).choice(len(images), max_pairs, replace=False))
    return images[chosen], texts[chosen]


@dataclass(frozen=True)
class KernelBasis:
    """The features exp(−‖x − z‖²/s²) of a row: one per centre z; s² is the mean squared distance of training rows."""

    mean: FloatArray
    scale: float
    centres: FloatArray  # as (z − mean)/s, which makes the features independent of the unit of the data

    @classmethod
    def fitted(cls, rows: FloatArray, n_centres: int, *, seed: int) -> KernelBasis:
        """Place at most ``n_centres`` centres by k-means; fewer different rows are all of them centres."""
        mean = column_means(rows)
        squares = sum(
            float(((rows[block] - mean) ** 2).sum()) for block in row_blocks(len(rows), _block_rows(rows.shape[1]))
        )
        # The mean of ‖xᵢ − xⱼ‖² over all pairs is twice the total variance.
        scale = float(np.sqrt(2 * squares / len(rows)))
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(len(rows))[: _ROWS_PER_CENTRE * n_centres])
        points = np.unique((rows[chosen].astype(np.float64) - mean) / scale, axis=0)
        if len(points) > n_centres:
            from sklearn.cluster import KMeans

            means = KMeans(n_centres, init="random", n_init=1, max_iter=100, random_state=int(rng.integers(1 << 31)))
            points = means.fit(points).cluster_centers_
        return cls(mean, scale, points)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the features of ``rows`` in float64."""
        points = (rows.astype(np.float64) - self.mean) / self.scale
        # Rows are centred and of unit size, so that expanding the square loses no digits that matter.
        distances = (points**2).sum(axis=1)[:, None] + (self.centres**2).sum(axis=1) - 2 * points @ self.centres.T
        return np.asarray(np.exp(-np.maximum(distances, 0)))

    def outputs(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        """Return features times ``weights`` block by block, in the precision of ``rows``."""
        block_rows = _block_rows(len(self.centres))
        return map_rows(lambda block: self(block) @ weights, rows, weights.shape[1], block_rows=block_rows)


def fit_kernel_logistic(
    basis: KernelBasis, rows: FloatArray, signs: FloatArray, *, regularization: float, max_iter: int
) -> FloatArray:
    """Return the weights, one column per bit, that minimise  Σᵢ log(1 + exp(−hᵢ φᵢᵀw)) + c wᵀK₀w.

    K₀ is the kernel between the centres. In the coordinates v = K₀^½ w the penalty is c‖v‖² and the Hessian at zero
    ΦᵀΦ/4 + 2cI; in its eigenvectors, divided by the roots of its eigenvalues, the problem is nearly round. L-BFGS on
    all columns at once then needs few steps, and two products with one matrix for each.
    """
    values, vectors = scipy.linalg.eigh(basis(basis.centres * basis.scale + basis.mean))
    kept = values > _EIGENVALUE_FLOOR * values[-1]
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    n_centres = len(basis.centres)
    kernel = map_rows(basis, rows, n_centres, dtype=np.float64, block_rows=_block_rows(n_centres))
    energies, axes = scipy.linalg.eigh(whitening.T @ (kernel.T @ kernel) @ whitening)
    scale = 1 / np.sqrt(np.maximum(energies, 0) / 4 + 2 * regularization)
    to_weights = whitening @ (axes * scale)
    features, penalties = kernel @ to_weights, regularization * scale**2
    # One row per bit: in this order both products run along the rows of features.
    wanted = np.ascontiguousarray(signs.T)
    shape = len(wanted), len(scale)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(shape)
        value, gradient = float((weights**2 @ penalties).sum()), 2 * penalties * weights
        for block in row_blocks(len(rows), _block_rows(n_centres)):
            margins = wanted[:, block] * (weights @ features[block].T)
            # log(1 + e⁻ᵐ) and its slope from one exponential that cannot overflow.
            decay = np.exp(-np.abs(margins))
            value += float((np.log1p(decay) - np.minimum(margins, 0)).sum())
            slopes = np.where(margins > 0, decay, 1) / (1 + decay)
            gradient -= (wanted[:, block] * slopes) @ features[block]
        return value, gradient.ravel()

    slope = np.abs(wanted @ features).max() / 2
    options = {"maxiter": max_iter, "gtol": _TOLERANCE * slope, "ftol": 0.0, "maxcor": 20}
    solution = scipy.optimize.minimize(
        objective, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options=options
    )
    if solution.nit >= max_iter:
        warnings.warn(
            f"kernel logistic regression stopped after {max_iter} iterations before it converged; raise max_iter or "
            "regularization",
            scikit_learn("sklearn.exceptions").ConvergenceWarning,
            stacklevel=2,
        )
    return np.asarray(to_weights @ solution.x.reshape(shape).T)


def _block_rows(width: int) -> int:
    return _BLOCK_BYTES // (8 * width)
