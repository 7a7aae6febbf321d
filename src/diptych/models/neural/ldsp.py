"""LDSP: two branches that keep the structure of texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from diptych.arrays import AnyArray, BoolArray, FloatArray, IntArray, unit_rows
from diptych.errors import InvalidInputError
from diptych.metrics import AP, RecallAtK, Relevance, SameLabel, SharedLabel, evaluate
from diptych.models.base import Grid, Need, Side
from diptych.models.labels import RelatedRows, Targets, picture_numbers
from diptych.models.neural._layers import StandardView, for_raw_rows, held_out_rows, run_layers
from diptych.models.neural._torch import Descent, Device, Tower, choose_device, torch_package
from diptych.models.neural._training_loop import EpochReport, ResumableModel, TrainingLoop, epoch_table, timed_epoch
from diptych.models.parameters import Count, DropoutShare, HeldOutShare, NonNegative, Positive
from diptych.space import DIRECTIONS


@dataclass(kw_only=True, eq=False, repr=False)
class LDSP(ResumableModel):
    """Deep structure-preserving embeddings: a network on each side, hinges both ways, texts of one picture together.

    Each branch is a dense layer, batch normalisation, rectified units, dropout, a dense layer and scaling to unit
    length. With d the Euclidean distance and every y⁺ a right answer, y⁻ a wrong one,

        min  Σ [m + d(x, y⁺) − d(x, y⁻)]₊ + λ₁ Σ [m + d(x⁺, y) − d(x⁻, y)]₊
             + λ₂ Σ [m + d(x, x⁺) − d(x, x⁻)]₊ + λ₃ Σ [m + d(y, y⁺) − d(y, y⁻)]₊,

    where only the largest violations of each anchor in the batch count. Texts of the same picture are right answers to
    it and to each other: equal rows of images are one picture, also where it comes twice into a batch. With labels, all
    that share one are right answers.

    Training is Adam's, on features of zero mean and unit variance, and stops when average precision on a held-out part
    has not risen for ``patience`` epochs; the best epoch is kept. It needs PyTorch (``pip install 'diptych[deep]'``),
    encoding does not.

    Sizes, margin and rates are those of the authors' later code where a parameter says so, else ours; those of the
    paper could not be verified.

    Parameters
    ----------
    n_components : int
        Dimensions of the common space; 512 in the authors' code.
    image_hidden, text_hidden : tuple of int
        Widths of the hidden layers; (2048,) in the authors' code.
    margin : float
        m above; 0.05 in the authors' code.
    n_violators : int
        Wrong answers of an anchor that count; 10 in the authors' code.
    text_query, image_structure, text_structure : float
        λ₁, λ₂ and λ₃ above; 1.5, none and 0.05 in the authors' code. Pictures have a structure to keep with
        labels only.
    relevance : {"auto", "pairs", "labels"}
        Whether right answers are those of the same picture or of the same label; ``auto`` goes by labels when they are
        given.
    texts_per_picture : int
        Texts that a picture meets in a batch, where it has so many.
    dropout : float
        Share of hidden units left out in each step; 0.5 in the authors' code.
    learning_rate, weight_decay : float
        Of Adam; the authors' code has a rate of 1e-4 for its larger networks.
    epochs, patience : int
        Most passes over the texts, and how many may bring nothing before training stops.
    batch_size : int
        Texts that lead in a batch, each with its picture and further texts of it; 500 in the authors' code.
    validation : float
        Share of the pictures that is held out, with their texts; fewer than 5 are not worth it, more than 1000 neither.
    checkpoint : str or None
        Folder for the state of training after each epoch: the same call goes on after a crash. It is refused where it
        holds that of other data or parameters; ``epochs`` and ``patience`` may change.
    metric : str
        Name of the `Space`.
    device : {"auto", "cpu", "cuda"}
        Where to train. On the processor the same seed gives the same networks, interrupted or not.
    random_state : int
        Of the held-out rows, the start, the batches and dropout.

    Attributes
    ----------
    history_ : array
        One row for each epoch, with the columns ``history_columns_``; NaN where nothing was held out.

    References
    ----------
    Wang, Li and Lazebnik, "Learning deep structure-preserving image-text embeddings", CVPR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import LDSP
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(100, 4))
    >>> images = np.repeat(meaning @ rng.normal(size=(4, 10)), 2, axis=0)
    >>> texts = np.repeat(meaning, 2, axis=0) @ rng.normal(size=(4, 6)) + 0.1 * rng.normal(size=(200, 6))
    >>> model = LDSP(n_components=16, image_hidden=(64,), text_hidden=(64,), batch_size=50, epochs=5).fit(images, texts)
    >>> model.history_columns_
    ('epoch', 'loss', 'average_precision', 'recall@10')
    >>> bool(model.history_[-1, 3] > model.history_[0, 3] / 2)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pairs"})
    grid: ClassVar[Grid] = {"dropout": [0.2, 0.5]}
    when_to_use: ClassVar[str] = (
        "Thousands of pictures with several texts each, and more than linear maps can tell; trains on PyTorch."
    )

    n_components: Count = 256
    image_hidden: tuple[Count, ...] = (512,)
    text_hidden: tuple[Count, ...] = (512,)
    margin: Positive = 0.05
    n_violators: Count = 10
    text_query: NonNegative = 1.5
    image_structure: NonNegative = 0.0
    text_structure: NonNegative = 0.05
    relevance: Literal["auto", "pairs", "labels"] = "auto"
    texts_per_picture: Count = 2
    dropout: DropoutShare = 0.5
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 0.0
    epochs: Count = 30
    patience: Count = 5
    batch_size: Count = 500
    validation: HeldOutShare = 0.1
    checkpoint: str | None = None
    metric: str = "cosine"
    device: Device = "auto"
    random_state: int = 0

    def _targets(self, labels: ArrayLike | None, n_rows: int) -> Targets | None:
        if self.relevance == "labels" and labels is None:
            raise InvalidInputError("relevance is 'labels', but there are none: call fit(images, texts, labels)")
        return None if labels is None or self.relevance == "pairs" else Targets.from_labels(labels, n_rows)

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        hidden = self.image_hidden, self.text_hidden
        rng = np.random.default_rng(self.random_state)
        indicator = None if targets is None else targets.indicator
        rows = CaptionedRows.of(images, texts, indicator, validation=self.validation, rng=rng)
        options = {"dropout": self.dropout, "device": choose_device(self.device), "batch_norm": True}
        image_tower, text_tower = towers = [
            Tower.drawn((view.rows.shape[1], *sizes, self.n_components), rng, **options)
            for view, sizes in zip((rows.images, rows.texts), hidden, strict=True)
        ]
        descent = Descent([*image_tower.parameters, *text_tower.parameters], self.weight_decay)

        train = partial(self._pass, image_tower, text_tower, descent, rows, rng)
        judge = partial(self._judged, image_tower, text_tower, rows) if len(rows.held_out) else None
        file = self._checkpoint_file("ldsp", images, texts, indicator)
        loop = TrainingLoop(self.epochs, self.patience, file, self._progress)
        epoch = timed_epoch(train, judge, len(rows.train))
        reports = loop.run(towers, [descent], epoch, EpochReport, rng)
        self.image_layers_ = for_raw_rows(image_tower.layers(), rows.images.deviation)
        self.text_layers_ = for_raw_rows(text_tower.layers(), rows.texts.deviation)
        self.image_mean_, self.text_mean_ = rows.images.mean, rows.texts.mean
        self.history_ = epoch_table(reports, ("epoch", "loss", "judged", "recall"))
        self.history_columns_ = ("epoch", "loss", "average_precision", "recall@10")

    def _pass(
        self, image_tower: Tower, text_tower: Tower, descent: Descent, rows: CaptionedRows, rng: np.random.Generator
    ) -> float:
        objective = StructureLoss(
            self.margin, self.n_violators, self.text_query, self.image_structure, self.text_structure
        )
        losses = []
        for batch in caption_batches(
            rows.train, rows.numbers, rows.related, size=self.batch_size, per_picture=self.texts_per_picture, rng=rng
        ):
            images = _unit(image_tower.outputs(rows.images.standardized(batch.pictures), training=True))
            texts = _unit(text_tower.outputs(rows.texts.standardized(batch.texts), training=True))
            loss = objective.of(images, texts, batch)
            descent.step(loss, self.learning_rate)
            losses.append(loss.detach())
        # Reading the losses waits for the device: once an epoch, not at every step.
        return float(torch_package().stack(losses).mean())

    def _judged(self, image_tower: Tower, text_tower: Tower, rows: CaptionedRows) -> tuple[float, float]:
        """Return average precision and recall of the held-out part, means of both directions."""
        pictures, texts = rows.held_out_pictures, rows.held_out
        points = _points(image_tower, rows.images, pictures), _points(text_tower, rows.texts, texts)
        sides = {"image_query": (*points, pictures, texts), "text_query": (*points[::-1], texts, pictures)}
        measures, results = (AP(), RecallAtK(10)), []
        for direction in DIRECTIONS:
            queries, gallery, asking, searched = sides[direction]
            relevance = rows.relevance(asking, searched)
            results.append(evaluate(queries, gallery, self.space, relevance, measures, direction=direction).mean)
        precision, recall = (float(np.mean([result[measure] for result in results])) for measure in measures)
        return precision, recall

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        return unit_rows(run_layers(rows, *self._of_side(side, "mean", "layers"), activation="relu"))


