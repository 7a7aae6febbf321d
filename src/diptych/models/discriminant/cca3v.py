from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import FloatArray
from diptych.models.base import FromTask, Grid, LinearProjectionModel, Need, check_components, check_numbers
from diptych.models.linear import fix_signs, relative_ridge, singular_noise, whitener
from diptych.models.moments import MomentModel, Moments


class CCA3V(MomentModel, LinearProjectionModel):
    """CCA of three views: pictures, texts, and their labels as a third view that only training sees.

        min  Σ_{i<j} ‖X_i W_i − X_j W_j‖²   with every view whitened,   i.e.   C_all w = λ C_diag w

    C_all is the covariance of (a, b, y), C_diag its diagonal blocks, both with a ridge on the diagonal blocks. A
    component with λ = 1 says nothing about another view and is dropped; the others are weighted by λ to the power p.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the common space; None keeps every component with λ above 1.
    regularization : float
        Ridge of each view relative to the mean variance of its features. The authors' 1e-4 is absolute and belongs to
        normalised features.
    weight_power : float
        p above; 4 in the authors' function.
    metric : str
        Name of the `Space`.

    References
    ----------
    Gong, Ke, Isard and Lazebnik, "A multi-view embedding space for modeling internet images, tags, and their
    semantics", IJCV 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CCA3V
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels] + 0.1 * rng.normal(size=(120, 3))
    >>> images, texts = meaning @ rng.normal(size=(3, 8)), meaning @ rng.normal(size=(3, 5))
    >>> bool(CCA3V().fit(images, texts, labels).score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Pairs with labels or tags, one or several an item; CCA that also listens to them."
    title: ClassVar[str] = "CCA-3V"
    grid: ClassVar[Grid] = {"n_components": FromTask.COMPONENTS, "regularization": [0.1, 1.0]}
    command_name: ClassVar[str] = "cca-3v"

    eigenvalues_: FloatArray

    def __init__(
        self,
        *,
        n_components: int | None = None,
        regularization: float = 0.01,
        weight_power: float = 4.0,
        metric: str = "cosine",
    ) -> None:
        self.n_components = n_components
        self.regularization = regularization
        self.weight_power = weight_power
        self.metric = metric

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_numbers(self, "regularization", "weight_power", low=0)
        check_components(self.n_components, 1)

    def _fit_moments(self, sums: Moments) -> None:
        sums.check_varies()
        labels = sums.known_labels
        own = (sums.image, sums.text, labels.gram - np.outer(labels.totals, labels.totals) / sums.n_rows)
        # The sides are centred, so that their products with labels are those with centred labels.
        cross = ((0, 1, sums.cross), (0, 2, labels.image.T), (1, 2, labels.text.T))
        whiteners = [whitener(moment, relative_ridge(moment, self.regularization), sums.precision) for moment in own]
        values, vectors = self._eigenvectors(whiteners, cross, sums)
        left, right = fix_signs(*(whiteners[side] @ vectors[side] for side in (0, 1)))
        weights = values**self.weight_power
        self.eigenvalues_ = values
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_projection_, self.text_projection_ = left * weights, right * weights

    def _eigenvectors(
        self, whiteners: list[FloatArray], cross: tuple[tuple[int, int, FloatArray], ...], sums: Moments
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return eigenvalues clearly above 1, decreasing, and their eigenvectors' blocks in whitened coordinates."""
        edges = np.cumsum([0, *(whitened.shape[1] for whitened in whiteners)])
        joint = np.eye(edges[-1])
        for first, second, moment in cross:
            block = whiteners[first].T @ moment @ whiteners[second]
            joint[edges[first] : edges[first + 1], edges[second] : edges[second + 1]] = block
            joint[edges[second] : edges[second + 1], edges[first] : edges[first + 1]] = block.T
        most = min(check_components(self.n_components, edges[-1]), edges[-1])
        values, vectors = scipy.linalg.eigh(joint, subset_by_index=[edges[-1] - most, edges[-1] - 1])
        # 1 says that nothing is shared; whitening by a small ridge magnifies the rounding of float32 to 1e-5.
        noise = max(1e-4, singular_noise(len(joint), sums.precision, sums.offset))
        kept = max(1, int((values > 1 + noise).sum()))
        values, vectors = values[::-1][:kept], vectors[:, ::-1][:, :kept]
        return values, [vectors[edges[side] : edges[side + 1]] for side in (0, 1)]
