from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diptych.arrays import FloatArray, row_blocks
from diptych.models.base import CrossModalModel, Side
from diptych.models.correlation._kernels import (
    Kernel,
    KernelFeatures,
    cholesky_features,
    evaluate_kernel,
    exact_features,
    nystrom_features,
)
from diptych.models.correlation.cca import canonical_directions
from diptych.models.labels import Targets
from diptych.models.linear import check_varies, column_means
from diptych.models.moments import moments_of_blocks
from diptych.models.parameters import Count, Fraction

_EXACT_ROWS = 2500


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
