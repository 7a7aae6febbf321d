"""How much a result depends on one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from diptych.data import DatasetSplits
from diptych.metrics import AP
from diptych.models import CrossModalModel
from diptych.protocols import evaluate_model
from diptych.space import DIRECTIONS, Direction


@dataclass(frozen=True)
class SensitivityCurve:
    """Test MAP at each value of a parameter: the mean and deviation of several random draws, for each direction."""

    entry: str
    parameter: str
    label: str
    values: tuple[float, ...]
    means: dict[Direction, tuple[float, ...]]
    deviations: dict[Direction, tuple[float, ...]]


@dataclass(frozen=True)
class Sensitivity:
    """A parameter to vary around the chosen setting of an entry, as in figures 5 and 6 of Menon et al. (2015).

    ``seed`` is the parameter that redraws whatever is random, ``draws`` times. Like the paper's, the curve is one of
    test scores; nothing is chosen by it.
    """

    entry: str
    parameter: str
    label: str
    values: Sequence[float]
    seed: str = "model__seed"
    draws: int = 5

    def measure(self, model: CrossModalModel, splits: DatasetSplits, n_jobs: int = 1) -> SensitivityCurve:
        """Fit a copy of ``model`` for every value and draw, and ask the test pairs."""
        settings = [{self.parameter: value, self.seed: draw} for value in self.values for draw in range(self.draws)]
        scores = Parallel(n_jobs=n_jobs)(
            delayed(_test_scores)(clone(model).set_params(**setting), splits) for setting in settings
        )
        table = np.array(scores).reshape(len(self.values), self.draws, len(DIRECTIONS))
        means, deviations = (
            {way: tuple(map(float, part[:, column])) for column, way in enumerate(DIRECTIONS)}
            for part in (table.mean(axis=1), table.std(axis=1))
        )
        return SensitivityCurve(self.entry, self.parameter, self.label, tuple(self.values), means, deviations)


def _test_scores(model: CrossModalModel, splits: DatasetSplits) -> list[float]:
    result = evaluate_model(model.fit(*splits.train.aligned()), splits.test)
    return [result[way].mean[AP()] for way in DIRECTIONS]
