"""The methods of a task in order, printed values beside measured ones: a table, and everything as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from diptych.benchmark.papers import SHORT
from diptych.benchmark.published import published_rows
from diptych.benchmark.reporting.observations import format_signed
from diptych.benchmark.reporting.results import AVERAGE_PRECISION, RANK_ONE, MethodResults, TaskResults
from diptych.benchmark.tables import NOTHING, Table
from diptych.space import DIRECTION_NAMES, DIRECTIONS, Direction

_TEST_TABLES = {"001": ("Table 1", "Table 2", "Table 3"), "004": ("Table VIII", "Table IX")}
_REGIMES = {"seen": "non-XTD", "unseen": "XTD"}

# Our short names where letters and digits alone do not make the paper's. Costa Pereira et al. correlate with kernels.
_ALIASES: Mapping[str, Mapping[str, str]] = {"000": {"cm": "cca"}, "001": {}, "004": {"cm": "kcca", "scm": "scmonkcca"}}

_FIELDS = (
    *("task", "dataset", "setting", "method", "title", "family", "bits", "measure"),
    *("direction", "mean", "deviation", "chance", "folds", "group", "published", "paper"),
)


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
    standard split is Menon et al.'s, and Costa Pereira et al.'s where they have nothing. No paper's folds are
    known, and most use other features than ours.
    """
    if task.setting in _REGIMES:
        return _quoted_map(task, method)
    return _printed_map("001", task, method) or _printed_map("004", task, method)


def _quoted_map(task: TaskResults, method: MethodResults) -> PublishedValue | None:
    places, values = [], {}
    for row in _matching_rows("000", "MAP_percent", task, method):
        # The regime is such as "XTD", "non-XTD" or "non-XTD 16 bit".
        bits = re.search(r"(\d+) bit", row["regime"])
        same_length = (int(bits[1]) if bits else None) == method.n_bits
        if same_length and row["regime"].split()[0] == _REGIMES[task.setting]:
            places.append(row["table"])
            values[_way(row)] = float(row["value"]) / 100
    return PublishedValue("000", ", ".join(places), values) if values else None


def _printed_map(paper: str, task: TaskResults, method: MethodResults) -> PublishedValue | None:
    found = [
        row
        for row in _matching_rows(paper, "MAP", task, method)
        if row["table"] in _TEST_TABLES[paper] and row["direction"] in ("image_query", "text_query")
    ]
    if not found or method.n_bits is not None:
        return None
    return PublishedValue(paper, found[0]["table"], {_way(row): float(row["value"]) for row in found})


def _matching_rows(paper: str, metric: str, task: TaskResults, method: MethodResults) -> Iterator[Mapping[str, str]]:
    aliases = _ALIASES[paper]
    for row in published_rows():
        name = _letters_and_digits(row["method"])
        if (
            row["paper"] == paper
            and row["metric"] == metric
            and _same_dataset(row["dataset"], task.dataset)
            and aliases.get(name, name) == _letters_and_digits(method.family)
        ):
            yield row


def _way(row: Mapping[str, str]) -> Direction:
    return "image_query" if row["direction"] == "image_query" else "text_query"


def _letters_and_digits(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def _same_dataset(printed: str, ours: str) -> bool:
    """Return True if a paper means our data set: "PASCAL" is ``pascal_sentence``."""
    return _letters_and_digits(printed).removesuffix("sentence") == _letters_and_digits(ours).removesuffix("sentence")


def leaderboard_table(task: TaskResults) -> Table:
    """Return MAP of every method, best first: both directions, their mean, spread over folds, and groups.

    A paper's value stands beside ours where one is printed, and the column of groups has letters: methods that share
    one cannot be told apart (see `compare_all` and `group_letters`).
    """
    printed = {method.name: published_beside(task, method) for method in task.methods}
    beside = [way for way in DIRECTIONS if any(found and way in found.values for found in printed.values())]
    rank_one = task.all_have_measure(RANK_ONE)
    headings = ["place", "method"]
    for way in DIRECTIONS:
        headings += [DIRECTION_NAMES[way], *(["paper"] if way in beside else [])]
    headings += ["average", "above chance", "group", *(["rank 1"] if rank_one else []), "fit, s"]
    rows = []
    for place, method in enumerate(task.methods, start=1):
        found = printed[method.name]
        row = [str(place), method.title]
        for way in DIRECTIONS:
            row.append(with_spread(method, way))
            if way in beside:
                row.append(f"{found.values[way]:.4f}" if found is not None and way in found.values else NOTHING)
        row += [with_spread(method), format_signed(method.above_chance()), task.letters.get(method.name, NOTHING)]
        row += [f"{method.mean(RANK_ONE):.4f}"] if rank_one else []
        rows.append((*row, f"{method.seconds('fit'):.2f}"))
    return Table(f"{task.title}: MAP", tuple(headings), tuple(rows), 2, _notes(task, list(printed.values())))


def with_spread(method: MethodResults, way: Direction | None = None, measure: str = AVERAGE_PRECISION) -> str:
    """Return mean ± standard deviation over folds, as text."""
    deviation = method.deviation(measure, way)
    mean = f"{method.mean(measure, way):.4f}"
    return mean if deviation is None else f"{mean} ± {deviation:.4f}"


def _notes(task: TaskResults, printed: list[PublishedValue | None]) -> tuple[str, ...]:
    notes = [f"Chance is {task.chance:.4f}."]
    if len(task.folds) > 1:
        notes.append(f"Mean ± standard deviation over {len(task.folds)} folds.")
    if task.letters:
        notes.append(
            "Methods that share a letter cannot be told apart (randomisation test over queries, Holm, level 0.05)."
        )
    missing = [method.title for method in task.methods if method not in task.complete]
    if missing:
        notes.append(f"Not run on all folds, and not compared: {', '.join(missing)}.")
    papers = sorted({found.paper for found in printed if found is not None})
    if papers:
        notes.append(f"Papers: {', '.join(SHORT[paper] for paper in papers)}; {_conditions(task)}.")
    return tuple(notes)


def _conditions(task: TaskResults) -> str:
    if task.setting != "standard":
        return "their features and class folds are not ours, so that only orders compare"
    if task.dataset == "wikipedia":
        return "Menon et al. use the features and the split that come with the data set, the others their own features"
    return "their features and split are not ours, so that only orders compare"


def as_csv(tasks: Iterable[TaskResults]) -> str:
    """Return every measure of every method as one long table, with all digits."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _FIELDS, lineterminator="\n")
    writer.writeheader()
    for task in tasks:
        writer.writerows(_long_rows(task))
    return stream.getvalue()


def _long_rows(task: TaskResults) -> Iterable[dict[str, object]]:
    ways: tuple[Direction | None, ...] = (*DIRECTIONS, None)
    for method in task.methods:
        printed = published_beside(task, method)
        for measure in method.records[0].measures:
            for way in ways:
                value = None
                if printed is not None and measure == "AP()":
                    value = printed.average if way is None else printed.values.get(way)
                yield {
                    "task": task.name,
                    "dataset": task.dataset,
                    "setting": task.setting,
                    "method": method.name,
                    "title": method.title,
                    "family": method.group,
                    "bits": method.n_bits,
                    "measure": measure,
                    "direction": way or "average",
                    "mean": method.mean(measure, way),
                    "deviation": method.deviation(measure, way),
                    "chance": method.chance(measure, way),
                    "folds": len(method.folds),
                    "group": task.letters.get(method.name),
                    "published": value,
                    "paper": None if printed is None or value is None else printed.paper,
                }
