"""Coupled siamese networks in NumPy: pairs to learn from, the passes, the loss, and the state of a training."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray
from diptych.models.neural._layers import Layers
from diptych.models.neural._training_loop import CheckpointFile
from diptych.models.optimisers import Adam
from diptych.models.related_rows import draw_of_groups, draw_until_right

_SMALLEST = 1e-6


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
