"""How ``diptych bench neural`` prints what it found."""

from __future__ import annotations

from rich.console import Console

from diptych.benchmark.neural import NeuralMethod, NeuralReport
from diptych.benchmark.neural.neural_task import LABELLED
from diptych.cli.terminal import table
from diptych.figures.style import NAMES
from diptych.space import DIRECTIONS, Direction

_NOTHING = "–"
_DENOMINATORS = (
    "MAP@50 (retrieved) divides by the relevant items among the first 50, as the authors' evaluator does; MAP@50 "
    "(total) by all relevant items. Over the full ranking, MAP, both are the same. Ties count by expectation."
)


def print_neural(report: NeuralReport, console: Console) -> None:
    """Print a table for each direction, ours beside the paper's, and what was left out."""
    seeds = max((len(report.select(key)) for key in report.measured), default=0)
    spread = f"; mean ± standard deviation of {seeds} seeds" if seeds > 1 else "; one seed"
    epochs = "" if report.epochs is None else f"; {report.epochs} epochs where a method has them"
    console.print(f"{report.task.title}{spread if seeds else ''}{epochs}", style="bold")
    for way in DIRECTIONS:
        console.print(f"\n{NAMES[way].capitalize()}\n", style="bold")
        _print_direction(report, way, console)
    console.print()
    where = "the same data, other features" if report.task.same_data else "other data: only the order compares"
    table_name = report.task.published_table.lower()
    console.print(f"paper: Zhang et al. (2017), {table_name}, {report.task.published_data}, {where}. – not measured.")
    if report.task.measures == LABELLED:
        console.print(_DENOMINATORS)
    for note in report.task.notes:
        console.print(note)
    for key, reason in report.left_out.items():
        name = report.methods[key].name
        told = f"left out: {name}, which {reason}" if reason.startswith(("learns", "reads")) else f"{name}: {reason}"
        console.print(told)


def _print_direction(report: NeuralReport, way: Direction, console: Console) -> None:
    labels = [measure.label for measure in report.task.measures]
    printed = [label for label in labels if any(report.published(m, label, way) is not None for m in report.shown)]
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    for label in labels:
        listing.add_column(label.replace(" ", "\n"), justify="right", no_wrap=True)
    for label in printed:
        listing.add_column(f"paper\n{label.partition(' ')[0]}", justify="right", no_wrap=True)
    listing.add_column("fit, s", justify="right", no_wrap=True)
    in_table = True
    for method in report.shown:
        if in_table and not method.published:
            listing.add_section()
            in_table = False
        listing.add_row(method.name, *_cells(report, method, labels, printed, way))
    if report.results:
        chances = [f"{report.chance(label, way):.4f}" for label in labels]
        listing.add_section()
        listing.add_row("chance", *chances, *([""] * (len(printed) + 1)))
    console.print(listing)


def _cells(
    report: NeuralReport, method: NeuralMethod, labels: list[str], printed: list[str], way: Direction
) -> list[str]:
    results = report.select(method.key)
    ours = [_score(report.score(method.key, label, way), len(results)) for label in labels]
    theirs = [_value(report.published(method, label, way)) for label in printed]
    seconds = f"{sum(result.fit_seconds for result in results) / len(results):.1f}" if results else _NOTHING
    return [*ours, *theirs, seconds]


def _score(score: tuple[float, float] | None, seeds: int) -> str:
    if score is None:
        return _NOTHING
    return f"{score[0]:.4f} ± {score[1]:.4f}" if seeds > 1 else f"{score[0]:.4f}"


def _value(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.4f}"
