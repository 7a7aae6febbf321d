"""The figures that ``evaluate`` draws."""

from __future__ import annotations

from pathlib import Path

from diptych import figures
from diptych.cli.experiment import Outcome
from diptych.cli.files import writing
from diptych.models import method_name
from diptych.space import DIRECTIONS


def draw_plots(outcome: Outcome, folder: Path, file_format: str) -> list[Path]:
    """Draw every figure the outcome allows into ``folder`` and return the files."""
    title = f"{method_name(type(outcome.scaled.model))} on {outcome.splits.name}"
    evaluation, chance = outcome.evaluation, outcome.chance
    drawn = {
        "precision-recall-11-point": figures.precision_recall(evaluation, chance, title=title),
        "precision-recall": figures.precision_recall(evaluation, chance, title=title, interpolated=False),
        "cmc": figures.cmc(evaluation, chance, title=title),
    }
    if outcome.codes is not None:
        drawn["radius"] = figures.radius_precision_recall(outcome.codes.lookups, title=title)
    if outcome.categories:
        values, levels = (
            {
                way: {category.name: getattr(category, kind)[way] for category in outcome.categories}
                for way in DIRECTIONS
            }
            for kind in ("value", "chance")
        )
        drawn["categories"] = figures.category_bars(values, levels, title=title)
    if outcome.confusion is not None:
        drawn["confusion"] = figures.confusion(outcome.confusion, title=title)
    files = []
    for name, figure in drawn.items():
        path = folder / f"{name}.{file_format}"
        with writing(path):
            figures.save_figure(figure, path)
        files.append(path)
    return files
