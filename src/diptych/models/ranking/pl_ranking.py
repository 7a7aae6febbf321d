from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.models.base import Need
from diptych.models.labels import RelatedRows
from diptych.models.parameters import Count, NonNegative, Positive
from diptych.models.ranking._linear_ranking import (
    LinearRankingModel,
    LinearSide,
    RankingStep,
    sampled_list,
    warp_step,
)


def neighbour_separation(
    queries: FloatArray, items: FloatArray, relevant: BoolArray, *, n_neighbors: int, margin: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return the mean of [τ + mean d²(right neighbours) − mean d²(wrong neighbours)]₊ and its slopes at both sides.

    Neighbours are the ``n_neighbors`` nearest items of either kind, or as many as there are; d is the Euclidean
    distance. A query without items of one kind costs nothing.
    """
    squares = (queries**2).sum(axis=1)[:, None] + (items**2).sum(axis=1) - 2 * queries @ items.T
    shares = _nearest(squares, relevant, n_neighbors) - _nearest(squares, ~relevant, n_neighbors)
    gaps = margin + (shares * squares).sum(axis=1)
    both = relevant.any(axis=1) & ~relevant.all(axis=1)
    active = both & (gaps > 0)
    # Each of the shares acts along 2(q − y); those of a query sum to zero, so that its own place drops out.
    pulls = np.where(active[:, None], shares, 0) * (2 / len(queries))
    item_slopes = pulls.sum(axis=0)[:, None] * items - pulls.T @ queries
    return float(gaps[active].sum()) / len(queries), np.asarray(-pulls @ items), np.asarray(item_slopes)


def _nearest(squares: FloatArray, counted: BoolArray, n_neighbors: int) -> FloatArray:
    """Return 1/k for the k nearest counted items of each row, 0 for the others."""
    first = min(n_neighbors, squares.shape[1])
    places = np.argpartition(np.where(counted, squares, np.inf), first - 1, axis=1)[:, :first]
    chosen = np.zeros_like(counted)
    np.put_along_axis(chosen, places, True, axis=1)
    # Where fewer are counted than asked for, others fill the places.
    chosen &= counted
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1), dtype=squares.dtype)


_SINGULAR = 1e-8


@dataclass(kw_only=True, eq=False, repr=False)
class PLRanking(LinearRankingModel):
    """PL-ranking-style learning: WARP's pairwise loss, a listwise term over neighbours, and a trace norm.

    With f(x, y) = (Ux)·(Vy), in both directions,

        min  WARP(f) + β · mean over queries of [τ + mean d²(right neighbours) − mean d²(wrong neighbours)]₊
             + λ ‖UᵀV‖_*,

    where neighbours are the nearest items of the other side that share a label or share none, and the trace norm is
    taken as its variational form ½(‖U‖² + ‖V‖²); after each epoch the maps are balanced, which changes no score and
    makes the two forms equal. This is our reading of the paper's abstract (a pairwise loss for the top of the list, a
    listwise term on neighbours, low rank): its formulas were not available to us, and its results are not these.

    Parameters
    ----------
    n_components, margin, max_draws, start, learning_rate, epochs, batch_size, metric, random_state
        As in :class:`WARP`.
    beta : float
        Weight of the listwise term, β above.
    n_neighbors : int
        Neighbours of either kind.
    neighbor_margin : float
        τ above.
    list_size : int
        Items among which the neighbours of a batch are looked for.
    regularization : float
        λ above.

    Attributes
    ----------
    losses_ : array
        Mean objective of each epoch.

    References
    ----------
    Zhang et al., "PL-ranking: a novel ranking method for cross-modal retrieval", ACM Multimedia 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import PLRanking
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> images, texts = rng.normal(size=(100, 6)) + 2 * labels[:, None], rng.normal(size=(100, 4)) - 2 * labels[:, None]
    >>> model = PLRanking(n_components=4).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels"})
    when_to_use: ClassVar[str] = "Labelled items, the top of the list matters and classes have a shape; unofficial."
    title: ClassVar[str] = "PL-ranking-style"
    command_name: ClassVar[str] = "pl-ranking"

    margin: Positive = 1.0
    max_draws: Count | None = None
    beta: NonNegative = 0.1
    n_neighbors: Count = 10
    neighbor_margin: NonNegative = 1.0
    list_size: Count = 400

    def _step(
        self, asking: LinearSide, searched: LinearSide, related: RelatedRows, queries: IntArray, rng: Generator
    ) -> RankingStep:
        pairwise = warp_step(asking, searched, related, queries, rng, margin=self.margin, max_draws=self.max_draws)
        if not self.beta:
            return pairwise
        gallery = sampled_list(queries, len(searched.rows), self.list_size, rng)
        loss, query_slopes, item_slopes = neighbour_separation(
            asking.points(queries),
            searched.points(gallery),
            related.matrix(queries, gallery),
            n_neighbors=self.n_neighbors,
            margin=self.neighbor_margin,
        )
        return pairwise + RankingStep(self.beta * loss, self.beta * query_slopes, gallery, self.beta * item_slopes)

    def _after_epoch(self, sides: list[LinearSide]) -> None:
        balance(sides[0].weights, sides[1].weights)


def balance(left: FloatArray, right: FloatArray) -> None:
    """Change two factors in place so that LᵀL = RᵀR while L Rᵀ stays: ½(‖L‖² + ‖R‖²) is then its trace norm.

    Of all such changes L ← LP, R ← RP⁻¹ this takes the one with symmetric positive P, which turns nothing. Factors that
    have lost a dimension are left as they are.
    """
    of_left, of_right = (factor.T.astype(np.float64) @ factor for factor in (left, right))
    values, vectors = np.linalg.eigh(of_left)
    if values[0] <= _SINGULAR * values[-1] or np.linalg.cond(of_right) > 1 / _SINGULAR:
        return
    root, inverse = (vectors * values**power @ vectors.T for power in (0.5, -0.5))
    # P² is the geometric mean of RᵀR and (LᵀL)⁻¹.
    inner_values, inner_vectors = np.linalg.eigh(root @ of_right @ root)
    square = inverse @ (inner_vectors * np.sqrt(inner_values) @ inner_vectors.T) @ inverse
    final_values, final_vectors = np.linalg.eigh(square)
    change, back = (final_vectors * final_values**power @ final_vectors.T for power in (0.5, -0.5))
    left[:] = left @ change
    right[:] = right @ back
