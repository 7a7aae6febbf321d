from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray, row_blocks
from diptych.models.base import CrossModalModel, Side
from diptych.models.correlation._kernels import (
    Kernel,
    KernelFeatures,
    cholesky_features,
    evaluate_kernel,
    exact_features,
    kernel_matrix,
    nystrom_features,
)
from diptych.models.correlation.cca import canonical_directions
from diptych.models.labels import Targets
from diptych.models.linear import check_varies, column_means, fix_signs
from diptych.models.moments import moments_of_blocks
from diptych.models.parameters import Count, Fraction

_EXACT_ROWS = 2500
# From so many rows on the leading components are found by products; beyond these κ the factors lose digits.
_DUAL_ROWS, _DUAL_KAPPA = 1000, (0.05, 0.99)


@dataclass(kw_only=True, eq=False, repr=False)
class KCCA(CrossModalModel):
    """Kernel canonical correlation analysis: correlation between non-linear functions of the two sides.

    Maximises over α, β

        αᵀK_a K_b β / ( √((1−κ) αᵀK_a²α + κ αᵀK_a α) · √((1−κ) βᵀK_b²β + κ βᵀK_b β) )

    which is eq. 5 of Costa Pereira et al. (2014), their correlation matching (CM). With K = GGᵀ (exactly, or by
    incomplete Cholesky or Nyström), linear CCA is solved on G with the covariances (1−κ)GᵀG + κI: sums as in the paper,
    not means, so κ weighs against eigenvalues that grow with n. κ = 0 is degenerate when the kernel has full rank,
    κ = 1 is kernel `CFA`.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the common space; the paper chose 10 on 1,738 Wikipedia pairs and 8 on TVGraz.
    kappa : float in [0, 1]
        The regulariser; the paper's 50 % on Wikipedia, 10 % on TVGraz.
    image_kernel, text_kernel : str
        ``auto`` takes the paper's kernels where features are non-negative, ``chi2_rbf`` for pictures and
        ``intersection`` for texts, and ``rbf`` where they are not; or one of these, or ``linear``.
    solver : {"auto", "exact", "cholesky", "nystrom"}
        ``auto`` is exact up to 2,500 pairs and Nyström beyond, where an n × n matrix would not be reasonable.
    rank : int
        Landmarks of the two approximate solvers at most.
    tolerance : float
        Share of the kernel's trace that incomplete Cholesky may leave out.
    center : bool
        Centre the features, with the training rows' means also for new rows.
    metric : str
        As in `CFA`.
    random_state : int
        Of the landmarks.

    Attributes
    ----------
    objective_ : array
        Value of the objective for each component; bounded by 1/(1−κ), not by 1.

    References
    ----------
    Hardoon, Szedmak and Shawe-Taylor, "Canonical correlation analysis: an overview with application to learning
    methods", Neural Computation 2004. Costa Pereira et al., TPAMI 2014, eq. 5–6.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import KCCA
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.dirichlet(np.ones(5), size=80)
    >>> histograms = topics @ rng.dirichlet(np.ones(16), size=5)
    >>> model = KCCA(n_components=3).fit(histograms, topics)
    >>> model.encode_texts(topics[:2]).shape
    (2, 3)
    """

    when_to_use: ClassVar[str] = (
        "Pairs without labels on histograms or topics, when CCA is too rigid; slower to encode."
    )

    n_components: Count | None = 10
    kappa: Fraction = 0.5
    image_kernel: str = "auto"
    text_kernel: str = "auto"
    solver: Literal["auto", "exact", "cholesky", "nystrom"] = "auto"
    rank: Count = 1000
    tolerance: Fraction = 1e-3
    center: bool = True
    metric: str = "cosine"
    random_state: int = 0

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        check_varies(images=images, texts=texts)
        self.image_kernel_ = _chosen(self.image_kernel, images, "chi2_rbf")
        self.text_kernel_ = _chosen(self.text_kernel, texts, "intersection")
        self.image_shift_ = self._shift(self.image_kernel_, images)
        self.text_shift_ = self._shift(self.text_kernel_, texts)
        images, texts = images - self.image_shift_, texts - self.text_shift_
        kernels = (
            Kernel.fitted(self.image_kernel_, images, side="images", seed=self.random_state),
            Kernel.fitted(self.text_kernel_, texts, side="texts", seed=self.random_state),
        )
        self.image_scale_, self.text_scale_ = (kernel.scale for kernel in kernels)
        solver = self.solver
        if solver == "auto":
            solver = "exact" if len(images) <= _EXACT_ROWS else "nystrom"
        few = solver == "exact" and self._wants_few_of(len(images))
        if not (few and self._fit_dual(kernels, images, texts)):
            self._fit_features(solver, kernels, images, texts)

    def _wants_few_of(self, n_rows: int) -> bool:
        """Whether few components of many rows are wanted, with a κ that keeps the dual problem well conditioned."""
        low, high = _DUAL_KAPPA
        return (
            n_rows >= _DUAL_ROWS
            and self.n_components is not None
            and 8 * self.n_components <= n_rows
            and low <= self.kappa <= high
        )

    def _fit_dual(self, kernels: tuple[Kernel, Kernel], images: FloatArray, texts: FloatArray) -> bool:
        """Find the leading components from the whole kernel matrices, or say that a decomposition must."""
        assert self.n_components is not None
        image_matrix, image_means = self._training_kernel(kernels[0], images)
        text_matrix, text_means = self._training_kernel(kernels[1], texts)
        found = dual_directions(image_matrix, text_matrix, self.kappa, self.n_components, seed=self.random_state)
        if found is None:
            return False
        self.image_coefficients_, self.objective_, self.text_coefficients_ = found
        self.image_offset_ = image_means @ self.image_coefficients_
        self.text_offset_ = text_means @ self.text_coefficients_
        self.image_landmarks_, self.text_landmarks_ = images, texts
        return True

    def _training_kernel(self, kernel: Kernel, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the kernel matrix, centred where asked for, and what was subtracted from its columns."""
        matrix = kernel_matrix(kernel, rows)
        if not self.center:
            return matrix, np.zeros(len(matrix))
        means = matrix.mean(axis=0)
        matrix -= means
        matrix -= (means - means.mean())[:, None]
        return matrix, means

    def _fit_features(self, solver: str, kernels: tuple[Kernel, Kernel], images: FloatArray, texts: FloatArray) -> None:
        image_map, text_map = self._features(solver, kernels[0], images), self._features(solver, kernels[1], texts)
        sides = ((image_map.training(rows), text_map.training(rows)) for rows in row_blocks(len(images)))
        blocks = (np.hstack(pair) for pair in sides)
        widths = image_map.weights.shape[1], text_map.weights.shape[1]
        sums = moments_of_blocks(blocks, *widths, center=self.center)
        keep = 1 - self.kappa
        left, self.objective_, right = canonical_directions(
            keep * sums.image, keep * sums.text, sums.cross, self.kappa, self.kappa, n_components=self.n_components
        )
        self.image_offset_, self.text_offset_ = sums.image_mean @ left, sums.text_mean @ right
        # Features and directions fold into one matrix of coefficients a side: that is all encoding needs.
        self.image_landmarks_, self.text_landmarks_ = image_map.landmarks, text_map.landmarks
        self.image_coefficients_, self.text_coefficients_ = image_map.weights @ left, text_map.weights @ right

    def _shift(self, name: str, rows: FloatArray) -> FloatArray:
        """Centre the rows of a linear kernel first: a common offset would drown the rest in its one huge eigenvalue."""
        return column_means(rows) if name == "linear" and self.center else np.zeros(rows.shape[1])

    def _features(self, solver: str, kernel: Kernel, rows: FloatArray) -> KernelFeatures:
        if solver == "exact":
            return exact_features(kernel, rows)
        if solver == "cholesky":
            return cholesky_features(kernel, rows, self.rank, self.tolerance)
        return nystrom_features(kernel, rows, self.rank, seed=self.random_state)

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        kernel = Kernel(*self._of_side(side, "kernel", "scale"))
        shift, landmarks, coefficients, offset = self._of_side(side, "shift", "landmarks", "coefficients", "offset")
        kernel.check(rows, side=f"{side}s")
        points = evaluate_kernel(kernel, rows - shift, landmarks, coefficients)
        return np.asarray((points - offset).astype(rows.dtype))


def _chosen(name: str, rows: FloatArray, histogram_kernel: str) -> str:
    if name != "auto":
        return name
    return histogram_kernel if rows.min() >= 0 else "rbf"


# Columns of a block beyond those wanted: with them a product costs little more, and fewer products are needed.
_SPARE_COLUMNS = 10
_TOLERANCE, _LARGEST_ERROR, _GROWTH = 1e-12, 1e-10, 1.1
# Shares of the longest squared length of a block: below the first a direction is rounding, below the second inexact.
_DEPENDENT, _SLANTED = 1e-14, 1e-6
# Squares of objectives, as they are found here, are known down to the rounding unit.
_LEAST_OBJECTIVE = 8 * float(np.sqrt(np.finfo(np.float64).eps))

Operator = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class ShrunkKernel:
    """R = ((1−κ)K + κI)⁻¹ and S = KR of a kernel matrix K, by the Cholesky factor of R⁻¹; 0 < κ < 1."""

    factor: FloatArray
    kappa: float

    @classmethod
    def of(cls, kernel: FloatArray, kappa: float) -> ShrunkKernel:
        """Factor R⁻¹ in the memory of ``kernel``."""
        kernel *= 1 - kappa
        kernel.flat[:: len(kernel) + 1] += kappa
        # The transpose is the same matrix in the order that LAPACK works on without a copy.
        return cls(scipy.linalg.cholesky(kernel.T, lower=True, overwrite_a=True, check_finite=False), kappa)

    def solve(self, columns: FloatArray) -> FloatArray:
        """Return R times ``columns``."""
        return np.asarray(scipy.linalg.cho_solve((self.factor, True), columns, check_finite=False))

    def smooth(self, columns: FloatArray) -> FloatArray:
        """Return S times ``columns``: KR = (I − κR)/(1−κ) needs no product with K."""
        return np.asarray((columns - self.kappa * self.solve(columns)) / (1 - self.kappa))


def dual_directions(
    image_kernel: FloatArray, text_kernel: FloatArray, kappa: float, n_components: int, *, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return (α, objective, β): coefficients of the training rows, components in decreasing objective.

    None where they are not found by products alone. The kernel matrices are overwritten.

    Where the objective of `KCCA` is stationary,  ρα = R_a K_b β  and  ρβ = R_b K_a α.  The points a = K_a α and
    b = K_b β then have  ρa = S_a b  and  ρb = S_b a,  so that b are eigenvectors of S_b S_a. In the inner product
    xᵀS_a y that operator is self-adjoint.
    """
    # The largest eigenvalue is at least this. Where κ outweighs it, S is small beside I and loses digits.
    if min(float(np.vdot(kernel, kernel)) / np.trace(kernel) for kernel in (image_kernel, text_kernel)) < kappa:
        return None
    images, texts = ShrunkKernel.of(image_kernel, kappa), ShrunkKernel.of(text_kernel, kappa)
    found = leading_eigenpairs(texts.smooth, images.smooth, len(image_kernel), n_components, seed=seed)
    if found is None:
        return None
    squares, points = found
    objective = np.sqrt(np.maximum(squares, 0))
    real = objective > _LEAST_OBJECTIVE * objective[0]
    objective, points = objective[real], points[:, real]
    alpha, beta = images.solve(points), texts.solve(images.smooth(points)) / objective
    alpha, beta = fix_signs(alpha, beta)
    return alpha, objective, beta


def leading_eigenpairs(
    outer: Operator, inner: Operator, size: int, count: int, *, seed: int
) -> tuple[FloatArray, FloatArray] | None:
    """Return the ``count`` largest eigenvalues of  outer∘inner,  falling, and vectors v with vᵀ inner(v) = 1.

    Both operators are symmetric and have no negative eigenvalue. This is the block Lanczos method in the inner product
    of ``inner``, each block made orthogonal to all before it: Golub and Underwood, "The block Lanczos method for
    computing eigenvalues", 1977. There are fewer pairs where the operator has no more, and None where half of all
    directions do not hold them to rounding: a decomposition is cheaper then.
    """
    # What starts in the range of the operator stays there: a constant, which centring takes out, is never in it.
    start = np.random.default_rng(seed).normal(size=(size, count + _SPARE_COLUMNS))
    block, duals, _ = _orthonormal(outer(inner(start)), inner)
    basis, dual_basis, checked = block, duals, 0
    projected: FloatArray = np.empty((0, 0))
    while 2 * basis.shape[1] <= size and block.shape[1]:
        product = outer(duals)
        projected = _bordered(projected, dual_basis.T @ product)
        # Twice, since once leaves what rounding makes of almost parallel columns.
        for _ in range(2):
            product = product - basis @ (dual_basis.T @ product)
        width = block.shape[1]
        block, duals, lengths = _orthonormal(product, inner)
        # The cube of the width is worth paying when it has grown, or ends here.
        if len(projected) >= _GROWTH * checked or not block.shape[1]:
            checked = len(projected)
            values, vectors = np.linalg.eigh(projected)
            values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
            if np.abs(lengths @ vectors[-width:]).max(initial=0.0) <= _TOLERANCE * values[0]:
                found = basis @ vectors
                error = np.linalg.norm(outer(inner(found)) - found * values, axis=0)
                exact = error <= _LARGEST_ERROR * values[0] * np.linalg.norm(found, axis=0)
                return (values, found) if exact.all() else None
        basis, dual_basis = np.hstack([basis, block]), np.hstack([dual_basis, duals])
    return None


def _orthonormal(block: FloatArray, inner: Operator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return an orthonormal basis of the columns, ``inner`` of it, and the block in terms of this basis."""
    basis, duals, lengths, is_slanted = _normalised(block, inner(block))
    if is_slanted:
        basis, duals, again, _ = _normalised(basis, inner(basis))
        lengths = again @ lengths
    return basis, duals, lengths


def _normalised(block: FloatArray, duals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
    """Do so once, and say whether columns were so close to parallel that rounding leaves the basis a little slanted."""
    squares, rotation = np.linalg.eigh(block.T @ duals)
    longest = max(float(squares[-1]), 0.0) if len(squares) else 0.0
    real = squares > _DEPENDENT * longest
    squares, rotation = squares[real], rotation[:, real]
    lengths = np.sqrt(squares)
    unit = rotation / lengths
    is_slanted = bool((squares < _SLANTED * longest).any())
    return block @ unit, duals @ unit, lengths[:, None] * rotation.T, is_slanted


def _bordered(matrix: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the symmetric matrix with some more columns at the right, and their mirror image below."""
    old, new = len(matrix), len(columns)
    grown = np.empty((new, new))
    grown[:old, :old], grown[:, old:], grown[old:, :old] = matrix, columns, columns[:old].T
    return grown
