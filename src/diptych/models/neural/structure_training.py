"""How two branches learn to rank together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.arrays import AnyArray, IntArray
from diptych.metrics import AP, RecallAtK, evaluate
from diptych.models.neural.caption_batch import caption_batches
from diptych.models.neural.captioned_rows import CaptionedRows
from diptych.models.neural.descent import Descent
from diptych.models.neural.epoch_report import EpochReport
from diptych.models.neural.layers import Layers, for_raw_rows
from diptych.models.neural.standard_view import StandardView
from diptych.models.neural.structure_loss import StructureLoss
from diptych.models.neural.torch_package import torch_package
from diptych.models.neural.tower import Tower
from diptych.models.neural.training_loop import TrainingLoop
from diptych.space import DIRECTIONS, Space

_PRECISION, _RECALL = AP(), RecallAtK(10)


@dataclass(frozen=True)
class StructureTraining:
    """Settings of two branches with unit outputs; `fit` trains them."""

    hidden: tuple[tuple[int, ...], tuple[int, ...]]
    n_components: int
    loss: StructureLoss
    dropout: float
    learning_rate: float
    weight_decay: float
    batch_size: int
    texts_per_picture: int
    space: Space
    device: str

    def fit(
        self, rows: CaptionedRows, loop: TrainingLoop, rng: np.random.Generator
    ) -> tuple[tuple[Layers, Layers], list[EpochReport]]:
        """Return the layers of both sides for centred rows, and a report of each epoch."""
        image_tower, text_tower = towers = [
            self._tower(view, hidden, rng) for view, hidden in zip((rows.images, rows.texts), self.hidden, strict=True)
        ]
        descent = Descent([*image_tower.parameters, *text_tower.parameters], self.weight_decay)

        def train() -> float:
            return self._pass(image_tower, text_tower, descent, rows, rng)

        def judge() -> tuple[float, float]:
            return self._judged(image_tower, text_tower, rows)

        reports = loop.run(
            towers,
            descent,
            rng,
            train=train,
            judge=judge if len(rows.held_out) else None,
            n_items=len(rows.train),
        )
        of_images, of_texts = (
            for_raw_rows(tower.layers(), view.deviation)
            for tower, view in zip(towers, (rows.images, rows.texts), strict=True)
        )
        return (of_images, of_texts), reports

    def _tower(self, view: StandardView, hidden: tuple[int, ...], rng: np.random.Generator) -> Tower:
        sizes = view.rows.shape[1], *hidden, self.n_components
        return Tower(sizes, dropout=self.dropout, rng=rng, device=self.device, batch_norm=True)

    def _pass(
        self, image_tower: Tower, text_tower: Tower, descent: Descent, rows: CaptionedRows, rng: np.random.Generator
    ) -> float:
        losses = []
        for batch in caption_batches(
            rows.train, rows.numbers, rows.related, size=self.batch_size, per_picture=self.texts_per_picture, rng=rng
        ):
            images = _unit(image_tower.outputs(rows.images.standardized(batch.pictures), training=True))
            texts = _unit(text_tower.outputs(rows.texts.standardized(batch.texts), training=True))
            loss = self.loss.of(images, texts, batch)
            descent.step(loss, self.learning_rate)
            losses.append(loss.detach())
        # Reading the losses waits for the device: once an epoch, not at every step.
        return float(torch_package().stack(losses).mean())

    def _judged(self, image_tower: Tower, text_tower: Tower, rows: CaptionedRows) -> tuple[float, float]:
        """Return average precision and recall of the held-out part, means of both directions."""
        pictures, texts = rows.held_out_pictures, rows.held_out
        points = _points(image_tower, rows.images, pictures), _points(text_tower, rows.texts, texts)
        sides = {"image_query": (*points, pictures, texts), "text_query": (*points[::-1], texts, pictures)}
        results = []
        for direction in DIRECTIONS:
            queries, gallery, asking, searched = sides[direction]
            relevance = rows.relevance(asking, searched)
            measures = [_PRECISION, _RECALL]
            results.append(evaluate(queries, gallery, self.space, relevance, measures, direction=direction).mean)
        precision, recall = (float(np.mean([result[key] for result in results])) for key in (_PRECISION, _RECALL))
        return precision, recall


def _unit(values: Any) -> Any:
    return torch_package().nn.functional.normalize(values, dim=1)


def _points(tower: Tower, view: StandardView, chosen: IntArray) -> AnyArray:
    with torch_package().no_grad():
        return np.asarray(_unit(tower.outputs(view.standardized(chosen))).cpu().numpy())
