"""How a network learns the classes of one side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.models.neural.checkpoint_file import CheckpointFile
from diptych.models.neural.descent import Descent
from diptych.models.neural.layers import Layers, for_raw_rows
from diptych.models.neural.standard_view import StandardView
from diptych.models.neural.torch_package import torch_package
from diptych.models.neural.tower import Tower
from diptych.models.neural.training_loop import Progress, TrainingLoop

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
        descent = Descent(tower.parameters, self.weight_decay)

        def train() -> float:
            return self._pass(tower, descent, view, wanted, rng.permutation(train_rows))

        def judge() -> tuple[float, float]:
            return -self._held_out_loss(tower, view, wanted, held_out), math.nan

        loop = TrainingLoop(self.epochs, self.patience, self.checkpoint, self.progress)
        reports = loop.run(
            [tower], descent, rng, train=train, judge=judge if len(held_out) else None, n_items=len(train_rows)
        )
        losses = [-report.judged if len(held_out) else report.loss for report in reports]
        return for_raw_rows(tower.layers(), view.deviation), losses

    def _pass(self, tower: Tower, descent: Descent, view: StandardView, wanted: FloatArray, order: IntArray) -> float:
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
