"""What one epoch of training came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from diptych.arrays import FloatArray


@dataclass(frozen=True)
class EpochReport:
    """The mean loss of an epoch, how the held-out part fares after it, and the speed.

    ``judged`` is what decides when to stop, the larger the better; ``recall`` the share of held-out queries that find a
    right answer among the first ten. Both are NaN where nothing was held out or measured.

    >>> from diptych.models.neural.epoch_report import EpochReport
    >>> EpochReport(epoch=1, loss=0.4, judged=0.2, recall=0.5, items_per_second=900.0).recall
    0.5
    """

    epoch: int
    loss: float
    judged: float
    recall: float
    items_per_second: float

    @staticmethod
    def table(reports: Sequence[EpochReport]) -> FloatArray:
        """Return one row (epoch, loss, judged, recall) for each epoch; no two trainings share their speed."""
        return np.array([astuple(report)[:-1] for report in reports], dtype=np.float64).reshape(len(reports), 4)
