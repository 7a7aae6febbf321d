"""What the benchmarks share: their data on this machine, and a report as JSON, figures and tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console

from diptych.cli.console.output import check_folder, check_writable_file, print_json, results, write_text, writing
from diptych.cli.console.progress import Stages
from diptych.errors import MissingDataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from diptych.benchmark.runner import BenchmarkReport
    from diptych.benchmark.task import BenchmarkTask

TaskT = TypeVar("TaskT", bound="BenchmarkTask")
ReportT = TypeVar("ReportT", bound="BenchmarkReport")


def available_tasks(names: Sequence[str] | None, kind: str, tasks: Sequence[TaskT], stages: Stages) -> list[TaskT]:
    """Return the tasks that were asked for, or those whose data are on this machine; say what the others lack."""
    from diptych.benchmark.task import find_by_name

    if names:
        return [find_by_name(kind, name, tasks) for name in names]
    here = [task for task in tasks if task.data.is_available]
    if not here:
        raise MissingDataError(
            "none of the data sets of this benchmark is on this machine; "
            "`diptych datasets get wikipedia` fetches the smallest"
        )
    for task in (task for task in tasks if task not in here):
        needs = f"{', '.join(task.data.files)} in {task.data.expected_folder}"
        stages.note(f"not on this machine: {task.title}; needs {needs}, see `diptych datasets show {task.dataset}`")
    return here


def check_report_files(output: Path | None, plots: Path | None) -> None:
    """Raise before any work is done when the numbers or the figures could not be written in the end."""
    if output is not None:
        check_writable_file(output)
    if plots is not None:
        from diptych.figures import require_matplotlib

        require_matplotlib()
        check_folder(plots)


def write_report_files(
    stages: Stages,
    *,
    output: Path | None,
    document: Callable[[], Any],
    plots: Path | None = None,
    draw: Callable[[Path], Sequence[Path]] | None = None,
    as_json: bool = False,
) -> None:
    """Write what was asked for and say where; call it before printing, since the reader of a pipe may leave early."""
    if output is not None:
        write_text(output, json.dumps(_with_provenance(document()), indent=2) + "\n")
        stages.note(f"numbers: {output}")
    if plots is not None and draw is not None:
        stages.note(f"figures: {', '.join(map(str, draw(plots)))}")
    if as_json:
        print_json(document())


def _with_provenance(document: Any) -> Any:
    """Add when, by which versions and on which machine it was written to a document, or to each of several."""
    from diptych.benchmark.runner import provenance

    if isinstance(document, list):
        return [_with_provenance(one) for one in document]
    return {**document, "provenance": provenance()}


def finish_reports(
    reports: Sequence[ReportT],
    print_report: Callable[[ReportT, Console], None],
    stages: Stages,
    output: Path | None,
    plots: Path | None = None,
    draw: Callable[[Sequence[ReportT], Path], Sequence[Path]] | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Write the files of several reports, then print them with an empty line between, or as JSON."""
    write_report_files(
        stages,
        output=output,
        document=lambda: [report.as_json() for report in reports],
        plots=plots,
        draw=None if draw is None else lambda folder: draw(reports, folder),
        as_json=as_json,
    )
    if as_json:
        return
    console = results()
    for number, report in enumerate(reports):
        if number:
            console.print()
        print_report(report, console)


def save_figures(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write figures under their file names, and return the files."""
    from diptych.figures import save_figure

    for name, figure in figures.items():
        with writing(folder / name):
            save_figure(figure, folder / name)
    return [folder / name for name in figures]