def _unit(values: Any) -> Any:
    return torch_package().nn.functional.normalize(values, dim=1)


def _points(tower: Tower, view: StandardView, chosen: IntArray) -> AnyArray:
    with torch_package().no_grad():
        return np.asarray(_unit(tower.outputs(view.standardized(chosen))).cpu().numpy())


_SMALLEST = 1e-4
_MOST_HELD_OUT = 1000


@dataclass(frozen=True, eq=False)
class CaptionBatch:
    """Rows whose texts are in a batch, and one row for each picture in it."""

    texts: IntArray
    pictures: IntArray
    answers: IntArray  # place of the picture each text should find: its own, or with labels one that shares a label
    related: BoolArray  # which pictures are no wrong answers to a text
    text_related: BoolArray
    picture_related: BoolArray

    @classmethod
    def of(cls, rows: IntArray, numbers: IntArray, related: RelatedRows, rng: np.random.Generator) -> CaptionBatch:
        """Make a batch of these rows; ``numbers`` are the pictures of all rows."""
        texts = np.unique(rows)
        _, first = np.unique(numbers[texts], return_index=True)
        pictures = texts[first]
        between = related.matrix(texts, pictures)
        # The largest of random numbers, one for each right answer, is each of them with the same chance.
        answers = np.where(between, rng.random(between.shape), -1.0).argmax(axis=1)
        return cls(texts, pictures, answers, between, related.matrix(texts, texts), related.matrix(pictures, pictures))


