"""Every number the papers print, so that a reproduced table can show it beside ours."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from diptych.errors import InvalidInputError
from diptych.space import DIRECTIONS, Direction

# What papers call our measures. MAP@50 of Zhang et al. divides by the relevant items among the first 50.
MEASURE_KEYS = {
    "MAP": "AP()",
    "MAP@all": "AP()",
    "MAP@50": "MAP@50 (retrieved)",
    "Recall@1": "R@1",
    "Recall@5": "R@5",
    "Recall@10": "R@10",
}
# The measures of Table IV of Costa Pereira et al. (2014), with the names that paper prints.
DISTANCES = {"l1": "l1", "euclidean": "l2", "kl": "KL", "cosine": "NC", "pearson": "NCc"}


@cache
def published_rows() -> tuple[dict[str, str], ...]:
    """Return the lines of ``published.csv``, each by the names of its columns."""
    text = files("diptych.benchmark").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def _place(row: Mapping[str, str]) -> tuple[str, ...]:
    return (row["paper"], row["table"], row["dataset"].lower(), row["method"], row["metric"])


class MapScore:
    """MAP in both directions."""

    image_query: float
    text_query: float

    @property
    def average(self) -> float:
        """The mean of the two directions."""
        return (self.image_query + self.text_query) / 2


@dataclass(frozen=True)
class Published(MapScore):
    """A method's printed MAP in both directions, and where it stands."""

    paper: str
    table: str
    image_query: float
    text_query: float


@dataclass(frozen=True)
class PublishedTraining:
    """A method's printed training time, on the authors' machine, and the parameters they chose."""

    seconds: float
    parameters: str


def published_map(paper: str, table: str, dataset: str, method: str, regime: str | None = None) -> Published:
    """Return the MAP that ``paper`` prints for ``method`` in ``table``.

    Papers are numbered as in ``published.csv``: 000 Liu et al., 001 Menon et al., 002 Zhang et al., 003 Dong et al.,
    004 Costa Pereira et al.

    >>> from diptych.benchmark import published_map
    >>> published_map("001", "Table 1", "Wikipedia", "CCA")
    Published(paper='001', table='Table 1', image_query=0.2757, text_query=0.2002)
    """
    wanted = (paper, table, dataset.lower(), method, "MAP")
    found = {
        row["direction"]: float(row["value"])
        for row in published_rows()
        if _place(row) == wanted and regime in (None, row["regime"])
    }
    if not {"image_query", "text_query"} <= found.keys():
        raise InvalidInputError(f"paper {paper}, {table} prints no MAP of {method} on {dataset}")
    return Published(paper, table, found["image_query"], found["text_query"])


def published_training(paper: str, table: str, dataset: str, method: str) -> PublishedTraining | None:
    """Return the training time and parameters that ``paper`` prints for ``method``, or None where it prints none."""
    wanted = (paper, table, dataset.lower(), method, "training_time_s")
    for row in published_rows():
        if _place(row) == wanted:
            return PublishedTraining(float(row["value"]), row["notes"].removeprefix("params: "))
    return None


def published_value(paper: str, table: str, method: str, metric: str, regime: str) -> str | None:
    """Return a number as ``paper`` prints it, with its unit if it has one, or None where it prints none."""
    wanted = {"paper": paper, "table": table, "method": method, "metric": metric, "regime": regime}
    return next((row["value"] for row in published_rows() if wanted.items() <= row.items()), None)


def plain_name(name: str) -> str:
    """Return the letters and digits of a name, by which papers' names and ours agree."""
    return re.sub(r"[^a-z0-9]+", "", name.lower().replace("ranking-style", "ranking"))


def printed_beside(place: tuple[str, str, str], title: str) -> dict[str, dict[Direction, float]]:
    """Return what a table prints for a method, by our names of the measures and by direction.

    ``place`` is the paper, the table and the data. A table of test results has one value for each.

    >>> from diptych.benchmark.published import printed_beside
    >>> printed_beside(("001", "Table 1", "Wikipedia"), "CCA")
    {'AP()': {'image_query': 0.2757, 'text_query': 0.2002}}
    """
    found: dict[str, dict[Direction, float]] = {}
    for row in published_rows():
        there = (row["paper"], row["table"], row["dataset"].lower()) == (*place[:2], place[2].lower())
        if there and row["metric"] in MEASURE_KEYS and plain_name(row["method"]) == plain_name(title):
            values = found.setdefault(MEASURE_KEYS[row["metric"]], {})
            values.update({way: float(row["value"]) for way in DIRECTIONS if way == row["direction"]})
    return found


def published_distance(dataset: str, method: str, metric: str) -> Published:
    """Return what Table IV of Costa Pereira et al. (2014) prints for CM, SM or SCM under a measure of `DISTANCES`."""
    return published_map("004", "Table IV", dataset, method, f"validation set; distance {DISTANCES[metric]}")
