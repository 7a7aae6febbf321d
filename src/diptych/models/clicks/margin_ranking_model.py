"""What the models share that learn a common space from clicks."""

from __future__ import annotations

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray
from diptych.data.clicks import ClickLog
from diptych.errors import InvalidInputError
from diptych.models.clicks.click_model import ClickModel
from diptych.models.clicks.click_triplets import ClickTriplets
from diptych.models.clicks.margin_ranking import MarginRanking, Triplets
from diptych.models.clicks.query_side import QuerySide
from diptych.models.clicks.query_table import query_table
from diptych.models.clicks.word_sets import WordSets
from diptych.models.linear import check_varies, column_deviations, column_means, project
from diptych.models.parameters import check_count, check_number

# With fewer queries none is held out; more triplets than this tell no more about them.
_FEWEST_QUERIES = 20
_HELD_OUT_TRIPLETS = 20_000


class MarginRankingModel(ClickModel):
    """A model that ranks pictures by ⟨Wᵀx, t(q)⟩ and learns W from triplets of a query, a clicked and another picture.

    A subclass says what t(q) is: it writes ``_query_side`` and ``_encode_queries``.
    """

    margin: float
    epochs: int
    batch_size: int
    learning_rate: float
    decay: float
    min_clicks: float
    max_images: int
    held_out: float
    patience: int
    seed: int

    mean_: FloatArray
    projection_: FloatArray
    text_weights_: FloatArray
    losses_: FloatArray
    held_out_losses_: FloatArray

    def _fit_clicks(self, log: ClickLog, images: FloatArray) -> None:
        self._check_parameters()
        check_varies(images, name="images")
        rng = np.random.default_rng(self.seed)
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

    def _check_parameters(self) -> None:
        for name in ("epochs", "batch_size", "max_images", "patience"):
            check_count(name, getattr(self, name))
        for name in ("margin", "learning_rate"):
            check_number(name, getattr(self, name), low=0, open_low=True)
        check_number("decay", self.decay, low=0, high=1, open_low=True)
        check_number("min_clicks", self.min_clicks, low=0)
        check_number("held_out", self.held_out, low=0, high=0.5)
