"""What methods share that learn two linear maps by ranking, batch by batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import FloatArray, IntArray
from diptych.models.correlation import CCA
from diptych.models.correlation.projection import LinearProjectionModel
from diptych.models.labels import Targets
from diptych.models.parameters import check_choice, check_count, check_number
from diptych.models.pictures import picture_numbers
from diptych.models.ranking.adam import Adam
from diptych.models.ranking.linear_side import LinearSide
from diptych.models.ranking.ranking_step import RankingStep
from diptych.models.related_rows import RelatedRows

Start = Literal["cca", "random"]


class LinearRankingModel(LinearProjectionModel):
    """Trains both projections by Adam on batches of rows that ask in both directions.

    A subclass writes ``_step``, the loss of a batch of queries of one side against the other side and its slopes. It
    may write ``_constrain``, called after each step, and ``_after_epoch``.
    """

    n_components: int
    start: Start
    regularization: float
    learning_rate: float
    epochs: int
    batch_size: int
    seed: int

    losses_: FloatArray

    def _targets(self, labels: ArrayLike | None, n_rows: int) -> Targets | None:
        # Labels are welcome and not needed: without them, what shows the same picture belongs together.
        if labels is None and "labels" not in self.needs:
            return None
        return Targets.from_labels(labels, n_rows) if labels is not None else super()._targets(labels, n_rows)

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        self._check()
        related = (
            RelatedRows.of_numbers(picture_numbers(images))
            if targets is None
            else RelatedRows.of_marks(targets.indicator)
        )
        rng = np.random.default_rng(self.seed)
        sides = self._started(images, texts, rng)
        self.losses_ = self._train(sides, related, rng)
        image_side, text_side = sides
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
            gradients[asking] += sides[asking].features(queries).T @ step.query_slopes
            gradients[searched] += sides[searched].features(step.gallery).T @ step.gallery_slopes
            loss += step.loss
        return loss, gradients

    def _step(
        self,
        asking: LinearSide,
        searched: LinearSide,
        related: RelatedRows,
        queries: IntArray,
        rng: np.random.Generator,
    ) -> RankingStep:
        raise NotImplementedError

    def _constrain(self, sides: list[LinearSide]) -> None:
        """Bring the weights back to where they may be; anywhere, unless a subclass says otherwise."""

    def _after_epoch(self, sides: list[LinearSide]) -> None:
        """Do what is due once in each pass; nothing, unless a subclass says otherwise."""

    def _check(self) -> None:
        for name in ("n_components", "epochs", "batch_size"):
            check_count(name, getattr(self, name))
        check_choice("start", self.start, ("cca", "random"))
        check_number("regularization", self.regularization, low=0)
        check_number("learning_rate", self.learning_rate, low=0, open_low=True)


def sampled_list(queries: IntArray, n_rows: int, size: int, rng: np.random.Generator) -> IntArray:
    """Return about ``size`` different rows to rank for a batch: its own, so that none goes without a right answer,
    and others drawn evenly.
    """
    others = rng.permutation(n_rows)
    others = others[~np.isin(others, queries)]
    return np.concatenate([queries, others[: max(0, size - len(queries))]])