def caption_batches(
    rows: IntArray, numbers: IntArray, related: RelatedRows, *, size: int, per_picture: int, rng: np.random.Generator
) -> Iterator[CaptionBatch]:
    """Yield batches that lead every row once: ``size`` texts, each with its picture and ``per_picture`` − 1 others.

    Two texts of one picture may lead in the same batch; none of its texts counts as wrong there.
    """
    shuffled = rng.permutation(rows)
    # The texts of each picture in random order, one picture after the other: a text's followers are a random choice.
    grouped = shuffled[np.argsort(numbers[shuffled], kind="stable")]
    counts = np.bincount(numbers[grouped], minlength=int(numbers.max()) + 1)
    starts = np.cumsum(counts) - counts
    places = np.zeros(len(numbers), dtype=np.intp)
    places[grouped] = np.arange(len(grouped)) - starts[numbers[grouped]]
    for leading in np.array_split(rng.permutation(rows), -(-len(rows) // size)):
        pictures = numbers[leading]
        steps = np.minimum(np.arange(per_picture), counts[pictures][:, None] - 1)
        members = starts[pictures][:, None] + (places[leading][:, None] + steps) % counts[pictures][:, None]
        yield CaptionBatch.of(grouped[members].reshape(-1), numbers, related, rng)


@dataclass(frozen=True)
class StructureLoss:
    """Hinges on distances between unit points, over the largest violations of a batch.

    Of all wrong answers y⁻ to an anchor the ``n_violators`` with the largest [m + d(anchor, right) − d(anchor, y⁻)]₊
    count, zeros included. Texts search pictures with weight ``text_query``, pictures search texts with weight 1. Within
    a side, an anchor's farthest relative must be nearer than what is not related to it.
    """

    margin: float
    n_violators: int
    text_query: float
    image_structure: float
    text_structure: float

    def of(self, images: Any, texts: Any, batch: CaptionBatch) -> Any:
        """Return the loss of unit points, which come in the order of ``batch.pictures`` and ``batch.texts``."""
        torch = torch_package()
        answers, related, text_related, picture_related = (
            torch.from_numpy(values).to(images.device)
            for values in (batch.answers, batch.related, batch.text_related, batch.picture_related)
        )
        between = distances(texts, images)
        right = between.gather(1, answers[:, None])
        loss = self.text_query * self._violations(right, between, related).mean()
        loss = loss + self._violations(right, between[:, answers].T, related[:, answers].T).mean()
        if self.text_structure:
            loss = loss + self.text_structure * self._structure(distances(texts, texts), text_related)
        if self.image_structure:
            loss = loss + self.image_structure * self._structure(distances(images, images), picture_related)
        return loss

    def _structure(self, apart: Any, related: Any) -> Any:
        others = related.clone().fill_diagonal_(fill_value=False)
        farthest = apart.masked_fill(~others, 0).amax(dim=1, keepdim=True)
        counted = others.any(dim=1)
        return (self._violations(farthest, apart, related) * counted).sum() / counted.sum().clamp(min=1)

    def _violations(self, right: Any, apart: Any, related: Any) -> Any:
        """Return for each row the mean of its largest violations."""
        hinges = (self.margin + right - apart).relu().masked_fill(related, 0)
        return hinges.topk(min(self.n_violators, hinges.shape[1]), dim=1).values.mean(dim=1)


def distances(left: Any, right: Any) -> Any:
    """Return the Euclidean distances of unit points; the root stays clear of zero, where its slope is infinite."""
    return ((2 - 2 * left @ right.T).clamp(min=0) + _SMALLEST).sqrt()


@dataclass(frozen=True, eq=False)
class CaptionedRows:
    """Aligned rows, the number of each row's picture, which rows are related, and which are held out.

    A picture is held out with all its texts or not at all. With labels, only rows that have one are used.
    """

    images: StandardView
    texts: StandardView
    numbers: IntArray
    related: RelatedRows
    indicator: FloatArray | None
    train: IntArray
    held_out: IntArray

    @classmethod
    def of(
        cls,
        images: FloatArray,
        texts: FloatArray,
        indicator: FloatArray | None,
        *,
        validation: float,
        rng: np.random.Generator,
    ) -> CaptionedRows:
        """Measure both sides, find the pictures, and hold out a share of them."""
        views = StandardView.of(images, name="images"), StandardView.of(texts, name="texts")
        numbers = picture_numbers(images)
        related = RelatedRows.of_numbers(numbers) if indicator is None else RelatedRows.of_marks(indicator)
        known = related.known
        pictures, first = np.unique(numbers[known], return_index=True)
        marks = np.ones((len(pictures), 1)) if indicator is None else indicator[known[first]]
        _, chosen = held_out_rows(marks, min(validation, _MOST_HELD_OUT / len(pictures)), rng)
        out = np.isin(numbers[known], pictures[chosen])
        return cls(*views, numbers, related, indicator, known[~out], known[out])

    @property
    def held_out_pictures(self) -> IntArray:
        """One row for each picture that is held out."""
        _, first = np.unique(self.numbers[self.held_out], return_index=True)
        return np.asarray(self.held_out[first])

    def relevance(self, queries: IntArray, gallery: IntArray) -> Relevance:
        """Return which rows of ``gallery`` are right answers to ``queries``."""
        marks: AnyArray = self.numbers if self.indicator is None else self.indicator
        kind = SameLabel if self.indicator is None else SharedLabel
        return kind(marks[queries], marks[gallery])
