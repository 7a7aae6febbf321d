"""Spectral hashing of two sides: cross-view hashing and inter-media hashing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
import scipy

from diptych.arrays import BoolArray, FloatArray, row_blocks
from diptych.models.base import Grid, Side, Variants
from diptych.models.correlation.cca import AUTO_NOISE_GAIN, RidgedModel, canonical_directions
from diptych.models.hashing._solvers import WhitenedPair, mixed_directions, sample_pairs
from diptych.models.hashing.hashing_model import LinearHashingModel
from diptych.models.labels import Targets
from diptych.models.linear import centre, project
from diptych.models.moments import Moments, moments
from diptych.models.parameters import Count, Interval, NonNegative, Ridge


@dataclass(kw_only=True, eq=False, repr=False)
class CVH(RidgedModel, LinearHashingModel):
    """Cross-view hashing: the signs of the canonical variates.

        min over A, C of  ‖XA − YC‖²   with AᵀXᵀXA + CᵀYᵀYC = I

    This is the spectral objective of Kumar and Udupa when an item is similar to itself alone, the case everybody uses:
    canonical correlation analysis, solved here by one SVD of the whitened cross-covariance. Canonical variates come in
    falling correlation, so that late bits carry little, and there are no more of them than the narrower side has
    features; beyond that, bits are random hyperplanes of the common space, weighted by the correlations, which is ours.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    regularization : float or "auto"
        Ridge relative to the mean variance of a feature, or one for each side as `CCA` chooses it. Where there are more
        features than pairs it decides the result; the absolute 1e-4 of public code means something else on every scale
        of the features.
    random_state : int
        Of the mixtures, where ``n_bits`` exceeds the canonical directions.

    Attributes
    ----------
    correlations_ : array
        Canonical correlations of the directions there are, decreasing.

    References
    ----------
    Kumar and Udupa, "Learning hash functions for cross-view similarity search", IJCAI 2011. A widely copied program
    multiplies by the text covariance where it must be inverted; this one inverts.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import CVH
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(300, 6))
    >>> images, texts = meaning @ rng.normal(size=(6, 12)), meaning @ rng.normal(size=(6, 9))
    >>> model = CVH(n_bits=16, regularization=1e-6).fit(images, texts)
    >>> model.encode_images(images[:2]).shape
    (2, 2)
    >>> bool(model.score(images, texts) > 0.9)
    True
    """

    when_to_use: ClassVar[str] = "Codes from pairs without labels, in closed form: the baseline of cross-modal hashing."
    grid: ClassVar[Grid] = {"regularization": [0.1, 1.0, 10.0]}
    variants: ClassVar[Variants] = {"CVH": {"regularization": 1.0}}

    regularization: Ridge = "auto"

    def _fit_ridged(self, sums: Moments, image_ridge: float, text_ridge: float) -> None:
        left, self.correlations_, right = canonical_directions(
            sums.image,
            sums.text,
            sums.cross,
            image_ridge * sums.n_rows,
            text_ridge * sums.n_rows,
            n_components=self.n_bits,
            precision=sums.precision,
            offset=sums.offset,
            noise_gain=AUTO_NOISE_GAIN if self.regularization == "auto" else 1.0,
        )
        self.image_mean_, self.text_mean_ = sums.image_mean, sums.text_mean
        self.image_projection_, self.text_projection_ = mixed_directions(
            left, right, self.correlations_, self.n_bits, self.random_state
        )


# Up to so many pairs the matrix is small enough to be solved whole, which degenerate data cannot upset.
_WHOLE = 512
# Of a block of distances, which stays in cache while its nearest are chosen.
_BLOCK_BYTES = 2 * 2**20
# Directions kept between restarts for each that is wanted: a fifth fewer products than with the two of ARPACK.
_ROOM, _LEAST_ROOM = 4, 20
_TOLERANCE, _NOISE, _LEAST_WEIGHT = 1e-8, 1e-5, 1e-3


@dataclass(frozen=True)
class MediaAgreement:
    """The operator Σ_t Z_t Z_tᵀ − λ Σ_t Lap_t over columns of one number per pair.

    Z_t are centred rows of a side times a whitener of XᵀX + βI, so that Z_t Z_tᵀ is the shrunk regression on the side;
    ``graph`` is the sum of the sides' neighbour graphs, whose Laplacian is that of the sum.
    """

    sides: tuple[FloatArray, FloatArray]
    graph: scipy.sparse.csr_array
    smoothness: float

    def explained(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the regressions of ``columns`` on each side."""
        first, second = (
            np.asarray(side @ (side.T @ columns.astype(side.dtype, copy=False)), dtype=np.float64)
            for side in self.sides
        )
        return first, second

    def apply(self, columns: FloatArray) -> FloatArray:
        """Return the operator's value at ``columns``."""
        first, second = self.explained(columns)
        rough = (self._degrees * columns.T).T - self.graph @ columns
        return np.asarray(first + second - self.smoothness * rough)

    def top(self, count: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return the ``count`` largest values, falling, and their orthonormal columns, all orthogonal to a constant.

        A constant, which no side explains and no graph punishes, would be a bit that all items share.
        """
        n_pairs = self.graph.shape[0]
        count = min(count, n_pairs - 1)
        if n_pairs <= _WHOLE:
            matrix = self._without_constant(np.eye(n_pairs))
            values, vectors = scipy.linalg.eigh((matrix + matrix.T) / 2, subset_by_index=[n_pairs - count, n_pairs - 1])
        else:
            operator = scipy.sparse.linalg.LinearOperator(
                (n_pairs, n_pairs), matvec=self._without_constant, dtype=np.float64
            )
            start = np.random.default_rng(seed).normal(size=n_pairs)
            room = min(n_pairs, max(_LEAST_ROOM, _ROOM * count))
            values, vectors = scipy.sparse.linalg.eigsh(
                operator, count, which="LA", v0=start - start.mean(), ncv=room, tol=_TOLERANCE
            )
        order = np.argsort(values)[::-1]
        return values[order], vectors[:, order]

    @cached_property
    def _degrees(self) -> FloatArray:
        return np.asarray(self.graph.sum(axis=1)).ravel()

    def _without_constant(self, columns: FloatArray) -> FloatArray:
        return np.asarray(self.apply(columns) - self._below * columns.mean(axis=0))

    @cached_property
    def _below(self) -> float:
        """More than any other value is below zero: a Laplacian's are at most twice its largest degree."""
        return 1 + 2 * self.smoothness * float(self._degrees.max())


def neighbour_graph(rows: FloatArray, count: int) -> scipy.sparse.csr_array:
    """Return the symmetric (W + Wᵀ)/2 where W_ij is 1 for the ``count`` rows j nearest to row i, itself left out."""
    n_rows = len(rows)
    count = min(count, n_rows - 1)
    nearest = np.empty((n_rows, count), dtype=np.int64)
    squares = np.einsum("ij,ij->i", rows, rows)
    for block in row_blocks(n_rows, _BLOCK_BYTES // (rows.itemsize * n_rows)):
        # ‖x − y‖² less the part that is the same for all neighbours of one row.
        distances = squares - 2 * (rows[block] @ rows.T)
        places = np.arange(block.start, block.stop)
        distances[places - block.start, places] = np.inf
        nearest[block] = np.argpartition(distances, count - 1, axis=1)[:, :count]
    starts = np.repeat(np.arange(n_rows), count)
    half = scipy.sparse.coo_array(
        (np.full(starts.size, 0.5), (starts, nearest.ravel())), shape=(n_rows, n_rows)
    ).tocsr()
    return scipy.sparse.csr_array(half + half.T)


def balanced_thresholds(outputs: FloatArray) -> FloatArray:
    """Return, for each column, the middle of the gap between training values that lies nearest to its median.

    On which side of itself a row falls that is the plain median would be a matter of rounding. A column that never
    varies is cut below its value.
    """
    ordered = np.sort(outputs.astype(np.float64, copy=False), axis=0)
    if len(ordered) < 2:
        return np.asarray(ordered[0] - 1)
    gaps = np.diff(ordered, axis=0)
    wide = gaps > _NOISE * np.abs(ordered).max(axis=0)
    # Gap i leaves i + 1 rows below it.
    imbalance = np.abs(np.arange(1, len(ordered)) - len(ordered) / 2)[:, None]
    chosen = np.where(wide, imbalance, np.inf).argmin(axis=0)
    columns = np.arange(ordered.shape[1])
    middles = ordered[chosen, columns] + gaps[chosen, columns] / 2
    return np.asarray(np.where(wide.any(axis=0), middles, ordered[0] - 1))


@dataclass(kw_only=True, eq=False, repr=False)
class IMH(LinearHashingModel):
    """Inter-media hashing: codes that neighbours of either side share and that both sides can be regressed to.

        min over F, W  Σ_t ‖X_t W_t − F‖² + β‖W_t‖² + λ tr(Fᵀ Lap_t F)   with FᵀF = I

    Lap_t is the Laplacian of the graph of nearest neighbours of side t. Paired items share their row of F: the limit of
    the paper's penalty for different rows. F are the top eigenvectors of Σ_t X_t(X_tᵀX_t + βI)⁻¹X_tᵀ − λ Σ_t Lap_t,
    found by Lanczos iterations that only ever multiply, and the codes cut X_t W_t at its median over the training rows;
    an item alone therefore gets the code it has in a batch, which a median of the batch would not give it.

    No more eigenvectors than the narrower side has features can be regressed from both sides, and the sides need not
    agree on those. Where the training outputs f and g of the sides agree too little, a = ⟨f, g⟩ / max(‖f‖², ‖g‖²), the
    bit would be noise on one side; a random hyperplane of the other bits' space takes its place, which is ours.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    regularization : float
        β relative to the mean variance of a feature.
    smoothness : float
        λ; the graphs are not normalised, so that it acts on about ``n_neighbours`` differences per pair.
    n_neighbours : int
        Neighbours of an item in the graph of its side.
    least_agreement : float
        The agreement a, from −1 to 1, below which an eigenvector is replaced; −1 keeps all, as the paper does.
    max_pairs : int or None
        Learn from so many pairs drawn at random when there are more: the graphs cost the square of their number.
    random_state : int
        Of the drawn pairs, the start of the iterations and the replaced bits.

    Attributes
    ----------
    values_ : array
        Eigenvalues of the bits that are eigenvectors, falling: 2 is for codes that both sides predict exactly and all
        neighbours share.

    References
    ----------
    Song, Yang, Yang, Huang and Shen, "Inter-media hashing for large-scale retrieval from heterogeneous data sources",
    SIGMOD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import IMH
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(300, 6))
    >>> images, texts = meaning @ rng.normal(size=(6, 12)), meaning @ rng.normal(size=(6, 9))
    >>> model = IMH(n_bits=16, regularization=1e-6).fit(images, texts)
    >>> bool(model.score(images, texts) > 0.8)
    True
    """

    when_to_use: ClassVar[str] = "Codes from pairs without labels when near items of one side should stay near."
    grid: ClassVar[Grid] = {"regularization": [0.1, 1.0]}

    regularization: NonNegative = 0.1
    smoothness: NonNegative = 1.0
    n_neighbours: Count = 10
    least_agreement: Annotated[float, Interval(-1, 1)] = 0.1
    max_pairs: Count | None = 10_000

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        images, texts = sample_pairs(images, texts, self.max_pairs, self.random_state)
        white = WhitenedPair.of(moments(images, texts), self.regularization)
        sides = (images, white.sums.image_mean, white.image), (texts, white.sums.text_mean, white.text)
        self.image_mean_, self.text_mean_ = white.sums.image_mean, white.sums.text_mean
        image_graph, text_graph = (neighbour_graph(centre(rows, mean), self.n_neighbours) for rows, mean, _ in sides)
        image_side, text_side = (project(*side) for side in sides)
        agreement = MediaAgreement((image_side, text_side), image_graph + text_graph, self.smoothness)
        values, shared = agreement.top(self.n_bits, self.random_state)
        real, weights = _agreement_directions(agreement, shared, self.least_agreement)
        self.values_ = values[real]
        # Rows of F of unit mean square, so that outputs do not shrink with the number of pairs.
        shared = shared[:, real] * np.sqrt(len(images))
        self.image_projection_, self.text_projection_ = mixed_directions(
            white.image @ (image_side.T @ shared),
            white.text @ (text_side.T @ shared),
            weights[real],
            self.n_bits,
            self.random_state,
        )
        self.image_threshold_ = balanced_thresholds(super()._decide("image", images))
        self.text_threshold_ = balanced_thresholds(super()._decide("text", texts))

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        (threshold,) = self._of_side(side, "threshold")
        return np.asarray(super()._decide(side, rows) - threshold.astype(rows.dtype, copy=False))


def _agreement_directions(agreement: MediaAgreement, shared: FloatArray, least: float) -> tuple[BoolArray, FloatArray]:
    """Return which eigenvectors the sides explain in the same way, at least the best, and weights for mixing them."""
    first, second = agreement.explained(shared)
    longer = np.maximum((first**2).sum(axis=0), (second**2).sum(axis=0))
    ratios = (first * second).sum(axis=0) / np.maximum(longer, np.finfo(np.float64).tiny)
    real = ratios >= min(least, float(ratios.max()))
    # Eigenvectors that are kept must not count as rounding where they are mixed.
    return real, np.maximum(ratios, _LEAST_WEIGHT)
