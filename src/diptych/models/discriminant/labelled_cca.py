"""CCA that also listens to labels: as a third view, by pairs of one class, and by how alike labels are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.models.base import FromTask, Grid, LinearProjectionModel, Need
from diptych.models.correlation.cca import canonical_directions
from diptych.models.labels import Targets, weighted_moment, weighted_sums
from diptych.models.linear import (
    centre,
    check_varies,
    column_means,
    fix_signs,
    relative_offset,
    relative_ridge,
    singular_noise,
    whitener,
)
from diptych.models.moments import MomentModel, Moments
from diptych.models.parameters import Count, NonNegative, Positive, check_components


@dataclass(kw_only=True, eq=False, repr=False)
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

    n_components: Count | None = None
    regularization: NonNegative = 0.01
    weight_power: NonNegative = 4.0
    metric: str = "cosine"

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


class WeightedPairsModel(LinearProjectionModel):
    """Canonical directions of pairs that weigh differently."""

    n_components: int | None
    regularization: float

    def _correlate(self, images: FloatArray, texts: FloatArray, weights: FloatArray, cross: FloatArray) -> None:
        """Learn from what each row weighs in all its pairs, and the product of both sides over the pairs."""
        image = weighted_moment(images, self.image_mean_, weights)
        text = weighted_moment(texts, self.text_mean_, weights)
        self.image_projection_, self.correlations_, self.text_projection_ = canonical_directions(
            image,
            text,
            cross,
            relative_ridge(image, self.regularization),
            relative_ridge(text, self.regularization),
            n_components=self.n_components,
            precision=max(float(np.finfo(side.dtype).eps) for side in (images, texts)),
            offset=max(
                relative_offset(self.image_mean_, np.diag(image)), relative_offset(self.text_mean_, np.diag(text))
            ),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class ClusterCCA(WeightedPairsModel):
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

    n_components: Count | None = None
    regularization: NonNegative = 0.1
    metric: str = "cosine"

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        check_varies(images=images, texts=texts)
        belongs = targets.indicator
        sizes = belongs.sum(axis=0)
        # How many pairs a row is in: one with each member of each of its classes.
        in_pairs = belongs @ sizes
        weights = in_pairs / in_pairs.sum()
        self.image_mean_, self.text_mean_ = _weighted_mean(images, weights), _weighted_mean(texts, weights)
        image_sums = weighted_sums(images, self.image_mean_, belongs)
        text_sums = weighted_sums(texts, self.text_mean_, belongs)
        cross = image_sums.T @ text_sums / float((sizes**2).sum())
        self._correlate(images, texts, weights, cross)


def _weighted_mean(rows: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(weighted_sums(rows, np.zeros(rows.shape[1]), weights[:, None])[0])


_BLOCK_SETS = 1024


@dataclass(kw_only=True, eq=False, repr=False)
class MLCCA(WeightedPairsModel):
    """Multi-label CCA: correlates every picture with every text, as much as their labels are alike.

        C_ab = AᵀFB / N,    C_aa = Aᵀdiag(F1)A / N,    C_bb = Bᵀdiag(Fᵀ1)B / N,    F_ij = f(y_i, y_j)

    f is the cosine of the label vectors, or exp(−‖y_i − y_j‖ / σ). The n × n matrix F is never formed, yet this is
    exact: for the cosine AᵀFB = (AᵀZ)(ZᵀB) with unit label vectors Z, and otherwise F depends only on the distinct sets
    of labels: AᵀFB = (AᵀS) F_L (SᵀB), where S assigns rows to sets. Rows without labels are left out.

    Parameters
    ----------
    n_components, metric
        As in `CCA`.
    label_similarity : {"cosine", "exponential"}
        f above.
    sigma : float
        σ of the exponential; no published value is known.
    regularization : float
        Ridge relative to the mean diagonal; 0.25 in the authors' code.
    unit_texts : bool
        Scale the columns of the text projection, and only these, to unit length as the authors' code does.

    References
    ----------
    Ranjan, Rasiwasia and Jawahar, "Multi-label cross-modal retrieval", ICCV 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import MLCCA
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, size=(120, 3))
    >>> images = labels @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(120, 8))
    >>> texts = labels @ rng.normal(size=(3, 5)) + 0.3 * rng.normal(size=(120, 5))
    >>> MLCCA(n_components=3).fit(images, texts, labels).encode_images(images).shape
    (120, 3)
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels"})
    when_to_use: ClassVar[str] = "Items with several labels each; pictures and texts need not be paired one to one."
    title: ClassVar[str] = "ml-CCA"
    grid: ClassVar[Grid] = {"n_components": FromTask.COMPONENTS, "regularization": [0.1, 1.0]}
    command_name: ClassVar[str] = "ml-cca"

    n_components: Count | None = None
    label_similarity: Literal["cosine", "exponential"] = "cosine"
    sigma: Positive = 1.0
    regularization: NonNegative = 0.25
    unit_texts: bool = False
    metric: str = "cosine"

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        check_varies(images=images, texts=texts)
        images, texts, targets = targets.with_labels_only(images, texts)
        self.image_mean_, self.text_mean_ = column_means(images), column_means(texts)
        cross, totals = self._similar(images, texts, targets.indicator)
        weights = totals / totals.sum()
        self._correlate(images, texts, weights, cross / float(totals.sum()))
        if self.unit_texts:
            self.text_projection_ = self.text_projection_ / np.linalg.norm(self.text_projection_, axis=0)

    def _similar(self, images: FloatArray, texts: FloatArray, labels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return AᵀFB and the rows' sums of F."""
        if self.label_similarity == "cosine":
            unit = labels / np.sqrt(labels.sum(axis=1, keepdims=True))
            image_sums = weighted_sums(images, self.image_mean_, unit)
            text_sums = weighted_sums(texts, self.text_mean_, unit)
            return image_sums.T @ text_sums, unit @ unit.sum(axis=0)
        sets, own_set, counts = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
        own_set = own_set.ravel()
        image_sums = _set_sums(images, self.image_mean_, own_set, len(sets))
        text_sums = _set_sums(texts, self.text_mean_, own_set, len(sets))
        cross, totals = np.zeros((images.shape[1], texts.shape[1])), np.zeros(len(sets))
        sizes = sets.sum(axis=1)
        for block in row_blocks(len(sets), _BLOCK_SETS):
            distances = sizes[block, None] + sizes - 2 * sets[block] @ sets.T
            alike = np.exp(-np.sqrt(np.maximum(distances, 0)) / self.sigma)
            totals[block] = alike @ counts
            cross += image_sums[block].T @ (alike @ text_sums)
        return cross, totals[own_set]


def _set_sums(rows: FloatArray, mean: FloatArray, own_set: IntArray, n_sets: int) -> FloatArray:
    """Return the sums of the centred rows of each distinct set of labels."""
    sums = np.zeros((n_sets, rows.shape[1]))
    for block in row_blocks(len(rows), _BLOCK_SETS):
        part = own_set[block]
        member = scipy.sparse.csr_array((np.ones(len(part)), (part, np.arange(len(part)))), shape=(n_sets, len(part)))
        sums += member @ centre(rows[block], mean)
    return sums
