"""The figures that ``queries`` draws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych import figures
from diptych.cli.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_queries(report: dict[str, Any], folder: Path, file_format: str) -> list[Path]:
    """Draw figures 2 and 9 of Dong et al. (2018) for a log, the latter also by length, and return the files."""
    drawn = {
        "visual-shares": _shares(report["thresholds"]),
        "visualness-groups": _groups(report["by_visualness"], "visualness"),
        "length-groups": _groups(report["by_length"], "length"),
    }
    files = []
    for name, figure in drawn.items():
        path = folder / f"{name}.{file_format}"
        with writing(path):
            figures.save_figure(figure, path)
        files.append(path)
    return files


def _shares(rows: list[dict[str, Any]]) -> Figure:
    weighted = [row["share_of_clicks"] for row in rows]
    return figures.visual_shares(
        [row["threshold"] for row in rows],
        [row["share_of_queries"] for row in rows],
        # Without a single click there is nothing to weight with.
        None if None in weighted else weighted,
        title="Visual queries",
    )


def _groups(groups: list[dict[str, Any]], label: str) -> Figure:
    knows_searches = "searches" in groups[0]
    key, score = (
        ("answered_share", "share of searches with a click")
        if knows_searches
        else ("clicks_per_query", "clicks per query")
    )
    values = [float("nan") if group[key] is None else group[key] for group in groups]
    return figures.query_group_bars(
        [group["group"] for group in groups],
        {score: values},
        counts=[group["queries"] for group in groups],
        label=label,
        score=score,
        title=f"Success by {label}",
    )
