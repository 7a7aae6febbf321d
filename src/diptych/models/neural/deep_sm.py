"""Semantic matching and the trivial solution with networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy

from diptych.arrays import FloatArray, IntArray
from diptych.models.base import CrossModalModel, Grid, Need, Side
from diptych.models.labels import Targets
from diptych.models.neural._layers import Layers, StandardView, for_raw_rows, held_out_rows, run_layers
from diptych.models.neural._torch import Descent, Device, Tower, choose_device, torch_package
from diptych.models.neural._training_loop import CheckpointFile, EpochReport, ResumableModel, TrainingLoop, timed_epoch
from diptych.models.pairwise.ts import TS
from diptych.models.parameters import Count, DropoutShare, HeldOutShare, NonNegative, Positive

ClassLoss = Literal["cross_entropy", "squared"]


@dataclass(kw_only=True, eq=False, repr=False)
class DeepSM(ResumableModel):
    """Deep semantic matching: semantic matching with a network on each side in place of the linear classifier.

        π(x) = softmax(f(x)),   min over f of  −(1/n) Σᵢ Σⱼ yᵢⱼ log π(xᵢ)ⱼ

    f has dense layers with rectified units and dropout between them. It works on features: those of a pretrained
    network for pictures stand for the layers that the paper fine-tunes on each data set. Points are probabilities of
    the classes, compared as in :class:`SM`. Rows with several labels share their unit of probability evenly.

    Training is Adam's on features of zero mean and unit variance, and stops when the loss on a held-out part has not
    fallen for ``patience`` epochs; the best network is kept. It needs PyTorch (``pip install 'diptych[deep]'``),
    encoding does not.

    Parameters
    ----------
    image_hidden, text_hidden : tuple of int
        Widths of the hidden layers. Those of the paper's text network could not be verified, these are ours.
    loss : {"cross_entropy", "squared"}
        Between the probabilities and the labels, which sum to one; the squared loss is for comparison.
    dropout : float
        Share of hidden units left out in each step.
    weight_decay : float
        Share by which weights are drawn to zero, times the learning rate, in each step.
    learning_rate : float
        Of Adam.
    epochs, patience : int
        Most passes over the rows, and how many may bring nothing before training stops.
    batch_size : int
        Rows in a step.
    validation : float
        Share of the rows that is held out; fewer than 5 are not worth it, more than 2000 neither.
    temperature : float
        Divides the outputs before the softmax when encoding. Above 1 it softens sure answers, which leaves more to
        compare when the classes searched are not those learned; ours, not the paper's.
    checkpoint : str or None
        Folder for the state of training after each epoch: the same call goes on after a crash. It is refused where it
        holds that of other data or parameters; ``epochs`` and ``patience`` may change.
    metric : str
        Name of the `Space`.
    device : {"auto", "cpu", "cuda"}
        Where to train. On the processor the same seed gives the same network, interrupted or not.
    random_state : int
        Of the held-out rows, the start, the batches and dropout.

    Attributes
    ----------
    classes_ : array
        The classes, one coordinate each.
    image_losses_, text_losses_ : array
        Held-out loss after each epoch; that of training where nothing was held out.

    References
    ----------
    Wei et al., "Cross-modal retrieval with CNN visual features: a new baseline", IEEE Transactions on Cybernetics 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import DeepSM
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["bird", "boat"], 50)
    >>> images = rng.normal(size=(100, 6)) + 2 * (labels == "boat")[:, None]
    >>> texts = rng.normal(size=(100, 4)) - 2 * (labels == "boat")[:, None]
    >>> model = DeepSM(epochs=20).fit(images, texts, labels)
    >>> bool(model.score(images, texts, labels) > 0.9)
    True
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"labels"})
    when_to_use: ClassVar[str] = (
        "Thousands of labelled items whose classes no linear classifier separates; trains on PyTorch."
    )
    title: ClassVar[str] = "deep-SM"
    grid: ClassVar[Grid] = {"dropout": [0.2, 0.5]}
    command_name: ClassVar[str] = "deep-sm"

    image_hidden: tuple[Count, ...] = (256,)
    text_hidden: tuple[Count, ...] = (256,)
    loss: ClassLoss = "cross_entropy"
    dropout: DropoutShare = 0.5
    weight_decay: NonNegative = 5e-4
    learning_rate: Positive = 1e-3
    epochs: Count = 60
    patience: Count = 10
    batch_size: Count = 128
    validation: HeldOutShare = 0.1
    temperature: Positive = 1.0
    checkpoint: str | None = None
    metric: str = "pearson"
    device: Device = "auto"
    random_state: int = 0

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets) -> None:
        views = {"image": StandardView.of(images, name="images"), "text": StandardView.of(texts, name="texts")}
        rng = np.random.default_rng(self.random_state)
        known = targets.labelled
        train, held_out = held_out_rows(targets.indicator[known], self.validation, rng)
        for side, view in views.items():
            file = self._checkpoint_file(side, images, texts, targets.indicator)
            layers, losses = self._train(side, view, targets.distribution, (known[train], known[held_out]), file, rng)
            setattr(self, f"{side}_mean_", view.mean)
            setattr(self, f"{side}_layers_", layers)
            setattr(self, f"{side}_losses_", np.array(losses))
        self.classes_ = targets.classes

    def _train(
        self,
        side: str,
        view: StandardView,
        wanted: FloatArray,
        parts: tuple[IntArray, IntArray],
        file: CheckpointFile | None,
        rng: np.random.Generator,
    ) -> tuple[Layers, list[float]]:
        """Return (layers for centred rows, loss of each epoch); ``parts`` are rows to train on and rows held out."""
        rows, held_out = parts
        sizes = view.rows.shape[1], *getattr(self, f"{side}_hidden"), wanted.shape[1]
        tower = Tower.drawn(sizes, rng, dropout=self.dropout, device=choose_device(self.device))
        descent = Descent(tower.parameters, self.weight_decay)

        def loss(chosen: IntArray, *, training: bool) -> Any:
            outputs = tower.outputs(view.standardized(chosen), training=training)
            return self._loss(outputs, tower.tensor(wanted[chosen].astype(np.float32)))

        def train() -> float:
            total = 0.0
            for chosen in np.array_split(rng.permutation(rows), -(-len(rows) // self.batch_size)):
                value = loss(chosen, training=True)
                descent.step(value, self.learning_rate)
                total += value.item() * len(chosen)
            return total / len(rows)

        def judge() -> tuple[float, float]:
            with torch_package().no_grad():
                return -float(loss(held_out, training=False)), math.nan

        loop = TrainingLoop(self.epochs, self.patience, file, self._progress)
        epoch = timed_epoch(train, judge if len(held_out) else None, len(rows))
        reports = loop.run([tower], [descent], epoch, EpochReport, rng)
        losses = [-report.judged if len(held_out) else report.loss for report in reports]
        return for_raw_rows(tower.layers(), view.deviation), losses

    def _loss(self, outputs: Any, wanted: Any) -> Any:
        if self.loss == "cross_entropy":
            return -(wanted * outputs.log_softmax(dim=1)).sum(dim=1).mean()
        return ((outputs.softmax(dim=1) - wanted) ** 2).sum(dim=1).mean()

    def _encode_side(self, side: Side, rows: FloatArray) -> FloatArray:
        outputs = run_layers(rows, *self._of_side(side, "mean", "layers"), activation="relu")
        return np.asarray(scipy.special.softmax(outputs / np.asarray(self.temperature, dtype=outputs.dtype), axis=1))


@dataclass(kw_only=True, eq=False, repr=False)
class DeepTS(TS):
    """The trivial solution on networks: items are found by the class that :class:`DeepSM` predicts for them.

    Like :class:`TS`, each item is a code of ⌈log₂K⌉ bits, its most probable class. Liu et al. (deep-TS) use it to show
    that a better classifier alone moves a table of seen classes, and that the same table says little about classes
    never seen.

    Parameters
    ----------
    classifier : CrossModalModel or None
        The method whose points are the probabilities of the classes; None is ``DeepSM()``.
    rest : {"tied", "by_prob"}
        What follows the predicted class, as in :class:`TS`.

    Examples
    --------
    >>> import numpy as np
    >>> from diptych.models import DeepSM, DeepTS
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["bird", "boat"], 50)
    >>> images = rng.normal(size=(100, 6)) + 2 * (labels == "boat")[:, None]
    >>> texts = rng.normal(size=(100, 4)) - 2 * (labels == "boat")[:, None]
    >>> model = DeepTS(classifier=DeepSM(epochs=20)).fit(images, texts, labels)
    >>> np.unique(model.similarity(images, texts))
    array([0., 1.])
    """

    when_to_use: ClassVar[str] = "As the bar for deep methods on classes seen in training; trains on PyTorch."
    title: ClassVar[str] = "deep-TS"
    grid: ClassVar[Grid] = {"classifier": [DeepSM(dropout=0.2), DeepSM(dropout=0.5)]}
    command_name: ClassVar[str] = "deep-ts"

    def _default_classifier(self) -> CrossModalModel:
        return DeepSM()
