"""What one epoch of training came to."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from diptych.arrays import FloatArray

_OF_SPEED = ("pictures_per_second", "seconds")


@dataclass(frozen=True)
class EpochRecord:
    """Means over one epoch.

    ``draws`` is the mean number of negatives drawn until one violated the margin, over the anchors that found one, and
    ``violating`` the share that did; ``held_out`` is how well the held-out part is found (both ways' mean of recall at
    10, or of average precision with labels), NaN without one; ``norm`` the mean length of points.

    >>> from diptych.models.neural.mnil.epoch_record import EpochRecord
    >>> print(EpochRecord(1, 0.4, 0.2, 3.0, 0.9, float("nan"), 1.0, 100.0, 2.0))
    epoch 1: loss 0.4000, 100 pictures a second
    """

    epoch: int
    loss: float
    rate: float
    draws: float
    violating: float
    held_out: float
    norm: float
    pictures_per_second: float
    seconds: float

    def __str__(self) -> str:
        held_out = "" if math.isnan(self.held_out) else f"held out {self.held_out:.3f}, "
        return f"epoch {self.epoch}: loss {self.loss:.4f}, {held_out}{self.pictures_per_second:,.0f} pictures a second"

    @classmethod
    def table(cls, records: list[EpochRecord]) -> FloatArray:
        """Return one row of numbers for each epoch, under `names`."""
        rows = [[getattr(record, name) for name in cls.names()] for record in records]
        return np.array(rows, dtype=np.float64).reshape(len(records), len(cls.names()))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the columns of `table`: all but those of speed, which no two trainings share."""
        return tuple(field.name for field in fields(cls) if field.name not in _OF_SPEED)
