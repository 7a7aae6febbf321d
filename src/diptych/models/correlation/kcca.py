from __future__ import annotations

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
from diptych.models.correlation.cca import canonical_directions, ridges_of
from diptych.models.labels import Targets
from diptych.models.linear import check_varies, column_means, fix_signs
from diptych.models.moments import moments_of_blocks
from diptych.models.parameters import Count, Fraction

_EXACT_ROWS = 2500
# From so many rows on, and so many for each component, with κ between these, Cholesky and ARPACK find few components.
_LEADING_ROWS, _ROWS_OF_COMPONENT = 500, 16
_MIN_KAPPA, _MAX_KAPPA = 0.05, 0.99
# Squares of objectives are known down to the rounding unit.
_MIN_OBJECTIVE = 8 * float(np.sqrt(np.finfo(np.float64).eps))


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
    kappa : float in [0, 1] or "auto"
        The regulariser; the paper's 50 % on Wikipedia, 10 % on TVGraz. ``"auto"`` chooses a ridge for each side as
        `CCA` does, in the space of the kernel's features, and takes twice the time.
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
    kappa: Fraction | Literal["auto"] = 0.5
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
        if solver == "exact" and self._fit_leading(kernels, images, texts):
            return
        image_map, text_map = self._features(solver, kernels[0], images), self._features(solver, kernels[1], texts)
        sides = ((image_map.training(rows), text_map.training(rows)) for rows in row_blocks(len(images)))
        blocks = (np.hstack(pair) for pair in sides)
        widths = image_map.weights.shape[1], text_map.weights.shape[1]
        sums = moments_of_blocks(blocks, *widths, center=self.center)
        if self.kappa == "auto":
            weight = 1 / sums.n_rows
            moments = weight * sums.image, weight * sums.text, weight * sums.cross
            ridges = ridges_of(*moments, sums.n_rows, "auto")
        else:
            moments = (1 - self.kappa) * sums.image, (1 - self.kappa) * sums.text, sums.cross
            ridges = self.kappa, self.kappa
        left, self.objective_, right = canonical_directions(*moments, *ridges, n_components=self.n_components)
        self.image_offset_, self.text_offset_ = sums.image_mean @ left, sums.text_mean @ right
        # Features and directions fold into one matrix of coefficients a side: that is all encoding needs.
        self.image_landmarks_, self.text_landmarks_ = image_map.landmarks, text_map.landmarks
        self.image_coefficients_, self.text_coefficients_ = image_map.weights @ left, text_map.weights @ right

    def _fit_leading(self, kernels: tuple[Kernel, Kernel], images: FloatArray, texts: FloatArray) -> bool:
        """Find few components of many rows from the kernel matrices; False where a decomposition must."""
        count = self.n_components
        if count is None or len(images) < max(_LEADING_ROWS, _ROWS_OF_COMPONENT * count):
            return False
        if self.kappa == "auto" or not _MIN_KAPPA <= self.kappa <= _MAX_KAPPA:
            return False
        image_matrix, image_means = self._training_kernel(kernels[0], images)
        text_matrix, text_means = self._training_kernel(kernels[1], texts)
        found = leading_directions(image_matrix, text_matrix, self.kappa, count, seed=self.random_state)
        if found is None:
            return False
        alpha, self.objective_, beta = found
        self.image_offset_, self.text_offset_ = image_means @ alpha, text_means @ beta
        self.image_coefficients_, self.text_coefficients_ = alpha.astype(np.float64), beta.astype(np.float64)
        self.image_landmarks_, self.text_landmarks_ = images, texts
        return True

    def _training_kernel(self, kernel: Kernel, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the kernel matrix, centred if asked for, and what was subtracted from its columns."""
        matrix = kernel_matrix(kernel, rows)
        if not self.center:
            return matrix, np.zeros(len(matrix))
        means: FloatArray = matrix.mean(axis=0)
        return matrix - means - (means - means.mean())[:, None], means

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


class ShrunkKernel:
    """R = ((1−κ)K + κI)⁻¹ of a kernel matrix K by a Cholesky factor, and S = KR; 0 < κ < 1."""

    def __init__(self, matrix: FloatArray, kappa: float) -> None:
        self.kappa = kappa
        self.factor = scipy.linalg.cho_factor((1 - kappa) * matrix + kappa * np.eye(len(matrix)), lower=True)

    def solve(self, columns: FloatArray) -> FloatArray:
        """Return R times ``columns``."""
        return np.asarray(scipy.linalg.cho_solve(self.factor, columns, check_finite=False))

    def smooth(self, columns: FloatArray) -> FloatArray:
        """Return S times ``columns``: KR = (I − κR)/(1−κ)."""
        return (columns - self.kappa * self.solve(columns)) / (1 - self.kappa)


def leading_directions(
    image_kernel: FloatArray, text_kernel: FloatArray, kappa: float, n_components: int, *, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return (α, objective, β): coefficients of the training rows, components in decreasing objective.

    Where the objective of `KCCA` is stationary,  ρα = R_a K_b β  and  ρβ = R_b K_a α.  The points b = K_b β then are
    eigenvectors of  S_b S_a  to ρ²; the operator is self-adjoint in the inner product xᵀS_a y, in which ARPACK's
    vectors are made orthonormal. None where ARPACK does not converge, or κ outweighs a kernel, so that S loses digits.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

    # The largest eigenvalue is at least this.
    if min(float(np.vdot(kernel, kernel)) / np.trace(kernel) for kernel in (image_kernel, text_kernel)) < kappa:
        return None
    images, texts = ShrunkKernel(image_kernel, kappa), ShrunkKernel(text_kernel, kappa)
    size = len(image_kernel)
    operator = LinearOperator((size, size), matvec=lambda row: texts.smooth(images.smooth(row)), dtype=np.float64)
    # Multiplying once takes out what centring does.
    start = operator.matvec(np.random.default_rng(seed).normal(size=size))
    try:
        points = eigs(operator, k=n_components, v0=start, ncv=2 * n_components + 20)[1].real
    except ArpackError:
        return None
    smoothed = images.smooth(points)
    squares, rotation = scipy.linalg.eigh(smoothed.T @ texts.smooth(smoothed), points.T @ smoothed)
    objective = np.sqrt(np.maximum(squares[::-1], 0))
    kept = objective > _MIN_OBJECTIVE * objective[0]
    rotation, objective = rotation[:, ::-1][:, kept], objective[kept]
    alpha, beta = fix_signs(images.solve(points) @ rotation, texts.solve(smoothed) @ rotation / objective)
    return alpha, objective, beta
