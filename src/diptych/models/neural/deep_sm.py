"""Deep semantic matching."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from diptych.arrays import AnyArray, FloatArray, IntArray
from diptych.models.base import CrossModalModel, Grid, Need, check_choice, check_count, check_number
from diptych.models.labels import Targets
from diptych.models.neural._layers import Layers, StandardView, check_sizes, for_raw_rows, held_out_rows, run_layers
from diptych.models.neural._torch import Device, TorchAdam, Tower, choose_device, torch_package
from diptych.models.neural._training_loop import (
    CheckpointFile,
    EpochReport,
    Progress,
    TrainingLoop,
    timed_epoch,
    training_identity,
)

ClassLoss = Literal["cross_entropy", "squared"]


@dataclass(frozen=True)
class SoftmaxTraining:
    """Settings of a network with softmax outputs; `fit` trains one."""

    hidden: tuple[int, ...]
    loss: ClassLoss
    dropout: float
    learning_rate: float
    weight_decay: float
    epochs: int
    patience: int
    batch_size: int
    device: str
    checkpoint: CheckpointFile | None = None
    progress: Progress | None = None

    def fit(
        self, view: StandardView, wanted: FloatArray, train_rows: IntArray, held_out: IntArray, rng: np.random.Generator
    ) -> tuple[Layers, list[float]]:
        """Return (layers for centred rows, held-out loss after each epoch); ``wanted`` are rows of probabilities.

        Without rows held out, the losses are those of training and the last layers are kept, otherwise the best.
        """
        sizes = view.rows.shape[1], *self.hidden, wanted.shape[1]
        tower = Tower(sizes, dropout=self.dropout, rng=rng, device=self.device)
        descent = TorchAdam(tower.parameters, self.weight_decay)

        def train() -> float:
            return self._pass(tower, descent, view, wanted, rng.permutation(train_rows))

        def judge() -> tuple[float, float]:
            return -self._held_out_loss(tower, view, wanted, held_out), math.nan

        loop = TrainingLoop(self.epochs, self.patience, self.checkpoint, self.progress)
        epoch = timed_epoch(train, judge if len(held_out) else None, len(train_rows))
        reports = loop.run([tower], descent, epoch, EpochReport, rng)
        losses = [-report.judged if len(held_out) else report.loss for report in reports]
        return for_raw_rows(tower.layers(), view.deviation), losses

    def _pass(self, tower: Tower, descent: TorchAdam, view: StandardView, wanted: FloatArray, order: IntArray) -> float:
        total = 0.0
        for chosen in np.array_split(order, -(-len(order) // self.batch_size)):
            outputs = tower.outputs(view.standardized(chosen), training=True)
            loss = self._loss(outputs, tower.tensor(wanted[chosen].astype(np.float32)))
            descent.step(loss, self.learning_rate)
            total += loss.item() * len(chosen)
        return total / len(order)

    def _held_out_loss(self, tower: Tower, view: StandardView, wanted: FloatArray, rows: IntArray) -> float:
        with torch_package().no_grad():
            outputs = tower.outputs(view.standardized(rows))
            return float(self._loss(outputs, tower.tensor(wanted[rows].astype(np.float32))))

    def _loss(self, outputs: Any, wanted: Any) -> Any:
        if self.loss == "cross_entropy":
            return -(wanted * outputs.log_softmax(dim=1)).sum(dim=1).mean()
        return ((outputs.softmax(dim=1) - wanted) ** 2).sum(dim=1).mean()


class DeepSM(CrossModalModel):
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
    seed : int
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
    >>> model.encode_images(images[:3]).shape
    (3, 2)
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

    classes_: AnyArray
    image_mean_: FloatArray
    text_mean_: FloatArray
    image_layers_: Layers
    text_layers_: Layers
    image_losses_: FloatArray
    text_losses_: FloatArray

    _progress: Progress | None = None

    def __init__(
        self,
        *,
        image_hidden: tuple[int, ...] = (256,),
        text_hidden: tuple[int, ...] = (256,),
        loss: ClassLoss = "cross_entropy",
        dropout: float = 0.5,
        weight_decay: float = 5e-4,
        learning_rate: float = 1e-3,
        epochs: int = 60,
        patience: int = 10,
        batch_size: int = 128,
        validation: float = 0.1,
        temperature: float = 1.0,
        checkpoint: str | None = None,
        metric: str = "pearson",
        device: Device = "auto",
        seed: int = 0,
    ) -> None:
        self.image_hidden = image_hidden
        self.text_hidden = text_hidden
        self.loss = loss
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.validation = validation
        self.temperature = temperature
        self.checkpoint = checkpoint
        self.metric = metric
        self.device = device
        self.seed = seed

    def fit(
        self,
        images: ArrayLike,
        texts: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from aligned rows and return the model itself.

        ``labels`` are one class per row, or a 0/1 indicator matrix with one column per class. ``progress`` is called
        with an `EpochReport` after each epoch, first of the pictures' network, then of the texts'.
        """
        self._progress = progress
        try:
            return super().fit(images, texts, labels)
        finally:
            del self._progress

    def _fit(self, images: FloatArray, texts: FloatArray, targets: Targets | None) -> None:
        assert targets is not None, "the base class has checked that labels were given"
        self._check()
        views = {"image": StandardView.of(images, name="images"), "text": StandardView.of(texts, name="texts")}
        rng = np.random.default_rng(self.seed)
        known = targets.labelled
        train, held_out = held_out_rows(targets.indicator[known], self.validation, rng)
        device = choose_device(self.device)
        checkpoints = self._checkpoint_files(images, texts, targets)
        for side, view in views.items():
            training = self._training(side, device, checkpoints[side])
            layers, losses = training.fit(view, targets.distribution, known[train], known[held_out], rng)
            setattr(self, f"{side}_mean_", view.mean)
            setattr(self, f"{side}_layers_", layers)
            setattr(self, f"{side}_losses_", np.array(losses))
        self.classes_ = targets.classes

    def _checkpoint_files(
        self, images: FloatArray, texts: FloatArray, targets: Targets
    ) -> dict[str, CheckpointFile | None]:
        if self.checkpoint is None:
            return {"image": None, "text": None}
        identity = training_identity(self.get_params(deep=False), images, texts, targets.indicator)
        return {side: CheckpointFile.within(self.checkpoint, side, identity=identity) for side in ("image", "text")}

    def _training(self, side: str, device: str, checkpoint: CheckpointFile | None) -> SoftmaxTraining:
        return SoftmaxTraining(
            hidden=check_sizes(f"{side}_hidden", getattr(self, f"{side}_hidden")),
            loss=self.loss,
            dropout=self.dropout,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            epochs=self.epochs,
            patience=self.patience,
            batch_size=self.batch_size,
            device=device,
            checkpoint=checkpoint,
            progress=self._progress,
        )

    def _encode_images(self, images: FloatArray) -> FloatArray:
        return self._probabilities(run_layers(images, self.image_mean_, self.image_layers_, "relu"))

    def _encode_texts(self, texts: FloatArray) -> FloatArray:
        return self._probabilities(run_layers(texts, self.text_mean_, self.text_layers_, "relu"))

    def _probabilities(self, outputs: FloatArray) -> FloatArray:
        return np.asarray(softmax(outputs / np.asarray(self.temperature, dtype=outputs.dtype), axis=1))

    def _check(self) -> None:
        check_choice("loss", self.loss, ("cross_entropy", "squared"))
        for name in ("epochs", "patience", "batch_size"):
            check_count(name, getattr(self, name))
        check_number("dropout", self.dropout, low=0, high=0.99)
        check_number("weight_decay", self.weight_decay, low=0)
        check_number("validation", self.validation, low=0, high=0.9)
        for name in ("learning_rate", "temperature"):
            check_number(name, getattr(self, name), low=0, open_low=True)
