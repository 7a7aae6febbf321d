from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from diptych.arrays import FloatArray, IntArray, map_rows, unit_rows
from diptych.devices import Card, as_array, card_for
from diptych.models.base import Grid, LinearProjectionModel, Side
from diptych.models.correlation import CCA
from diptych.models.labels import Targets, picture_numbers
from diptych.models.linear import centre, relative_ridge, through_unit
from diptych.models.optimisers import Adam
from diptych.models.pair_losses import (
    Divergence,
    sigmoid_loss,
    sigmoid_slopes,
    sigmoid_start,
    softmax_slopes,
    structure_slopes,
)
from diptych.models.parameters import Count, DropoutShare, NonNegative, Positive
from diptych.models.ranking._heads import HeadKind, apply_head, new_head, run_head

SIDE_NAMES: tuple[Literal["images", "texts"], ...] = ("images", "texts")
STRUCTURE_ROWS = 512
"""Rows of a batch whose neighbourhoods are compared: the time grows with their square."""


@dataclass(kw_only=True, eq=False, repr=False)
class ContrastiveProjection(LinearProjectionModel):
    """Linear projections that start at CCA and then learn to rank, by the symmetric softmax loss over a batch.

    With unit points aᵢ = P xᵢ/‖P xᵢ‖ and bᵢ = Q yᵢ/‖Q yᵢ‖ of centred features and temperature τ,

        L = −(1/2n) Σᵢ [ log softmaxⱼ(aᵢ·bⱼ/τ)ᵢ + log softmaxⱼ(bᵢ·aⱼ/τ)ᵢ ].

    A batch holds different pictures, each with one of its texts drawn at random. Features are dropped at random during
    training, steps are Adam's with a warm-up and a cosine decay. CCA never looks at what does not belong together;
    starting from it, a few seconds of ranking gain several points of recall where there are thousands of pairs. With
    fewer than some hundred stay with :class:`CCA`.

    The same class is what several papers do: the ``sigmoid`` loss of pairs and a ``gated`` head (SAIL), an MLP on one
    side beside a ``fixed`` one (ShareLock), batches of mixed pairs (FuseMix), and points that keep the neighbourhoods
    of their features (STRUCTURE). Heads are added to the linear map and start at zero, so that all start at CCA.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space; fewer when a side has fewer features.
    regularization : float
        Ridge of the CCA it starts from.
    temperature : float
        τ above: the smaller, the more the nearest wrong answers count.
    loss : {"softmax", "sigmoid"}
        ``sigmoid`` judges each picture and text of a batch alone; its scale, which starts at 1/τ, and its bias are
        learned, too.
    head : {"linear", "mlp", "gated"}
        What is learned for a side; ``gated`` is SAIL's layer. Below 100,000 pairs a linear head is the safe choice.
    hidden_size : int
        Width of the network of a head.
    fixed : {"images", "texts"} or None
        A side that stays as it is: its features are the common space, and points of a stored gallery do not change.
    mix : float
        α of FuseMix: each pair is mixed with another one of its batch, by one share drawn from Beta(α, α) for both
        sides; 0 mixes nothing.
    structure : float
        Weight of the regulariser of STRUCTURE; 0 leaves it out.
    structure_levels : int
        How many steps between neighbours it compares.
    divergence : {"js", "reverse"}
        What it measures: the Jensen-Shannon divergence of the paper, or what the public code computes.
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
        The mean loss of each epoch, without the regulariser.

    References
    ----------
    van den Oord et al., "Representation learning with contrastive predictive coding", 2018, for the loss; two-sided in
    Zhang et al., "Contrastive learning of medical visual representations from paired images and text", 2020. Zhai et
    al., "Sigmoid loss for language image pre-training", ICCV 2023. Zhang et al., "Assessing and learning alignment of
    unimodal vision and language models" (SAIL), CVPR 2025. Vouitsis et al., "Data-efficient multimodal fusion on a
    single GPU" (FuseMix), CVPR 2024. Gröger et al., "With limited data for multimodal alignment, let the STRUCTURE
    guide you", 2025. Ruthardt et al., "Better language models exhibit higher visual alignment" (ShareLock), 2024. The
    start at CCA is ours.

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
    loss: Literal["softmax", "sigmoid"] = "softmax"
    head: HeadKind = "linear"
    hidden_size: Count = 512
    fixed: Literal["images", "texts"] | None = None
    mix: NonNegative = 0.0
    structure: NonNegative = 0.0
    structure_levels: Count = 1
    divergence: Divergence = "js"
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
        projections = [start.image_projection_, start.text_projection_]
        if self.fixed is not None:
            own = SIDE_NAMES.index(self.fixed)
            rows = (images - start.image_mean_) / scales[0], (texts - start.text_mean_) / scales[1]
            projections[own] = np.eye(rows[own].shape[1]) / scales[own]
            projections[1 - own] = _regression(rows[1 - own], rows[own], self.regularization) / scales[1 - own]
        rng = np.random.default_rng(self.random_state)
        heads = [
            new_head(
                "linear" if side == self.fixed else self.head,
                np.asarray(projection * scale, dtype=np.float32),
                self.hidden_size,
                rng,
            )
            for side, projection, scale in zip(SIDE_NAMES, projections, scales, strict=True)
        ]
        self._train(images, texts, heads, scales, rng)
        self.image_projection_, self.text_projection_ = (
            (head[0] / scale).astype(images.dtype) for head, scale in zip(heads, scales, strict=True)
        )
        if self.head != "linear":
            self.image_scale_, self.text_scale_ = scales
            self.image_head_, self.text_head_ = heads[0][1:], heads[1][1:]

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        if self.head == "linear":
            return super()._encode_side(side, rows)
        mean, projection, scale, rest = self._of_side(side, "mean", "projection", "scale", "head")
        arrays = [array.astype(rows.dtype, copy=False) for array in (projection * scale, *rest)]
        return map_rows(lambda block: apply_head(arrays, centre(block, mean) / scale), rows, projection.shape[1])

    def _train(
        self,
        images: FloatArray,
        texts: FloatArray,
        heads: list[list[FloatArray]],
        scales: tuple[float, float],
        rng: np.random.Generator,
    ) -> None:
        """Change the arrays of the heads in place; linear ones on a graphics card where there is one and much to do."""
        pictures, means = _same_rows(images), (self.image_mean_, self.text_mean_)
        steps = self.epochs * -(-len(pictures) // self.batch_size)
        learned = [array for side, head in zip(SIDE_NAMES, heads, strict=True) if side != self.fixed for array in head]
        is_plain = self.loss == "softmax" and len(learned) == 2 and not self.structure
        card = card_for(self.epochs * len(pictures) * 2 * sum(array.size for array in learned)) if is_plain else None
        placed = learned if card is None else [card.tensor(array) for array in learned]
        logit = sigmoid_start(1 / self.temperature, min(self.batch_size, len(pictures)))
        adam = Adam([*placed, logit] if self.loss == "sigmoid" else placed, self.learning_rate, steps)
        losses = []
        for _ in range(self.epochs):
            of_epoch = []
            for rows in _batches(pictures, self.batch_size, rng):
                both = (images[rows], texts[rows])
                whole: list[FloatArray] = [
                    (side - mean) / scale for side, mean, scale in zip(both, means, scales, strict=True)
                ]
                if self.mix and len(rows) > 3:
                    whole = mixed_pairs(whole, float(rng.beta(self.mix, self.mix)))
                sides = [
                    np.asarray(rows, dtype=np.float32) if side == self.fixed else self._dropped(rows, rng)
                    for side, rows in zip(SIDE_NAMES, whole, strict=True)
                ]
                if card is None:
                    loss, gradients = self._loss_and_gradients(whole, sides, heads, logit)
                else:
                    loss, gradients = _on_card(card, sides, placed, self.temperature)
                adam.step(gradients)
                of_epoch.append(loss)
            losses.append(float(np.mean([float(loss) for loss in of_epoch])))
        self.losses_ = np.array(losses)
        if card is not None:
            for array, tensor in zip(learned, placed, strict=True):
                array[...] = as_array(tensor)

    def _loss_and_gradients(
        self, whole: list[FloatArray], sides: list[FloatArray], heads: list[list[FloatArray]], logit: FloatArray
    ) -> tuple[float, list[FloatArray]]:
        """Return the loss of a batch, and the gradients of all that is learned.

        ``whole`` are the rows without dropout, whose neighbourhoods the regulariser compares with those of the points.
        """
        runs = [run_head(head, rows) for head, rows in zip(heads, sides, strict=True)]
        unit = [unit_rows(points) for points, _ in runs]
        cosines = unit[0] @ unit[1].T
        own = []
        if self.loss == "softmax":
            loss, slopes = softmax_slopes(cosines, self.temperature)
        else:
            slopes, of_logit = sigmoid_slopes(cosines, logit)
            loss, own = sigmoid_loss(cosines, logit), [of_logit]
        slopes = slopes.astype(cosines.dtype, copy=False)
        gradients: list[FloatArray] = []
        across = slopes @ unit[1], slopes.T @ unit[0]
        for number, (points, back) in enumerate(runs):
            if SIDE_NAMES[number] == self.fixed:
                continue
            of_points = through_unit(points, unit[number], across[number])
            if self.structure:
                kept = slice(0, STRUCTURE_ROWS)
                rows = whole[number][kept], points[kept]
                of_rows = structure_slopes(*rows, self.temperature, self.structure_levels, self.divergence)[1]
                of_points[kept] += (self.structure * of_rows).astype(of_points.dtype)
            gradients += back(of_points)
        return loss, [*gradients, *own]

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


def mixed_pairs(sides: Sequence[FloatArray], share: float) -> list[FloatArray]:
    """Return the first half of the rows of each side mixed with the second: ``share`` of the one, the rest of another.

    A mixed picture and the text mixed by the same share from the same partner are a pair.
    """
    half = len(sides[0]) // 2
    return [share * side[:half] + (1 - share) * side[half : 2 * half] for side in sides]


def _regression(rows: FloatArray, others: FloatArray, ridge: float) -> FloatArray:
    """Return the ridge regression of the directions of one side on the other side."""
    moment = rows.T.astype(np.float64) @ rows / len(rows)
    moment[np.diag_indices_from(moment)] += relative_ridge(moment, ridge)
    return np.asarray(np.linalg.solve(moment, rows.T.astype(np.float64) @ unit_rows(others) / len(rows)))


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
