"""What papers print for a method, to stand beside what we measured."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from diptych.benchmark.reporting.method_results import MethodResults
from diptych.benchmark.reporting.task_results import TaskResults
from diptych.space import Direction

CITATIONS = {
    "000": "Liu et al., “A new evaluation protocol and benchmarking results for extendable cross-media retrieval”",
    "001": "Menon et al., “Cross-modal retrieval: a pairwise classification approach”, SDM 2015",
    "004": "Costa Pereira et al., “On the role of correlation and abstraction in cross-modal multimedia retrieval”, "
    "TPAMI 2014",
}
SHORT = {"000": "Liu et al.", "001": "Menon et al.", "004": "Costa Pereira et al."}

# Our short names where letters and digits alone do not make the paper's. Costa Pereira et al. correlate with kernels.
_ALIASES: Mapping[str, Mapping[str, str]] = {
    "000": {"cm": "cca"},
    "001": {},
    "004": {"cm": "kcca", "scm": "scmonkcca"},
}
_TEST_TABLES = {"001": ("Table 1", "Table 2", "Table 3"), "004": ("Table VIII", "Table IX")}
_REGIMES = {"seen": "non-XTD", "unseen": "XTD"}


@dataclass(frozen=True)
class PublishedValue:
    """MAP that a paper prints, in one or both directions, and where."""

    paper: str
    place: str
    values: Mapping[Direction, float]

    @property
    def average(self) -> float | None:
        """The mean of both directions, where both are printed."""
        return sum(self.values.values()) / 2 if len(self.values) == 2 else None


def published_beside(task: TaskResults, method: MethodResults) -> PublishedValue | None:
    """Return the MAP a paper prints for this method, data set and setting, or None.

    Extendable and non-extendable retrieval are Liu et al.'s, of whom only what the running text quotes is known; the
    standard split is Menon et al.'s, and Costa Pereira et al.'s where the former have nothing. No paper's folds are
    known, and most use other features than ours.
    """
    if task.setting in _REGIMES:
        return _quoted(task, method)
    return _printed("001", task, method) or _printed("004", task, method)


def _quoted(task: TaskResults, method: MethodResults) -> PublishedValue | None:
    places, values = [], {}
    for row in _rows("000", "MAP_percent", task, method):
        # The regime is such as "XTD", "non-XTD" or "non-XTD 16 bit".
        bits = re.search(r"(\d+) bit", row["regime"])
        same_length = (int(bits[1]) if bits else None) == method.n_bits
        if same_length and row["regime"].split()[0] == _REGIMES[task.setting]:
            places.append(row["table"])
            values[_way(row)] = float(row["value"]) / 100
    return PublishedValue("000", ", ".join(places), values) if values else None


def _printed(paper: str, task: TaskResults, method: MethodResults) -> PublishedValue | None:
    found = [
        row
        for row in _rows(paper, "MAP", task, method)
        if row["table"] in _TEST_TABLES[paper] and row["direction"] in ("image_query", "text_query")
    ]
    if not found or method.n_bits is not None:
        return None
    return PublishedValue(paper, found[0]["table"], {_way(row): float(row["value"]) for row in found})


def _rows(paper: str, metric: str, task: TaskResults, method: MethodResults) -> Iterator[Mapping[str, str]]:
    aliases = _ALIASES[paper]
    for row in _published_rows():
        name = _plain(row["method"])
        if (
            row["paper"] == paper
            and row["metric"] == metric
            and _same_dataset(row["dataset"], task.dataset)
            and aliases.get(name, name) == _plain(method.family)
        ):
            yield row


def _way(row: Mapping[str, str]) -> Direction:
    return "image_query" if row["direction"] == "image_query" else "text_query"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def _same_dataset(printed: str, ours: str) -> bool:
    """Tell whether a paper means our data set: "PASCAL" is ``pascal_sentence``."""
    return _plain(printed).removesuffix("sentence") == _plain(ours).removesuffix("sentence")


@cache
def _published_rows() -> tuple[dict[str, str], ...]:
    text = files("diptych.benchmark").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))
