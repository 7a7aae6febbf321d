"""Generalised multiview analysis, with the scatters of LDA and of marginal Fisher analysis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import BoolArray, FloatArray, IntArray, row_blocks
from diptych.models.base import FromTask, Grid, Need, Variants
from diptych.models.discriminant._base import GeneralizedMultiviewModel, class_means
from diptych.models.labels import Targets
from diptych.models.moments import LabelView, MomentModel, Moments, moments
from diptych.models.parameters import Count, Ridge


@dataclass(kw_only=True, eq=False, repr=False)
class GMLDA(MomentModel, GeneralizedMultiviewModel):
    """Generalised multiview LDA: classes far apart, members close together, both sides in the same places.

        max  v_aᵀS_a v_a + v_bᵀS_b v_b + 2α v_aᵀC v_b   subject to  v_aᵀD_a v_a + γ v_bᵀD_b v_b = 1

    S is the scatter between classes, D the scatter within them, C the alignment of class means (or of pairs). All come
    from class sums: S = Σ n_c m_c m_cᵀ and D = XᵀX − S. A row with several labels counts for each by its share.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the common space; None is the number of classes less one.
    alpha : float
        Weight of the alignment relative to its size beside S; the authors advise about 5 times that ratio. (Their
        printed value, 10, is absolute and belongs to their features.)
    alignment : {"class_means", "pairs"}
        What shall coincide; class means is what the authors recommend.
    energy : float
        Share of each side's variance that its principal components keep first.
    regularization : float or "auto"
        Ridge on D relative to its mean diagonal; the authors' absolute 1e-6 means nothing on other scales. ``"auto"``
        is the closed form of OAS shrinkage: large where rows are few for their dimensions.
    metric : str
        Name of the `Space`.

    References
    ----------
    Sharma, Kumar, Daume and Jacobs, "Generalized multiview analysis: a discriminative latent space", CVPR 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import GMLDA
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels] + 0.1 * rng.normal(size=(120, 3))
    >>> images, texts = meaning @ rng.normal(size=(3, 8)), meaning @ rng.normal(size=(3, 5))
    >>> bool(GMLDA().fit(images, texts, labels).score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Labelled pairs when new classes may be asked for: a subspace, not a list of classes."
    label_view: ClassVar[LabelView] = "distribution"
    labelled_only: ClassVar[bool] = True
    # There are no more discriminant directions than classes.
    grid: ClassVar[Grid] = {"n_components": FromTask.CLASSES, "regularization": [0.1, 1.0], "alpha": [1.0, 25.0]}
    variants: ClassVar[Variants] = {"GMLDA": {"regularization": 0.001}}

    regularization: Ridge = "auto"

    def _fit_moments(self, sums: Moments) -> None:
        views = self._views(sums)
        between = [means.between() for means in class_means(sums, views)]
        within = [view.moment() - part for view, part in zip(views, between, strict=True)]
        self._place(sums, views, list(zip(between, within, strict=True)))


# Bytes of a block of distances.
_BLOCK_BYTES = 64 * 2**20


def nearest_of_class(rows: FloatArray, belongs: BoolArray, count: int) -> IntArray:
    """Return the edges (i, j), i < j, where j is among the ``count`` nearest rows of a class of i, or the reverse."""
    edges = [np.zeros((0, 2), dtype=np.int64)]
    for members in belongs.T:
        own = np.flatnonzero(members)
        wanted = min(count, len(own) - 1)
        if wanted < 1:
            continue
        inside = rows[own]
        for block, distances in _distance_blocks(inside, inside):
            places = np.arange(block.start, block.stop)
            distances[places - block.start, places] = np.inf
            near = np.argpartition(distances, wanted - 1, axis=1)[:, :wanted]
            edges.append(np.stack([np.repeat(own[places], wanted), own[near.ravel()]], axis=1))
    return _distinct(np.concatenate(edges))


def nearest_of_others(rows: FloatArray, belongs: BoolArray, count: int, *, per_class: bool = False) -> IntArray:
    """Return the ``count`` closest pairs (i, j), i < j, of rows without a common label, overall or for each class."""
    groups = [np.flatnonzero(members) for members in belongs.T] if per_class else [np.arange(len(rows))]
    labels = belongs.astype(np.float32)
    return _distinct(np.concatenate([_closest_pairs(rows, labels, own, count) for own in groups if len(own)]))


def laplacian_moment(rows: FloatArray, edges: IntArray) -> FloatArray:
    """Return Xᵀ(D − W)X = Σ over edges of (x_i − x_j)(x_i − x_j)ᵀ."""
    n_rows = len(rows)
    ones = np.ones(len(edges), dtype=rows.dtype)
    half = scipy.sparse.coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n_rows, n_rows)).tocsr()
    weights = half + half.T
    degrees = np.asarray(weights.sum(axis=1)).ravel()
    moment = (rows * degrees[:, None]).T @ rows - rows.T @ (weights @ rows)
    return np.asarray(moment + moment.T, dtype=np.float64) / 2


