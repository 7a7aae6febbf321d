"""Epoch after epoch: when to stop, what to keep, and how to go on after a crash."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.models.neural.checkpoint_file import CheckpointFile
from diptych.models.neural.descent import Descent
from diptych.models.neural.epoch_report import EpochReport
from diptych.models.neural.tower import Tower

Progress = Callable[[EpochReport], None]
Judge = Callable[[], tuple[float, float]]
"""Returns how good the towers are on the held-out part, the larger the better, and their recall there."""


@dataclass(frozen=True)
class TrainingLoop:
    """Trains until ``epochs`` are done, or ``patience`` of them have brought nothing on the held-out part.

    The best epoch is kept, the last where nothing is held out. With a checkpoint, everything that the next epoch
    depends on is written after each one, and `run` goes on from there: on the processor, to the same bits as a training
    that was never interrupted.
    """

    epochs: int
    patience: int
    checkpoint: CheckpointFile | None = None
    progress: Progress | None = None

    def run(
        self,
        towers: Sequence[Tower],
        descent: Descent,
        rng: np.random.Generator,
        *,
        train: Callable[[], float],
        judge: Judge | None,
        n_items: int,
    ) -> list[EpochReport]:
        """Train the towers and return a report of each epoch.

        ``train`` passes once over the ``n_items`` items and returns their mean loss; whatever it draws comes from
        ``rng`` or from the towers.
        """
        reports, best = self._taken_up(towers, descent, rng)
        while len(reports) < self.epochs and not self._is_over(reports):
            started = time.perf_counter()
            loss = train()
            seconds = time.perf_counter() - started
            judged, recall = judge() if judge else (math.nan, math.nan)
            reports.append(EpochReport(len(reports) + 1, loss, judged, recall, n_items / max(seconds, 1e-9)))
            if judge is None or judged >= max(report.judged for report in reports):
                best = [tower.state() for tower in towers]
            self._save(towers, descent, rng, reports, best)
            if self.progress:
                self.progress(reports[-1])
        for tower, state in zip(towers, best, strict=True):
            tower.restore(state)
        return reports

    def _is_over(self, reports: list[EpochReport]) -> bool:
        values = [report.judged for report in reports]
        if not values or math.isnan(values[-1]):
            return False
        return len(values) - 1 - int(np.argmax(values)) >= self.patience

    def _save(
        self,
        towers: Sequence[Tower],
        descent: Descent,
        rng: np.random.Generator,
        reports: list[EpochReport],
        best: list[dict[str, AnyArray]],
    ) -> None:
        if self.checkpoint is None:
            return
        parts = {"descent": descent.state()}
        parts |= {f"tower{number}": tower.state() for number, tower in enumerate(towers)}
        parts |= {f"best{number}": state for number, state in enumerate(best)}
        arrays = {f"{part}.{name}": values for part, state in parts.items() for name, values in state.items()}
        facts = {"reports": [_plain(report) for report in reports], "draws": rng.bit_generator.state}
        self.checkpoint.write(arrays, facts)

    def _taken_up(
        self, towers: Sequence[Tower], descent: Descent, rng: np.random.Generator
    ) -> tuple[list[EpochReport], list[dict[str, AnyArray]]]:
        found = self.checkpoint.read() if self.checkpoint else None
        if found is None:
            return [], [tower.state() for tower in towers]
        arrays, facts = found
        parts: dict[str, dict[str, AnyArray]] = {}
        for name, values in arrays.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = values
        descent.restore(parts["descent"])
        for number, tower in enumerate(towers):
            tower.restore(parts[f"tower{number}"])
        rng.bit_generator.state = facts["draws"]
        return [_report(values) for values in facts["reports"]], [parts[f"best{n}"] for n in range(len(towers))]


def _plain(report: EpochReport) -> dict[str, Any]:
    """Return the report as JSON can hold it, without NaN."""
    return {name: None if math.isnan(value) else value for name, value in asdict(report).items()}


def _report(values: dict[str, Any]) -> EpochReport:
    numbers: dict[str, Any] = {name: math.nan if value is None else value for name, value in values.items()}
    return EpochReport(**numbers)
