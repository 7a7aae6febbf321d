"""Multimodal similarity-preserving hashing with coupled siamese networks."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from diptych.codes import pack_signs
from diptych.estimators import scikit_learn
from diptych.metrics import AP, SharedLabel, evaluate
from diptych.models.base import Grid, Need, Side
from diptych.models.hashing.hashing_model import HashingModel
from diptych.models.labels import Targets, draw_of_groups, draw_until_right
from diptych.models.neural._layers import (
    Layers,
    StandardView,
    for_raw_rows,
    held_out_rows,
    initial_layers,
    run_layers,
)
from diptych.models.neural._training_loop import CheckpointFile, EpochReport, ResumableModel
from diptych.models.optimisers import Adam
from diptych.models.parameters import Count, HeldOutShare, NonNegative, Positive
from diptych.space import DIRECTIONS, Space

# How often a run looks at the rows held out, and how many looks may bring nothing before it ends.
_LOOKS, _PATIENCE = 20, 6
# The entropy under which no bit of a side says anything.
_COLLAPSED = 0.05
# No distance is less, where it divides.
_SMALLEST = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class MMNN(ResumableModel, HashingModel):
    """Multimodal neural hashing: two networks, trained so that codes of similar items agree and others differ.

    Networks ξ for pictures and η for texts end in q tanh units, and the code is the sign of their outputs. With P the
    pairs of items that share a label and N those that do not,

        ℓ_XY = ½ Σ_P ‖ξ(x) − η(y)‖² + ½ Σ_N max(0, m − ‖ξ(x) − η(y)‖)²,     L = ℓ_XY + a (ℓ_X + ℓ_Y)

    where ℓ_X and ℓ_Y are the same with two pictures and two texts; sums are taken as means. A step draws as many
    similar as dissimilar pairs; half of the similar pairs across the sides are an item's own picture and text. Where
    there are fewer classes than codes the networks become classifiers: strong on classes seen in training, weak on
    others.

    Parameters
    ----------
    n_bits : int
        Length q of the codes.
    hidden : tuple of int
        Widths of the hidden layers of either network.
    margin : float
        m in units of √(2q), the distance of codes that differ in half of their bits.
    within : float
        a above; 0 trains on pairs across the sides alone.
    learning_rate, weight_decay : float
        Of Adam; the weights' squares are added to the loss times half the second.
    epochs, batch_size : int
        Passes over the rows, and rows with a similar and a dissimilar partner in a step.
    validation : float
        Share of the rows held out. Training stops when the MAP of their codes no longer rises, and the best networks
        are kept; 0 trains all epochs and keeps the last.
    checkpoint : str or None
        Folder for the state of training after each epoch: the same call goes on after a crash, to the same bits. It is
        refused where it holds that of other data or parameters.
    random_state : int
        Of everything drawn.

    Attributes
    ----------
    losses_ : array
        The mean loss of each epoch.
    bit_entropies_ : array of shape (2, q)
        Entropy of each bit over the training rows, for pictures and texts; a bit that is constant has 0, an even one 1.

    References
    ----------
    Masci, Bronstein, Bronstein and Schmidhuber, "Multimodal similarity-preserving hashing", TPAMI 2014. Architecture,
    margin, weights and schedule are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import MMNN
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["bird", "boat"], 50)
    >>> images = rng.normal(size=(100, 6)) + 2 * (labels == "boat")[:, None]
    >>> texts = rng.normal(size=(100, 4)) - 2 * (labels == "boat")[:, None]
    >>> model = MMNN(n_bits=8, epochs=30).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels", "pairs"})
    when_to_use: ClassVar[str] = "Codes for classes seen in training that no hyperplane separates; seconds to minutes."
    title: ClassVar[str] = "MM-NN"
    grid: ClassVar[Grid] = {"margin": [0.7, 1.0]}
    command_name: ClassVar[str] = "mm-nn"

    hidden: tuple[Count, ...] = (256,)
    margin: Positive = 1.0
    within: NonNegative = 0.5
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 1e-4
    epochs: Count = 100
    batch_size: Count = 256
    validation: HeldOutShare = 0.2
    checkpoint: str | None = None

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        rng = np.random.default_rng(self.random_state)
        views = StandardView.of(images, name="images"), StandardView.of(texts, name="texts")
        networks = [initial_layers((view.rows.shape[1], *self.hidden, self.n_bits), rng) for view in views]
        # The number of epochs shapes every step, so it may not change as it may where steps are all alike.
        file = self._checkpoint_file("networks", images, texts, targets.indicator, may_change=("checkpoint",))
        networks = self._train(views, networks, targets, rng, file)
        self.image_mean_, self.text_mean_ = views[0].mean, views[1].mean
        self.image_layers_ = for_raw_rows(networks[0], views[0].deviation)
        self.text_layers_ = for_raw_rows(networks[1], views[1].deviation)
        self._measure_bits(images, texts)

    def _train(
        self,
        views: tuple[StandardView, StandardView],
        networks: list[Layers],
        targets: Targets,
        rng: np.random.Generator,
        checkpoint: CheckpointFile | None,
    ) -> list[Layers]:
        """Change the networks in place and return those that did best on the rows held out, or the last."""
        known = targets.labelled
        indicator = targets.indicator[known]
        train, held_out = held_out_rows(indicator, self.validation, rng)
        pairs = LabelPairs(indicator[train])
        n_batches = -(-len(train) // self.batch_size)
        adam = Adam([*networks[0], *networks[1]], self.learning_rate, self.epochs * n_batches)
        state = TwinState(networks, adam, rng, networks)
        if checkpoint is not None:
            state.restore(checkpoint)
        while len(state.losses) < self.epochs and state.waited < _PATIENCE:
            started, judged = time.perf_counter(), math.nan
            state.losses.append(self._epoch(views, state, pairs, known[train], n_batches))
            seconds = time.perf_counter() - started
            epoch = len(state.losses)
            if len(held_out) and epoch % max(1, self.epochs // _LOOKS) == 0:
                sides = zip((view.standardized(known[held_out]) for view in views), networks, strict=True)
                judged = _code_map([tanh_forward(*side)[-1] for side in sides], indicator[held_out])
                state.update_best(judged)
            if checkpoint is not None:
                state.save(checkpoint)
            if self._progress is not None:
                self._progress(EpochReport(epoch, state.losses[-1], judged, math.nan, len(train) / max(seconds, 1e-9)))
        self.losses_ = np.array(state.losses)
        return state.best

    def _epoch(
        self,
        views: tuple[StandardView, StandardView],
        state: TwinState,
        pairs: LabelPairs,
        rows: IntArray,
        n_batches: int,
    ) -> float:
        """Pass once over the rows and return their mean loss."""
        losses = []
        for items in np.array_split(state.rng.permutation(len(rows)), n_batches):
            batch = PairBatch.drawn(items, pairs, state.rng)
            sides = [view.standardized(rows[batch.rows]) for view in views]
            loss, gradients = self._loss_and_gradients(sides, state.networks, batch)
            state.adam.step(gradients)
            losses.append(loss)
        return float(np.mean(losses))

    def _loss_and_gradients(
        self, sides: list[FloatArray], networks: list[Layers], batch: PairBatch
    ) -> tuple[float, list[FloatArray]]:
        """Return the loss of a batch and the gradient of every array, those of the pictures' network first."""
        image_values, text_values = (tanh_forward(rows, layers) for rows, layers in zip(sides, networks, strict=True))
        margin = self.margin * float(np.sqrt(2 * self.n_bits))
        loss, image_slopes, text_slopes = coupled_loss(
            image_values[-1], text_values[-1], batch, margin=margin, within=self.within
        )
        gradients = [
            *tanh_backward(image_values, networks[0], image_slopes),
            *tanh_backward(text_values, networks[1], text_slopes),
        ]
        for gradient, array in zip(gradients, [*networks[0], *networks[1]], strict=True):
            if array.ndim > 1:
                loss += self.weight_decay * float((array**2).sum()) / 2
                gradient += self.weight_decay * array
        return loss, gradients

    def _measure_bits(self, images: FloatArray, texts: FloatArray) -> None:
        shares = np.stack([self._shares("image", images), self._shares("text", texts)])
        self.bit_entropies_ = scipy.special.entr(shares) / np.log(2) + scipy.special.entr(1 - shares) / np.log(2)
        if (self.bit_entropies_.max(axis=1) < _COLLAPSED).any():
            warnings.warn(
                "MM-NN gives nearly all items of one side the same code; raise within, margin or epochs",
                scikit_learn("sklearn.exceptions").ConvergenceWarning,
                stacklevel=2,
            )

    def _decide(self, side: Side, rows: FloatArray) -> FloatArray:
        return np.tanh(run_layers(rows, *self._of_side(side, "mean", "layers"), activation="tanh"))

    def _shares(self, side: Side, rows: FloatArray) -> FloatArray:
        """Return the share of ones of each bit."""
        ones = sum((self._decide(side, rows[block]) >= 0).sum(axis=0) for block in row_blocks(len(rows)))
        return np.asarray(ones / len(rows))


def _code_map(outputs: list[FloatArray], indicator: FloatArray) -> float:
    """Return the MAP of the codes of aligned rows, both directions averaged."""
    images, texts = (pack_signs(of_side) for of_side in outputs)
    sides = {"image_query": (images, texts), "text_query": (texts, images)}
    relevance, hamming = SharedLabel(indicator, indicator), Space("hamming")
    means = [evaluate(*sides[way], hamming, relevance, [AP()], direction=way).mean[AP()] for way in DIRECTIONS]
    return float(np.mean(means))


@dataclass
class TwinState:
    """Everything that the next epoch depends on: networks, moments, draws, and how the held-out rows fared."""

    networks: list[Layers]
    adam: Adam
    rng: np.random.Generator
    best: list[Layers]  # those with the highest score on held-out rows, the present ones where there is none
    best_score: float = -1.0
    waited: int = 0  # looks since then
    losses: list[float] = field(default_factory=list)

    def update_best(self, score: float) -> None:
        """Take note of how the present networks do on the held-out rows."""
        self.waited = 0 if score > self.best_score else self.waited + 1
        if score >= self.best_score:
            self.best, self.best_score = [[array.copy() for array in layers] for layers in self.networks], score

    def save(self, file: CheckpointFile) -> None:
        """Write the state to a file."""
        arrays = {f"adam.{name}": values for name, values in self.adam.state().items()}
        arrays |= _named("now", self.networks) | _named("best", self.best)
        facts = {"best_score": self.best_score, "waited": self.waited, "losses": self.losses}
        file.write(arrays, {**facts, "draws": self.rng.bit_generator.state})

    def restore(self, file: CheckpointFile) -> None:
        """Go on from what a file holds; from the start where there is none."""
        found = file.read()
        if found is None:
            return
        arrays, facts = found
        self.adam.restore({name.removeprefix("adam."): arrays[name] for name in arrays if name.startswith("adam.")})
        for name, array in _named("now", self.networks).items():
            array[...] = arrays[name]
        self.best_score, self.waited, self.losses = facts["best_score"], facts["waited"], facts["losses"]
        if self.best_score >= 0:
            self.best = [
                [arrays[f"best.{number}.{place}"] for place in range(len(layers))]
                for number, layers in enumerate(self.networks)
            ]
        self.rng.bit_generator.state = facts["draws"]


def _named(part: str, networks: list[Layers]) -> dict[str, AnyArray]:
    return {
        f"{part}.{number}.{place}": array
        for number, layers in enumerate(networks)
        for place, array in enumerate(layers)
    }


def tanh_forward(rows: FloatArray, layers: Layers) -> list[FloatArray]:
    """Return the rows and then the values of every layer; the last are the outputs, in [−1, 1]."""
    values = [rows]
    for weights, intercepts in zip(layers[::2], layers[1::2], strict=True):
        values.append(np.tanh(values[-1] @ weights + intercepts))
    return values


def tanh_backward(values: list[FloatArray], layers: Layers, slopes: FloatArray) -> list[FloatArray]:
    """Return the gradient of every weight and intercept, given the loss's slopes at the outputs."""
    gradients: list[FloatArray] = []
    for number in range(len(values) - 1, 0, -1):
        before = slopes * (1 - values[number] ** 2)
        gradients[:0] = [values[number - 1].T @ before, before.sum(axis=0)]
        slopes = before @ layers[2 * number - 2].T
    return gradients


class LabelPairs:
    """Draws partners for rows whose labels are known, without ever looking at all pairs.

    A similar partner has one of the row's labels, drawn evenly, so that rare labels count as much as frequent ones. A
    dissimilar one has none of them; where some draws find none, there may be none at all, and the row goes without.
    """

    def __init__(self, indicator: FloatArray) -> None:
        self._indicator = np.asarray(indicator, dtype=np.float32)
        _, self._labels = np.nonzero(indicator)
        self._label_starts = _starts(np.count_nonzero(indicator, axis=1))
        _, self._members = np.nonzero(indicator.T)
        self._member_starts = _starts(np.count_nonzero(indicator, axis=0))

    def similar(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Return for each row another, or the row itself, that shares a label with it."""
        labels = draw_of_groups(self._labels, self._label_starts, rows, rng)
        return draw_of_groups(self._members, self._member_starts, labels, rng)

    def dissimilar(self, rows: IntArray, rng: np.random.Generator) -> tuple[IntArray, BoolArray]:
        """Return for each row one that shares no label with it, and whether one was found."""

        def share_a_label(partners: IntArray) -> BoolArray:
            return np.asarray(np.einsum("ij,ij->i", self._indicator[rows], self._indicator[partners]) > 0)

        partners, shared = draw_until_right(len(rows), len(self._indicator), share_a_label, rng)
        return partners, ~shared


def _starts(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)])


@dataclass(frozen=True)
class PairBatch:
    """Items with a similar and a dissimilar partner each."""

    rows: IntArray  # three parts of one length: the items, their similar and their dissimilar partners
    own: BoolArray  # where the similar text of a picture is its own instead of its partner's
    differs: BoolArray  # where the dissimilar partner is one

    @classmethod
    def drawn(cls, items: IntArray, pairs: LabelPairs, rng: np.random.Generator) -> PairBatch:
        """Draw partners for ``items``; half of the pairs across the sides are an item's own."""
        similar = pairs.similar(items, rng)
        dissimilar, differs = pairs.dissimilar(items, rng)
        return cls(np.concatenate([items, similar, dissimilar]), rng.random(len(items)) < 0.5, differs)


def coupled_loss(
    images: FloatArray, texts: FloatArray, batch: PairBatch, *, margin: float, within: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return ℓ_XY + a(ℓ_X + ℓ_Y), means over pairs, of points in the order of ``batch.rows``, and its slopes there."""
    image_points, text_points, own = np.split(images, 3), np.split(texts, 3), batch.own[:, None]
    image, (text, similar_text, other_text) = image_points[0], text_points
    total, image_slopes, text_slopes = 0.0, np.zeros_like(images), np.zeros_like(texts)
    image_parts, text_parts = np.split(image_slopes, 3), np.split(text_slopes, 3)

    value, slope = _attract(image, np.where(own, text, similar_text))
    total += value
    image_parts[0] += slope
    text_parts[0] -= slope * own
    text_parts[1] -= slope * ~own
    value, slope = _repel(image, other_text, margin, batch.differs)
    total += value
    image_parts[0] += slope
    text_parts[2] -= slope

    for parts, (item, similar, other) in ((image_parts, image_points), (text_parts, text_points)):
        value, slope = _attract(item, similar)
        total += within * value
        parts[0] += within * slope
        parts[1] -= within * slope
        value, slope = _repel(item, other, margin, batch.differs)
        total += within * value
        parts[0] += within * slope
        parts[2] -= within * slope
    return total, image_slopes, text_slopes


def _attract(left: FloatArray, right: FloatArray) -> tuple[float, FloatArray]:
    """Return the mean of ½‖a − b‖² over the rows and its slope at a; that at b is the opposite."""
    apart = left - right
    return float((apart**2).sum()) / (2 * len(apart)), np.asarray(apart / len(apart))


def _repel(left: FloatArray, right: FloatArray, margin: float, counted: BoolArray) -> tuple[float, FloatArray]:
    """Return the mean of ½ max(0, margin − ‖a − b‖)² over the counted rows and its slope at a."""
    apart = left - right
    # Points in one place have no direction to part in: their slope is zero.
    distances = np.maximum(np.linalg.norm(apart, axis=1), _SMALLEST)
    missing = np.where(counted, np.maximum(margin - distances, 0), 0)
    n_counted = max(1, int(counted.sum()))
    slopes = -(missing / distances / n_counted)[:, None] * apart
    return float((missing**2).sum()) / (2 * n_counted), np.asarray(slopes)