def _closest_pairs(rows: FloatArray, labels: FloatArray, own: IntArray, count: int) -> IntArray:
    """Return the closest pairs of a row of ``own`` and any other row, none of which shares a label with the other."""
    best, pairs = np.zeros(0), np.zeros((0, 2), dtype=np.int64)
    for block, distances in _distance_blocks(rows[own], rows):
        first = own[block]
        distances[labels[first] @ labels.T > 0] = np.inf
        # Each pair once where both of its rows are asked.
        asked_too = np.isin(np.arange(len(rows)), own, assume_unique=True)
        distances[asked_too[None, :] & (np.arange(len(rows))[None, :] <= first[:, None])] = np.inf
        near = distances < (best[-1] if len(best) >= count else np.inf)
        if np.count_nonzero(near) > count:
            limit = np.partition(distances[near], count - 1)[count - 1]
            near &= distances <= limit
        found, others = np.nonzero(near)
        best = np.concatenate([best, distances[found, others]])
        pairs = np.concatenate([pairs, np.stack([first[found], others], axis=1)])
        order = np.argsort(best, kind="stable")[:count]
        best, pairs = best[order], pairs[order]
    return pairs


def _distance_blocks(asked: FloatArray, kept: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield squared distances of some rows to all that are kept, block by block."""
    norms = np.einsum("ij,ij->i", kept, kept)
    for block in row_blocks(len(asked), max(1, _BLOCK_BYTES // (kept.itemsize * max(1, len(kept))))):
        part = asked[block]
        yield block, np.einsum("ij,ij->i", part, part)[:, None] + norms[None, :] - 2 * (part @ kept.T)


def _distinct(edges: IntArray) -> IntArray:
    return np.unique(np.sort(edges, axis=1), axis=0)


@dataclass(kw_only=True, eq=False, repr=False)
class GMMFA(GeneralizedMultiviewModel):
    """Generalised multiview marginal Fisher analysis: neighbours of one class together, near ones of others apart.

        max  v_aᵀS_a v_a + v_bᵀS_b v_b + 2α v_aᵀC v_b   subject to  v_aᵀD_a v_a + γ v_bᵀD_b v_b = 1

    D = Xᵀ(D_c − W_c)X, where W_c joins each row with its ``n_within`` nearest rows of its class, and
    S = Xᵀ(D_p − W_p)X, where W_p joins the ``n_between`` closest pairs of rows without a common label. Finding these
    takes n² distances, so that beyond ``most_rows`` the graphs are those of a random sample.

    Parameters
    ----------
    n_components, alpha, alignment, energy, regularization, metric :
        As in `GMLDA`, with a fixed ridge by default: neighbours are no independent rows.
    n_within, n_between : int
        Neighbours in a class, and closest pairs between classes. 50 and 200 are the published setting (400 ordered
        pairs there).
    between : {"overall", "per_class"}
        Whether ``n_between`` pairs are taken from all, as in the authors' package, or for each class.
    most_rows : int or None
        How many rows the graphs may have; None never samples.
    random_state : int
        Seed of the sample.

    References
    ----------
    Sharma, Kumar, Daume and Jacobs, "Generalized multiview analysis: a discriminative latent space", CVPR 2012. Yan et
    al., "Graph embedding and extensions: a general framework for dimensionality reduction", TPAMI 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import GMMFA
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> meaning = np.eye(3)[labels] + 0.1 * rng.normal(size=(120, 3))
    >>> images, texts = meaning @ rng.normal(size=(3, 8)), meaning @ rng.normal(size=(3, 5))
    >>> bool(GMMFA().fit(images, texts, labels).score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs", "labels"})
    when_to_use: ClassVar[str] = "Labelled pairs whose classes are not single clouds; slower than GMLDA."
    # There are no more discriminant directions than classes.
    grid: ClassVar[Grid] = {"n_components": FromTask.CLASSES, "regularization": [0.1], "alpha": [1.0, 25.0]}

    n_within: Count = 50
    n_between: Count = 200
    between: Literal["overall", "per_class"] = "overall"
    most_rows: Count | None = 10_000
    random_state: int = 0

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        images, texts, targets = targets.with_labels_only(images, texts)
        sums = moments(images, texts, targets, view="distribution")
        views = self._views(sums)
        chosen = self._sample(len(images))
        belongs = targets.indicator[chosen].astype(bool)
        sides = zip(views, (images, texts), strict=True)
        self._place(sums, views, [self._scatters(view.reduced(rows[chosen]), belongs) for view, rows in sides])

    def _scatters(self, rows: FloatArray, belongs: BoolArray) -> tuple[FloatArray, FloatArray]:
        apart = nearest_of_others(rows, belongs, self.n_between, per_class=self.between == "per_class")
        together = nearest_of_class(rows, belongs, self.n_within)
        return laplacian_moment(rows, apart), laplacian_moment(rows, together)

    def _sample(self, n_rows: int) -> slice | IntArray:
        """Return the rows of the graphs, the same on both sides."""
        if self.most_rows is None or n_rows <= self.most_rows:
            return slice(None)
        return np.sort(np.random.default_rng(self.random_state).permutation(n_rows)[: self.most_rows])
