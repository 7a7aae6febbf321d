from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray, row_blocks
from diptych.models.base import (
    FromTask,
    Grid,
    LinearProjectionModel,
    Need,
    check_choice,
    check_components,
    check_number,
)
from diptych.models.correlation.cca import canonical_directions
from diptych.models.labels import Targets, weighted_moment, weighted_sums
from diptych.models.linear import centre, check_varies, column_means, relative_offset, relative_ridge

_BLOCK_SETS = 1024


class MLCCA(LinearProjectionModel):
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

    correlations_: FloatArray

    def __init__(
        self,
        *,
        n_components: int | None = None,
        label_similarity: Literal["cosine", "exponential"] = "cosine",
        sigma: float = 1.0,
        regularization: float = 0.25,
        unit_texts: bool = False,
        metric: str = "cosine",
    ) -> None:
        self.n_components = n_components
        self.label_similarity = label_similarity
        self.sigma = sigma
        self.regularization = regularization
        self.unit_texts = unit_texts
        self.metric = metric

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        assert targets is not None, "the base class has checked that labels were given"
        check_choice("label_similarity", self.label_similarity, ("cosine", "exponential"))
        check_number("sigma", self.sigma, low=0, open_low=True)
        check_number("regularization", self.regularization, low=0)
        check_components(self.n_components, 1)
        check_varies(images=images, texts=texts)
        images, texts, targets = targets.with_labels_only(images, texts)
        self.image_mean_, self.text_mean_ = column_means(images), column_means(texts)
        cross, totals = self._similar(images, texts, targets.indicator)
        weights = totals / totals.sum()
        image = weighted_moment(images, self.image_mean_, weights)
        text = weighted_moment(texts, self.text_mean_, weights)
        left, self.correlations_, right = canonical_directions(
            image,
            text,
            cross / float(totals.sum()),
            relative_ridge(image, self.regularization),
            relative_ridge(text, self.regularization),
            n_components=self.n_components,
            precision=max(float(np.finfo(side.dtype).eps) for side in (images, texts)),
            offset=max(
                relative_offset(self.image_mean_, np.diag(image)), relative_offset(self.text_mean_, np.diag(text))
            ),
        )
        if self.unit_texts:
            right = right / np.linalg.norm(right, axis=0)
        self.image_projection_, self.text_projection_ = left, right

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
