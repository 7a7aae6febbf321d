"""The methods of a task in order, as a table."""

from __future__ import annotations

from diptych.benchmark.reporting.method_results import AVERAGE_PRECISION, RANK_ONE, MethodResults
from diptych.benchmark.reporting.observation import signed
from diptych.benchmark.reporting.published_beside import SHORT, PublishedValue, published_beside
from diptych.benchmark.reporting.table import Table
from diptych.benchmark.reporting.task_results import TaskResults
from diptych.space import DIRECTIONS, Direction

_WAYS: dict[Direction, str] = {"image_query": "image query", "text_query": "text query"}
NOTHING = "–"


def leaderboard(task: TaskResults) -> Table:
    """Return MAP of every method, best first: both directions, their mean, spread over folds, and groups.

    A paper's value stands beside ours where one is printed, and the column of groups has letters: methods that share
    one cannot be told apart (see `compare_all` and `group_letters`).
    """
    printed = {method.name: published_beside(task, method) for method in task.methods}
    beside = [way for way in DIRECTIONS if any(found and way in found.values for found in printed.values())]
    rank_one = task.shares(RANK_ONE)
    headings = ["place", "method"]
    for way in DIRECTIONS:
        headings += [_WAYS[way], *(["paper"] if way in beside else [])]
    headings += ["average", "above chance", "group", *(["rank 1"] if rank_one else []), "fit, s"]
    rows = []
    for place, method in enumerate(task.methods, start=1):
        found = printed[method.name]
        row = [str(place), method.title]
        for way in DIRECTIONS:
            row += [with_spread(method, way), *([_printed(found, way)] if way in beside else [])]
        row += [with_spread(method), signed(method.above_chance()), task.letters.get(method.name, NOTHING)]
        row += [f"{method.mean(RANK_ONE):.4f}"] if rank_one else []
        rows.append((*row, f"{method.seconds('fit'):.2f}"))
    return Table(f"{task.title}: MAP", tuple(headings), tuple(rows), 2, _notes(task, list(printed.values())))


def with_spread(method: MethodResults, way: Direction | None = None, measure: str = AVERAGE_PRECISION) -> str:
    """Return mean ± standard deviation over folds, as text."""
    deviation = method.deviation(measure, way)
    mean = f"{method.mean(measure, way):.4f}"
    return mean if deviation is None else f"{mean} ± {deviation:.4f}"


def _printed(found: PublishedValue | None, way: Direction) -> str:
    return f"{found.values[way]:.4f}" if found is not None and way in found.values else NOTHING


def _notes(task: TaskResults, printed: list[PublishedValue | None]) -> tuple[str, ...]:
    folds = len(task.folds)
    notes = [f"Chance is {task.chance:.4f}."]
    if folds > 1:
        notes.append(f"Mean ± standard deviation over {folds} folds.")
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
