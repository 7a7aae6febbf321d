"""What reports share: their numbers as JSON, and their figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.console.output import check_folder, check_writable_file, print_json, write_text, writing
from diptych.cli.console.progress import Stages

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def save_figures(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write figures under their file names, and return the files."""
    from diptych.figures import save_figure

    for name, figure in figures.items():
        with writing(folder / name):
            save_figure(figure, folder / name)
    return [folder / name for name in figures]
