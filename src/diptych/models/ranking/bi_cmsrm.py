from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.models.labels import RelatedRows
from diptych.models.parameters import Count, NonNegative
from diptych.models.ranking._linear_ranking import LinearRankingModel, LinearSide, RankingStep, sampled_list


def most_violated_rankings(scores: FloatArray, relevant: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return, for each row of scores, max over rankings y of Δ(y) + F(y) and the ranking where it is reached.

    F is that of `BiCMSRM`, Δ(y) = 1 − AP(y). Among relevant and among irrelevant items the best order is that of the
    scores, which leaves b₁ ≤ … ≤ b_r, where b_a of the m irrelevant items stand before the a-th of the r relevant
    ones. The sum is then one term for each a,

        [(m − 2b)s_a − T + 2C_b]/(rm) − (1/r)·a/(a + b),

    with C_b the sum of the b largest irrelevant scores and T = C_m, and dynamic programming with a running maximum over
    b finds the best b₁ ≤ … ≤ b_r in O(r·m).

    The second array gives b for each relevant item, in the place of the item; 0 elsewhere. Rows without a relevant or
    without an irrelevant item have nothing to order: value 0, all b zero.
    """
    n_relevant = relevant.sum(axis=1)
    n_wrong = relevant.shape[1] - n_relevant
    best, order = _by_score(scores, relevant)
    before, values = _best_places(best, _sums_of_wrong(scores, relevant, n_wrong), n_relevant, n_wrong)
    placed = np.zeros(relevant.shape, dtype=np.intp)
    rows, places = np.nonzero(np.arange(before.shape[1]) < n_relevant[:, None])
    placed[rows, order[rows, places]] = before[rows, places]
    orderable = (n_relevant > 0) & (n_wrong > 0)
    return np.where(orderable, values + 1, 0), np.where(orderable[:, None], placed, 0)


def average_precision_loss(scores: FloatArray, relevant: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return ξ = max over y of [Δ(y) + F(y)] − F(y*) for each row, y* being perfect, and its slopes at the scores.

    ξ is at least 1 − AP of the ranking by score, never negative, and zero only where the right order leads by enough.
    """
    values, before = most_violated_rankings(scores, relevant)
    n_relevant = relevant.sum(axis=1, keepdims=True)
    n_wrong = relevant.shape[1] - n_relevant
    pairs = np.maximum(n_relevant * n_wrong, 1)
    signs = np.where(relevant, n_wrong, -n_relevant) / pairs
    perfect = np.where((n_relevant * n_wrong > 0)[:, 0], (signs * scores).sum(axis=1), 0)
    slopes = np.where(relevant, -before, _relevant_after(scores, relevant, before)) * (2 / pairs)
    losses = np.maximum(values - perfect, 0)
    return losses, np.where(losses[:, None] > 0, slopes, 0)


def _by_score(scores: FloatArray, relevant: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return the scores of the relevant items of each row in falling order, zeros behind, and where they stand."""
    order = np.argsort(np.where(relevant, -scores.astype(np.float64), np.inf), axis=1, kind="stable")
    best = np.take_along_axis(np.where(relevant, scores, 0).astype(np.float64), order, axis=1)
    return best, order


def _sums_of_wrong(scores: FloatArray, relevant: BoolArray, n_wrong: IntArray) -> FloatArray:
    """Return C_0, C_1, … of each row; behind its last irrelevant item the sum stays."""
    falling, _ = _by_score(scores, ~relevant)
    sums = falling[:, : int(n_wrong.max(initial=0))].cumsum(axis=1)
    return np.concatenate([np.zeros((len(scores), 1)), sums], axis=1)


def _best_places(
    best: FloatArray, sums: FloatArray, n_relevant: IntArray, n_wrong: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return b₁ ≤ … ≤ b_r of each row, and the value of the sum there.

    Rows of scores are columns here, because a running maximum is fast along the first axis.
    """
    counts = np.arange(sums.shape[1])[:, None]
    pairs, shares = np.maximum(n_relevant * n_wrong, 1), 1 / np.maximum(n_relevant, 1)
    # Where a row has fewer wrong items than others of the batch, more of them cannot stand before anything.
    of_wrong = np.where(counts > n_wrong, -np.inf, (2 * sums - sums[:, -1:]).T / pairs)
    of_own = (n_wrong - 2 * counts) / pairs
    values = np.zeros((int(n_relevant.max(initial=0)) + 1, *of_wrong.shape))
    for place in range(1, len(values)):
        np.maximum.accumulate(values[place - 1], axis=0, out=values[place])
        gains = of_own * best[:, place - 1] + of_wrong - shares * (place / (place + counts))
        # Rows with fewer relevant items than others of the batch are done and keep what they have.
        np.add(values[place], gains, out=values[place], where=place <= n_relevant)
    return _traced_back(values, n_relevant, counts)


def _traced_back(values: FloatArray, n_relevant: IntArray, counts: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the places that lead to the largest last value of each column, and that value."""
    columns = np.arange(values.shape[2])
    ends = values[n_relevant, :, columns].T
    current = ends.argmax(axis=0)
    largest = ends[current, columns]
    before = np.zeros((len(columns), len(values) - 1), dtype=np.intp)
    for place in reversed(range(1, len(values))):
        before[:, place - 1] = current
        earlier = np.where(counts <= current, values[place - 1], -np.inf).argmax(axis=0)
        current = np.where(place <= n_relevant, earlier, current)
    return before, largest


def _relevant_after(scores: FloatArray, relevant: BoolArray, before: IntArray) -> IntArray:
    """Return, for each irrelevant item, how many relevant ones stand after it: those with b beyond its place."""
    _, order = _by_score(scores, ~relevant)
    n_rows, width = relevant.shape
    rows = np.arange(n_rows)[:, None]
    places = (rows * (width + 1) + before)[relevant]
    histogram = np.bincount(places, minlength=n_rows * (width + 1)).reshape(n_rows, width + 1)
    beyond = histogram[:, :0:-1].cumsum(axis=1)[:, ::-1]
    after = np.zeros(relevant.shape, dtype=np.intp)
    after[rows, order] = beyond
    return after


@dataclass(kw_only=True, eq=False, repr=False)
class BiCMSRM(LinearRankingModel):
    """Bi-directional cross-media semantic representation model: a structural SVM for average precision, both ways.

    With f(x, y) = (Ux)·(Vy), a query's r relevant and m irrelevant items, rankings y with y_ij = ±1 as relevant i
    stands before or behind irrelevant j, and y* the perfect ones,

        min  (λ/2)(‖U‖² + ‖V‖²) + (1/n) Σ over queries of both sides of max over y of [ 1 − AP(y) + F(y) − F(y*) ],

        F(y) = (1/rm) Σᵢⱼ y_ij (fᵢ − fⱼ).

    The most violated ranking is found exactly by dynamic programming, the maps follow the subgradient. The loss bounds
    1 − AP from above, so that what is trained is what MAP measures. Beyond the abstract of the original, which was not
    available to us, objective and training are those of structural SVMs for average precision (Yue et al., 2007).
    Relevant items share a label with the query; without labels they are the texts of the same picture.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space.
    list_size : int
        Items that a query ranks in each step: the batch's own and others drawn at random.
    regularization : float
        λ above. With a single relevant item among m, pairs without classes, the loss asks for differences of scores of
        about m/4, which the default keeps from growing; take 1e-4 there.
    start, learning_rate, epochs, batch_size, metric, random_state
        As in :class:`WARP`.

    Attributes
    ----------
    losses_ : array
        Mean objective of each epoch.

    References
    ----------
    Wu et al., "Cross-media semantic representation via bi-directional learning to rank", ACM Multimedia 2013. Yue et
    al., "A support vector method for optimizing average precision", SIGIR 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import BiCMSRM
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> images, texts = rng.normal(size=(100, 6)) + 2 * labels[:, None], rng.normal(size=(100, 4)) - 2 * labels[:, None]
    >>> model = BiCMSRM(n_components=4).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    when_to_use: ClassVar[str] = "Labelled items and MAP is what counts: trains for average precision, in a minute."
    title: ClassVar[str] = "Bi-CMSRM"

    list_size: Count = 200
    regularization: NonNegative = 1e-2
    epochs: Count = 10

    def _step(
        self, asking: LinearSide, searched: LinearSide, related: RelatedRows, queries: IntArray, rng: Generator
    ) -> RankingStep:
        gallery = sampled_list(queries, len(searched.rows), self.list_size, rng)
        points, found = asking.points(queries), searched.points(gallery)
        losses, slopes = average_precision_loss(points @ found.T, related.matrix(queries, gallery))
        shares = (slopes / len(queries)).astype(points.dtype)
        return RankingStep(float(losses.mean()), shares @ found, gallery, shares.T @ points)
