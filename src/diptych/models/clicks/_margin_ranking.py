"""What the models share that learn a common space from clicks: triplets, and a linear map that ranks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Protocol, Self

import numpy as np
import scipy

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.data.clicks import ClickLog
from diptych.errors import InvalidInputError
from diptych.models.clicks.click_model import ClickModel, WordSets, query_table
from diptych.models.labels import draw_until_right
from diptych.models.linear import check_varies, column_deviations, column_means, project
from diptych.models.optimisers import Adagrad
from diptych.models.parameters import Count, Interval, NonNegative, Positive, PositiveFraction


class QuerySide(Protocol):
    """Points of queries by row, which may move."""

    @property
    def weights(self) -> FloatArray | None:
        """What is learned, None where nothing is."""

    def points(self, rows: IntArray) -> FloatArray: ...

    def move(self, rows: IntArray, gradient: FloatArray, *, rate: float) -> None:
        """Take a step, given the gradient of the loss by the points of these queries."""


Triplets = tuple[IntArray, IntArray, IntArray]


class MarginRanking:
    """Minimises the mean of max(0, m − ⟨Wᵀx⁺, t⟩ + ⟨Wᵀx⁻, t⟩) over triplets of a query t and two pictures.

    The loss depends on x⁺ − x⁻ alone, so that one product gives both scores. Features are divided by ``scale``.
    """

    def __init__(
        self, images: FloatArray, scale: FloatArray, queries: QuerySide, weights: FloatArray, *, margin: float
    ) -> None:
        self._images = images
        self._scale = scale.astype(weights.dtype)
        self._queries = queries
        self._adagrad = Adagrad(weights)
        self._margin = margin

    @property
    def weights(self) -> FloatArray:
        """W, which maps scaled features to points."""
        return self._adagrad.array

    def train(self, batches: Iterable[Triplets], *, rate: float) -> float:
        """Take one step per batch and return the mean loss before the steps."""
        total, count = 0.0, 0
        for queries, positives, negatives in batches:
            points, gaps = self._queries.points(queries), self._gaps(positives, negatives)
            moved = gaps @ self.weights
            losses = self._losses(points, moved)
            total, count = total + float(losses.sum(dtype=np.float64)), count + len(losses)
            wrong = losses > 0
            if wrong.any():
                share = 1 / len(losses)
                self._adagrad.step(-share * (gaps[wrong].T @ points[wrong]), rate=rate)
                self._queries.move(queries[wrong], -share * moved[wrong], rate=rate)
        return total / max(1, count)

    def loss(self, triplets: Triplets) -> float:
        queries, positives, negatives = triplets
        total = 0.0
        for rows in row_blocks(len(queries)):
            moved = self._gaps(positives[rows], negatives[rows]) @ self.weights
            total += float(self._losses(self._queries.points(queries[rows]), moved).sum(dtype=np.float64))
        return total / max(1, len(queries))

    def _gaps(self, positives: IntArray, negatives: IntArray) -> FloatArray:
        return np.asarray((self._images[positives] - self._images[negatives]) / self._scale, dtype=self.weights.dtype)

    def _losses(self, points: FloatArray, moved: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(0, self._margin - np.einsum("ij,ij->i", points, moved)))


# A small log is gone over until there are so many triplets, for their other pictures are always new ones.
_FEWEST_TRIPLETS = 2_000


@dataclass(frozen=True, eq=False)
class ClickTriplets:
    """Draws triplets (q, x⁺, x⁻) from clicks: x⁺ was clicked for q, x⁻ is a random picture that never was."""

    queries: IntArray
    positives: IntArray
    clicked: IntArray  # Sorted query·n_images + picture of all clicks, also of those too few to make a pair.
    n_images: int

    @classmethod
    def of(cls, table: scipy.sparse.csr_array, *, min_clicks: float = 0.0, max_images: int | None = None) -> Self:
        """Take the pairs of a (queries, pictures) matrix with enough clicks, the most clicked of each query."""
        queries = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        images, clicks = table.indices.astype(np.int64), table.data
        clicked = np.sort(queries * table.shape[1] + images)
        order = np.lexsort((images, -clicks, queries))
        if max_images is not None:
            order = order[np.arange(len(order)) - table.indptr[queries] < max_images]
        order = order[clicks[order] >= min_clicks]
        return cls(queries[order], images[order], clicked, table.shape[1])

    def __len__(self) -> int:
        return len(self.queries)

    def of_queries(self, chosen: BoolArray) -> Self:
        """Return the pairs of the queries for which ``chosen`` is true."""
        kept = chosen[self.queries]
        return type(self)(self.queries[kept], self.positives[kept], self.clicked, self.n_images)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Yield the triplets of all pairs in random order, ``size`` at a time; few pairs come several times."""
        passes = -(-_FEWEST_TRIPLETS // len(self))
        order = np.concatenate([rng.permutation(len(self)) for _ in range(max(1, passes))])
        for rows in row_blocks(len(order), size):
            yield self.draw(order[rows], rng)

    def draw(self, pairs: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
        """Return (queries, clicked pictures, other pictures) of ``pairs``, without pairs for which none was found."""
        queries = self.queries[pairs]
        negatives, wrong = draw_until_right(
            len(pairs), self.n_images, lambda drawn: self._is_clicked(queries, drawn), rng
        )
        return queries[~wrong], self.positives[pairs][~wrong], negatives[~wrong]

    def _is_clicked(self, queries: IntArray, images: IntArray) -> BoolArray:
        wanted = queries * self.n_images + images
        places = np.minimum(np.searchsorted(self.clicked, wanted), len(self.clicked) - 1)
        return np.asarray(self.clicked[places] == wanted)


# With fewer queries none is held out; more triplets than this tell no more about them.
_FEWEST_QUERIES = 20
_HELD_OUT_TRIPLETS = 20_000


@dataclass(kw_only=True, eq=False, repr=False)
class MarginRankingModel(ClickModel):
    """Ranks pictures by ⟨Wᵀx, t(q)⟩; a subclass says what t(q) is in ``_query_side`` and ``_encode_queries``."""

    max_words: Count = 50000
    margin: Positive = 1.0
    min_clicks: NonNegative = 0.0
    max_images: Count = 20
    epochs: Count = 20
    batch_size: Count = 100
    learning_rate: Positive = 0.05
    decay: PositiveFraction = 0.9
    held_out: Annotated[float, Interval(0, 0.5)] = 0.1
    patience: Count = 4
    random_state: int = 0
    projection_: FloatArray = field(init=False)

    def _fit_clicks(self, log: ClickLog, images: FloatArray) -> None:
        check_varies(images=images)
        rng = np.random.default_rng(self.random_state)
        sets, table = query_table(log)
        side, known = self._query_side(log, sets, rng)
        triplets = ClickTriplets.of(table, min_clicks=self.min_clicks, max_images=self.max_images).of_queries(known)
        if len(triplets) == 0:
            raise InvalidInputError(
                f"no query of the log has words with a vector and a picture of {self.min_clicks:g} clicks or more; "
                "lower min_clicks or pass a larger log"
            )
        self.mean_ = column_means(images)
        scale = column_deviations(images, self.mean_) * np.sqrt(images.shape[1])
        width = side.points(np.zeros(1, dtype=np.int64)).shape[1]
        # From zero only where the queries' points are given: two zeros would stay where they are.
        spread = 0.0 if side.weights is None else 1 / np.sqrt(width)
        start = rng.normal(scale=spread, size=(images.shape[1], width)).astype(np.float32)
        ranking = MarginRanking(images, scale, side, start, margin=self.margin)
        self._train(ranking, side, triplets, rng)
        self.projection_ = self.projection_ / scale[:, None]

    def _train(
        self, ranking: MarginRanking, side: QuerySide, triplets: ClickTriplets, rng: np.random.Generator
    ) -> None:
        """Go over the triplets and keep what did best on queries that were held out."""
        triplets, asked = self._split(triplets, rng)
        losses: list[float] = []
        held_out: list[float] = []
        best, tired = np.inf, 0
        for epoch in range(self.epochs):
            rate = self.learning_rate * self.decay**epoch
            losses.append(ranking.train(triplets.batches(self.batch_size, rng), rate=rate))
            held_out.append(ranking.loss(asked) if asked is not None else losses[-1])
            if held_out[-1] < best or asked is None:
                best = held_out[-1]
                self.projection_ = ranking.weights.astype(np.float64)
                if side.weights is not None:
                    self.text_weights_ = side.weights.copy()
            else:
                tired += 1
            if tired >= self.patience:
                break
        self.losses_, self.held_out_losses_ = np.array(losses), np.array(held_out if asked is not None else [])

    def _split(self, triplets: ClickTriplets, rng: np.random.Generator) -> tuple[ClickTriplets, Triplets | None]:
        queries = np.unique(triplets.queries)
        count = round(self.held_out * len(queries))
        if count < 1 or len(queries) < _FEWEST_QUERIES:
            return triplets, None
        chosen = np.zeros(int(queries[-1]) + 1, dtype=bool)
        chosen[rng.choice(queries, size=count, replace=False)] = True
        asked = triplets.of_queries(chosen)
        pairs = rng.permutation(len(asked))[:_HELD_OUT_TRIPLETS]
        return triplets.of_queries(~chosen), asked.draw(pairs, rng)

    def _query_side(self, log: ClickLog, sets: WordSets, rng: np.random.Generator) -> tuple[QuerySide, BoolArray]:
        """Return the text side, with one point per set, and which sets have a point at all."""
        raise NotImplementedError

    def _encode_images(self, images: FloatArray) -> AnyArray:
        return project(images, self.mean_, self.projection_)
