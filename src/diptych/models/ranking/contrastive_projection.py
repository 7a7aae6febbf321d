from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from diptych.arrays import FloatArray, IntArray, unit_rows
from diptych.devices import Card, as_array, card_for
from diptych.models.base import Grid, LinearProjectionModel
from diptych.models.correlation import CCA
from diptych.models.labels import Targets, picture_numbers
from diptych.models.optimisers import Adam
from diptych.models.parameters import Count, DropoutShare, NonNegative, Positive


@dataclass(kw_only=True, eq=False, repr=False)
class ContrastiveProjection(LinearProjectionModel):
    """Linear projections that start at CCA and then learn to rank, by the symmetric softmax loss over a batch.

    With unit points aᵢ = P xᵢ/‖P xᵢ‖ and bᵢ = Q yᵢ/‖Q yᵢ‖ of centred features and temperature τ,

        L = −(1/2n) Σᵢ [ log softmaxⱼ(aᵢ·bⱼ/τ)ᵢ + log softmaxⱼ(bᵢ·aⱼ/τ)ᵢ ].

    A batch holds different pictures, each with one of its texts drawn at random. Features are dropped at random during
    training, steps are Adam's with a warm-up and a cosine decay. CCA never looks at what does not belong together;
    starting from it, a few seconds of ranking gain several points of recall where there are thousands of pairs. With
    fewer than some hundred stay with :class:`CCA`.

    van den Oord et al., "Representation learning with contrastive predictive coding", 2018, for the loss; two-sided in
    Zhang et al., "Contrastive learning of medical visual representations from paired images and text", 2020. The start
    at CCA is ours.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space; fewer when a side has fewer features.
    regularization : float
        Ridge of the CCA it starts from.
    temperature : float
        τ above: the smaller, the more the nearest wrong answers count.
    dropout : float
        Share of features left out of each row in each step.
    learning_rate : float
        The largest step, relative to features of unit variance.
    epochs, batch_size : int
        Passes over the pictures, and pictures in a batch.
    random_state : int
        Of batches and dropout.
    metric : str
        Name of the `Space`; the loss is made for cosine.

    Attributes
    ----------
    losses_ : array
        The mean loss of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import ContrastiveProjection
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(300, 6))
    >>> images = meaning @ rng.normal(size=(6, 20)) + 0.5 * rng.normal(size=(300, 20))
    >>> texts = meaning @ rng.normal(size=(6, 10)) + 0.5 * rng.normal(size=(300, 10))
    >>> model = ContrastiveProjection(n_components=6, learning_rate=1e-3, dropout=0).fit(images, texts)
    >>> bool(model.losses_[-1] < model.losses_[0])
    True
    """

    when_to_use: ClassVar[str] = "Thousands of pairs without labels: CCA's answer, then trained to rank; a minute."
    title: ClassVar[str] = "contrastive projection"
    grid: ClassVar[Grid] = {"temperature": [0.05, 0.2]}

    n_components: Count = 256
    regularization: NonNegative = 1.0
    temperature: Positive = 0.05
    dropout: DropoutShare = 0.3
    learning_rate: Positive = 1e-4
    epochs: Count = 30
    batch_size: Count = 1500
    random_state: int = 0
    metric: str = "cosine"

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        start = CCA(n_components=self.n_components, regularization=self.regularization).fit(images, texts)
        self.image_mean_, self.text_mean_ = start.image_mean_, start.text_mean_
        scales = _spread(images, start.image_mean_), _spread(texts, start.text_mean_)
        projections = [
            np.asarray(projection * scale, dtype=np.float32)
            for projection, scale in zip((start.image_projection_, start.text_projection_), scales, strict=True)
        ]
        self._train(images, texts, projections, scales)
        self.image_projection_, self.text_projection_ = (
            (projection / scale).astype(images.dtype) for projection, scale in zip(projections, scales, strict=True)
        )

    def _train(
        self, images: FloatArray, texts: FloatArray, projections: list[FloatArray], scales: tuple[float, float]
    ) -> None:
        """Change the projections in place, on a graphics card where there is one and much to do."""
        rng = np.random.default_rng(self.random_state)
        pictures, means = _same_rows(images), (self.image_mean_, self.text_mean_)
        steps = self.epochs * -(-len(pictures) // self.batch_size)
        card = card_for(self.epochs * len(pictures) * 2 * sum(projection.size for projection in projections))
        placed = projections if card is None else [card.tensor(projection) for projection in projections]
        adam, losses = Adam(placed, self.learning_rate, steps), []
        for _ in range(self.epochs):
            of_epoch = []
            for rows in _batches(pictures, self.batch_size, rng):
                sides = [
                    self._dropped((side[rows] - mean) / scale, rng)
                    for side, mean, scale in zip((images, texts), means, scales, strict=True)
                ]
                if card is None:
                    loss, gradients = _loss_and_gradients(*sides, *placed, temperature=self.temperature)
                else:
                    loss, gradients = _on_card(card, sides, placed, self.temperature)
                adam.step(gradients)
                of_epoch.append(loss)
            losses.append(float(np.mean([float(loss) for loss in of_epoch])))
        self.losses_ = np.array(losses)
        if card is not None:
            for projection, learned in zip(projections, placed, strict=True):
                projection[...] = as_array(learned)

    def _dropped(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        kept = rng.random(rows.shape, dtype=np.float32) >= self.dropout
        return np.asarray(rows * kept / (1 - self.dropout), dtype=np.float32)


def _spread(rows: FloatArray, mean: FloatArray) -> float:
    """Return the root of the mean variance of a feature."""
    squares = np.einsum("ij,ij->", rows, rows, dtype=np.float64) / len(rows) - float(mean @ mean)
    return float(np.sqrt(max(squares, 0.0) / rows.shape[1])) or 1.0


def _same_rows(images: FloatArray) -> list[IntArray]:
    """Return, for each different picture, the rows that show it: its texts must not count as wrong answers."""
    numbers = picture_numbers(images)
    return list(np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1]))


