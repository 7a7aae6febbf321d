"""What a retriever on a model of items is made of."""

from __future__ import annotations

import numpy as np

from diptych.encoders import Encoder
from diptych.models import CrossModalModel, SharedSpace
from diptych.retriever.calibration import Calibration
from diptych.retriever.towers.image_tower import ImageTower
from diptych.retriever.towers.text_tower import TextTower

_EVEN, _SLOPE, _CUTOFF = 0.5, 10.0, 0.1


def tower_parts(model: CrossModalModel, encoder: Encoder | None = None) -> tuple[ImageTower, TextTower, SharedSpace]:
    """Return both towers of a fitted model, each with its own half alone, and the space that their points share.

    ``encoder`` makes the features of pictures for a model that takes features.
    """
    image_tower, text_tower = ImageTower.of(model, encoder=encoder), TextTower.of(model)
    point = np.eye(1, text_tower.transform(["a picture"]).shape[1])
    return image_tower, text_tower, SharedSpace(metric=model.space.name).fit(point, point)


def assumed_calibration() -> Calibration:
    """Return what stands in until pairs or judgements say more: a score of a half is as likely right as wrong."""
    calibration = Calibration()
    calibration.slopes_ = np.full(4, _SLOPE)
    calibration.intercepts_ = np.full(4, -_SLOPE * _EVEN)
    calibration.cutoff_ = _CUTOFF
    return calibration
