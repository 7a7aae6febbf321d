"""Two linear maps learned by ranking, batch by batch, and the search for wrong answers that rank too high."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from diptych.arrays import BoolArray, FloatArray, IntArray, row_blocks
from diptych.models.base import Grid, LinearProjectionModel
from diptych.models.correlation import CCA
from diptych.models.labels import RelatedRows, Targets, picture_numbers
from diptych.models.linear import check_varies, column_deviations, column_means
from diptych.models.optimisers import Adam
from diptych.models.parameters import Count, NonNegative, Positive


@dataclass(frozen=True, eq=False)
class LinearSide:
    """Features, centred and scaled, what they were centred and scaled by, and the weights that map them to points.

    ``scale`` is the deviation of a column times √(number of columns), so that rows have a length of about 1.
    """

    rows: FloatArray
    mean: FloatArray
    scale: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, *, name: str) -> LinearSide:
        check_varies(**{name: rows})
        mean = column_means(rows)
        width = rows.shape[1]
        scale = column_deviations(rows, mean) * np.sqrt(width)
        # Once for all steps: a step looks at the same rows again and again.
        scaled = np.empty(rows.shape, dtype=np.float32)
        for block in row_blocks(len(rows)):
            scaled[block] = (rows[block] - mean) / scale
        return cls(scaled, mean, scale, np.zeros((width, 0), dtype=np.float32))

    @property
    def projection(self) -> FloatArray:
        """What maps centred rows to points."""
        return np.asarray(self.weights / self.scale[:, None], dtype=np.float64)

    def points(self, chosen: IntArray) -> FloatArray:
        return np.asarray(self.rows[chosen] @ self.weights)


@dataclass(frozen=True, eq=False)
class RankingStep:
    """The mean loss of a batch of queries, its slopes at their points, and at the points of the rows they ranked."""

    loss: float
    query_slopes: FloatArray
    gallery: IntArray  # May name a row several times; its slopes add up.
    gallery_slopes: FloatArray

    def __add__(self, other: RankingStep) -> RankingStep:
        return RankingStep(
            self.loss + other.loss,
            np.asarray(self.query_slopes + other.query_slopes),
            np.concatenate([self.gallery, other.gallery]),
            np.concatenate([self.gallery_slopes, other.gallery_slopes]),
        )


Start = Literal["cca", "random"]


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRankingModel(LinearProjectionModel):
    """Trains both projections by Adam on batches of rows that ask in both directions; a subclass writes ``_step``."""

    grid: ClassVar[Grid] = {"start": ["random", "cca"], "regularization": [1e-4, 1e-3, 1e-2, 5e-2]}
    n_components: Count = 32
    regularization: NonNegative = 0.05
    start: Start = "random"
    learning_rate: Positive = 0.03
    epochs: Count = 20
    batch_size: Count = 64
    metric: str = "dot"
    random_state: int = 0

    def _targets(self, labels: ArrayLike | None, n_rows: int) -> Targets | None:
        # Labels are welcome where not needed: without them, what shows the same picture belongs together.
        return super()._targets(labels, n_rows) if labels is None else Targets.from_labels(labels, n_rows)

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        if targets is None:
            related = RelatedRows.of_numbers(picture_numbers(images))
        else:
            related = RelatedRows.of_marks(targets.indicator)
        rng = np.random.default_rng(self.random_state)
        image_side, text_side = sides = self._started(images, texts, rng)
        self.losses_ = self._train(sides, related, rng)
        self.image_mean_, self.text_mean_ = image_side.mean, text_side.mean
        self.image_projection_, self.text_projection_ = image_side.projection, text_side.projection

    def _started(self, images: FloatArray, texts: FloatArray, rng: np.random.Generator) -> list[LinearSide]:
        sides = [LinearSide.of(images, name="images"), LinearSide.of(texts, name="texts")]
        if self.start == "cca":
            first = CCA(n_components=self.n_components).fit(images, texts)
            projections = first.image_projection_, first.text_projection_
            # Canonical components have unit variance each: points of about unit length suit the margins.
            weights = [
                projection * side.scale[:, None] / np.sqrt(projection.shape[1])
                for projection, side in zip(projections, sides, strict=True)
            ]
        else:
            deviation = 1 / np.sqrt(self.n_components)
            weights = [rng.normal(scale=deviation, size=(len(side.mean), self.n_components)) for side in sides]
        return [replace(side, weights=of_side.astype(np.float32)) for side, of_side in zip(sides, weights, strict=True)]

    def _train(self, sides: list[LinearSide], related: RelatedRows, rng: np.random.Generator) -> FloatArray:
        """Change the weights in place and return the mean loss of each epoch."""
        known = related.known
        n_batches = -(-len(known) // self.batch_size)
        adam = Adam([side.weights for side in sides], self.learning_rate, self.epochs * n_batches)
        losses = np.zeros(self.epochs)
        for epoch in range(self.epochs):
            for queries in np.array_split(rng.permutation(known), n_batches):
                loss, gradients = self._loss_and_gradients(sides, related, queries, rng)
                adam.step(gradients)
                self._constrain(sides)
                losses[epoch] += loss * len(queries) / len(known)
            self._after_epoch(sides)
        return losses

    def _loss_and_gradients(
        self, sides: list[LinearSide], related: RelatedRows, queries: IntArray, rng: np.random.Generator
    ) -> tuple[float, list[FloatArray]]:
        gradients = [np.asarray(self.regularization * side.weights) for side in sides]
        loss = self.regularization / 2 * sum(float((side.weights**2).sum()) for side in sides)
        for asking, searched in ((0, 1), (1, 0)):
            step = self._step(sides[asking], sides[searched], related, queries, rng)
            gradients[asking] += sides[asking].rows[queries].T @ step.query_slopes
            gradients[searched] += sides[searched].rows[step.gallery].T @ step.gallery_slopes
            loss += step.loss
        return loss, gradients

    def _step(
        self, asking: LinearSide, searched: LinearSide, related: RelatedRows, queries: IntArray, rng: Generator
    ) -> RankingStep:
        raise NotImplementedError

    def _constrain(self, sides: list[LinearSide]) -> None:
        """Bring the weights back to where they may be."""

    def _after_epoch(self, sides: list[LinearSide]) -> None:
        """Do what is due once in each pass."""


def sampled_list(queries: IntArray, n_rows: int, size: int, rng: np.random.Generator) -> IntArray:
    """Return about ``size`` rows for a batch to rank: its own, so that each has a right answer, and others drawn."""
    others = rng.permutation(n_rows)[:size]
    others = others[~np.isin(others, queries)]
    return np.concatenate([queries, others[: max(0, size - len(queries))]])


_FIRST_COLUMNS, _MOST_COLUMNS = 256, 4096


@dataclass(frozen=True, eq=False)
class Violators:
    """For each query of a batch: the first wrong answer found within the margin, and the draws this took."""

    rows: IntArray  # Meaningless where none was found.
    draws: IntArray  # Of wrong answers only, the last being the violator.
    found: BoolArray

    def ranks(self, n_wrong: IntArray) -> IntArray:
        """Return ⌊wrong answers / draws⌋, an estimate of how many are within the margin; 0 where none was found."""
        return np.where(self.found, n_wrong // np.maximum(self.draws, 1), 0)


def rank_losses(n_ranks: int) -> FloatArray:
    """Return L(k) = 1 + 1/2 + … + 1/k for k = 0 … ``n_ranks``: mistakes at the top cost most."""
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n_ranks + 1))])


def first_violators(
    points: FloatArray,
    thresholds: FloatArray,
    searched: LinearSide,
    related: RelatedRows,
    queries: IntArray,
    order: IntArray,
    max_draws: int | None = None,
) -> Violators:
    """Walk the rows in ``order``, the same for all queries, until each has met a wrong answer above its threshold.

    A random order is drawing without replacement. Right answers are passed over and cost nothing. A query gives up
    after ``max_draws`` wrong answers, or when there are no more.
    """
    rows, draws = np.zeros(len(queries), dtype=np.intp), np.zeros(len(queries), dtype=np.intp)
    found = np.zeros(len(queries), dtype=bool)
    open_queries = np.arange(len(queries))
    start, width = 0, _FIRST_COLUMNS
    while len(open_queries) and start < len(order):
        candidates = order[start : start + width]
        wrong = ~related.matrix(queries[open_queries], candidates)
        scores = points[open_queries] @ searched.points(candidates).T
        violates = wrong & (scores > thresholds[open_queries, None])
        if max_draws is not None:
            violates &= draws[open_queries, None] + wrong.cumsum(axis=1) <= max_draws
        first, here = violates.argmax(axis=1), violates.any(axis=1)
        last = np.where(here, first, len(candidates) - 1)
        rows[open_queries] = candidates[first]
        draws[open_queries] += (wrong & (np.arange(len(candidates)) <= last[:, None])).sum(axis=1)
        found[open_queries] = here
        goes_on = ~here if max_draws is None else ~here & (draws[open_queries] <= max_draws)
        open_queries = open_queries[goes_on]
        # Most find a violator at once; the few that have to see all rows see many at a time.
        start, width = start + width, min(2 * width, _MOST_COLUMNS)
    return Violators(rows, draws, found)


def warp_step(
    asking: LinearSide,
    searched: LinearSide,
    related: RelatedRows,
    queries: IntArray,
    rng: np.random.Generator,
    *,
    margin: float,
    max_draws: int | None,
) -> RankingStep:
    """Return the mean of L(rank)·[margin − f(x, y⁺) + f(x, y⁻)]₊ over the queries and its slopes.

    y⁺ is a right answer drawn at random and y⁻ the first violator; L(rank) counts as a constant. A query without a
    violator costs nothing and moves nothing.
    """
    points, answers = asking.points(queries), related.partners(queries, rng)
    wanted = searched.points(answers)
    reached = np.einsum("ij,ij->i", points, wanted)
    order = rng.permutation(len(searched.rows))
    violators = first_violators(points, reached - margin, searched, related, queries, order, max_draws)
    n_wrong = related.n_unrelated[queries]
    weights = rank_losses(int(n_wrong.max(initial=0)))[violators.ranks(n_wrong)] / len(queries)
    wrong = searched.points(violators.rows)
    gaps = margin - reached + np.einsum("ij,ij->i", points, wrong)
    slopes = (weights[:, None] * points).astype(points.dtype)
    return RankingStep(
        float(np.where(violators.found, weights * gaps, 0).sum()),
        np.asarray(weights[:, None] * (wrong - wanted), dtype=points.dtype),
        np.concatenate([answers, violators.rows]),
        np.concatenate([-slopes, slopes]),
    )
