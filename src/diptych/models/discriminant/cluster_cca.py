from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.arrays import FloatArray
from diptych.models.base import FromTask, Grid, LinearProjectionModel, Need, check_components, check_number
from diptych.models.correlation.cca import canonical_directions
from diptych.models.labels import Targets, weighted_moment, weighted_sums
from diptych.models.linear import check_varies, relative_offset, relative_ridge


class ClusterCCA(LinearProjectionModel):
    """Cluster CCA: CCA over every pair of a picture and a text of the same class, not only over given pairs.

        C_ab = 1/P Σ_c (Σ_{i∈c} a_i)(Σ_{j∈c} b_j)ᵀ,    C_aa = 1/P Σ_c n_c Σ_{i∈c} a_i a_iᵀ,    P = Σ_c n_c²

    about the means of those pairs. Class sums give it all, in O(n d²) and without a list of pairs. The definition is
    recalled from the literature; the algebra is checked against explicit pairs.

    Parameters
    ----------
    n_components, regularization, metric
        As in `CCA`.

    References
    ----------
    Rasiwasia, Mahajan, Mahadevan and Aggarwal, "Cluster canonical correlation analysis", AISTATS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import ClusterCCA
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels] + 0.1 * rng.normal(size=(120, 3))
    >>> images, texts = meaning @ rng.normal(size=(3, 8)), meaning @ rng.normal(size=(3, 5))
    >>> bool(ClusterCCA().fit(images, texts, labels).score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels"})
    when_to_use: ClassVar[str] = "Labelled pictures and texts that are not paired, or whose pairing says little."
    title: ClassVar[str] = "cluster-CCA"
    grid: ClassVar[Grid] = {"n_components": FromTask.COMPONENTS, "regularization": [0.1, 1.0]}

    correlations_: FloatArray

    def __init__(self, *, n_components: int | None = None, regularization: float = 0.1, metric: str = "cosine") -> None:
        self.n_components = n_components
        self.regularization = regularization
        self.metric = metric

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        assert targets is not None, "the base class has checked that labels were given"
        check_number("regularization", self.regularization, low=0)
        check_components(self.n_components, 1)
        check_varies(images=images, texts=texts)
        belongs = targets.indicator
        sizes = belongs.sum(axis=0)
        # How many pairs a row is in: one with each member of each of its classes.
        in_pairs = belongs @ sizes
        weights = in_pairs / in_pairs.sum()
        self.image_mean_, self.text_mean_ = _weighted_mean(images, weights), _weighted_mean(texts, weights)
        image_sums = weighted_sums(images, self.image_mean_, belongs)
        text_sums = weighted_sums(texts, self.text_mean_, belongs)
        image = weighted_moment(images, self.image_mean_, weights)
        text = weighted_moment(texts, self.text_mean_, weights)
        self.image_projection_, self.correlations_, self.text_projection_ = canonical_directions(
            image,
            text,
            image_sums.T @ text_sums / float((sizes**2).sum()),
            relative_ridge(image, self.regularization),
            relative_ridge(text, self.regularization),
            n_components=self.n_components,
            precision=max(float(np.finfo(side.dtype).eps) for side in (images, texts)),
            offset=max(
                relative_offset(self.image_mean_, np.diag(image)), relative_offset(self.text_mean_, np.diag(text))
            ),
        )


def _weighted_mean(rows: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(weighted_sums(rows, np.zeros(rows.shape[1]), weights[:, None])[0])
