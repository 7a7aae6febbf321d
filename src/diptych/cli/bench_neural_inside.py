"""The method that ``bench neural`` looks into: its model to keep, its figures to draw."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from diptych import figures
from diptych.benchmark.neural import Illustration, NeuralData, NeuralReport, neural_methods
from diptych.cli.bench_neural_plots import draw_neural
from diptych.cli.files import check_folder, writing
from diptych.cli.stages import Stages
from diptych.errors import UnknownNameError


@dataclass(frozen=True)
class Inside:
    """Which method to look into, the best one measured where ``method`` is None, and what to make of it."""

    method: str | None
    plots: Path | None
    save: Path | None

    def check(self, asked: Collection[str] | None) -> None:
        """Raise before any work is done when the method will not be measured or nothing can be written."""
        known = asked or neural_methods(pixels=True)
        if self.method is not None and self.method not in known:
            raise UnknownNameError("method to look into", self.method, known)
        if self.plots is not None:
            figures.require_matplotlib()
            check_folder(self.plots)
        if self.save is not None:
            check_folder(self.save)

    def look(self, report: NeuralReport, data: NeuralData, stages: Stages) -> None:
        """Learn the method once more with seed 0, keep its model and draw its figures, as far as they are wanted."""
        if not report.results or (self.plots is None and self.save is None):
            return
        wanted = self.method if self.method in report.measured else report.best()
        chosen = report.methods[wanted]
        with stages.run(f"inside {report.task.name}", f"looking into {chosen.name}"):
            found = Illustration.of(report.task, data, chosen, epochs=report.epochs)
        if self.save is not None:
            place = self.save / f"{report.task.name}-{chosen.key}"
            with writing(place):
                found.model.save(place)
            stages.note(f"model: {place}")
        if self.plots is not None:
            stages.note(f"figures: {', '.join(map(str, draw_neural(report, found, self.plots)))}")