def _batches(pictures: list[IntArray], size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield rows of different pictures, each with one of its texts, in batches of about equal size."""
    order = rng.permutation(len(pictures))
    for part in np.array_split(order, -(-len(order) // size)):
        yield np.array([pictures[picture][rng.integers(len(pictures[picture]))] for picture in part])


def _loss_and_gradients(
    images: FloatArray, texts: FloatArray, of_images: FloatArray, of_texts: FloatArray, *, temperature: float
) -> tuple[float, list[FloatArray]]:
    raw_images, raw_texts = images @ of_images, texts @ of_texts
    unit_images, unit_texts = unit_rows(raw_images), unit_rows(raw_texts)
    logits = (unit_images @ unit_texts.T) / temperature
    by_row, row_loss = _softmax_loss(logits)
    by_column, column_loss = _softmax_loss(logits.T)
    slopes = (by_row + by_column.T) / (2 * len(images) * temperature)
    gradients: list[FloatArray] = [
        images.T @ _through_unit(raw_images, unit_images, slopes @ unit_texts),
        texts.T @ _through_unit(raw_texts, unit_texts, slopes.T @ unit_images),
    ]
    return (row_loss + column_loss) / 2, gradients


def _on_card(card: Card, sides: list[FloatArray], projections: list[Any], temperature: float) -> tuple[Any, Any]:
    """Return what `_loss_and_gradients` does, as tensors; the loss is not waited for."""
    learned = [projection.detach().requires_grad_() for projection in projections]
    images, texts = (
        card.torch.nn.functional.normalize(card.tensor(side) @ projection)
        for side, projection in zip(sides, learned, strict=True)
    )
    logits = images @ texts.T / temperature
    losses = [-card.torch.diagonal(card.torch.log_softmax(part, 1)).mean() for part in (logits, logits.T)]
    loss = (losses[0] + losses[1]) / 2
    return loss.detach(), card.torch.autograd.grad(loss, learned)


def _softmax_loss(logits: FloatArray) -> tuple[FloatArray, float]:
    """Return softmax − identity, row by row, and the mean of −log of its diagonal."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1, keepdims=True)
    loss = float(np.mean(np.log(sums[:, 0]) - np.diagonal(shifted)))
    shares = exponentials / sums
    shares[np.diag_indices_from(shares)] -= 1
    return shares, loss


def _through_unit(raw: FloatArray, unit: FloatArray, slopes: FloatArray) -> FloatArray:
    """Carry the gradient from unit rows back to the rows before scaling."""
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    across = slopes - unit * np.einsum("ij,ij->i", unit, slopes)[:, None]
    return np.asarray(across / np.where(lengths > 0, lengths, 1))
