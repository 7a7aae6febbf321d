"""Settings of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diptych.models.neural.mnil.optimiser import OptimiserName

Schedule = Literal["cosine", "constant"]
SCHEDULES: tuple[Schedule, ...] = ("cosine", "constant")


@dataclass(frozen=True)
class TrainingSettings:
    """How long, how fast and in what portions."""

    optimiser: OptimiserName
    learning_rate: float
    map_factor: float
    image_factor: float
    momentum: float
    weight_decay: float
    schedule: Schedule
    epochs: int
    patience: int | None
    pictures_per_batch: int
    texts_per_picture: int
    accumulate: int
    margin: int
    flip: bool
    train_image: bool
    seed: int
