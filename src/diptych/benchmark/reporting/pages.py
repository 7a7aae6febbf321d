"""Tables of the documents, made of stored results: each stands between two comments, and the first says how it is made.

``<!-- table: seen-unseen sm cca -->`` begins a table that `MAKERS` calls ``seen-unseen``, of these methods, and
``<!-- end of table -->`` ends it. ``diptych bench pages`` writes all of them anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from diptych.benchmark.papers import declared_tasks
from diptych.benchmark.papers.costa_pereira import costa_pereira_tables
from diptych.benchmark.papers.dong import click_tables
from diptych.benchmark.published import MapScore, printed_beside, published_training
from diptych.benchmark.reporting import few_captions
from diptych.benchmark.reporting.checklist import checklist_page
from diptych.benchmark.reporting.code_observations import check_code_observations
from diptych.benchmark.reporting.observations import format_p_value, format_signed, trivial_ranks
from diptych.benchmark.reporting.reproduction import StoredResults, answer_rows, reproduction_page
from diptych.benchmark.reporting.results import TaskResults, find_experiments, group_records
from diptych.benchmark.reporting.significance import LEVEL
from diptych.benchmark.results import Record
from diptych.benchmark.tables import NOTHING, Table, as_markdown
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.space import DIRECTIONS, Direction

REPRODUCTION = "reproduction.md"
CHECKLIST = "papers.md"
_MARKED = re.compile(r"(<!-- table: ([^\n]+?) -->\n\n?)(.*?)(\n?<!-- end of table -->)", re.DOTALL)
_DATA = {"wikipedia": "Wikipedia", "pascal": "Pascal"}
_MEASURES = {"AP()": "MAP"}
_USUALLY_SIGNIFICANT = 0.005


def made_pages(results: StoredResults, documents: str | PathLike[str]) -> dict[Path, str]:
    """Return what every page with a made table has to be."""
    folder = Path(documents)
    pages = {folder / REPRODUCTION: reproduction_page(answer_rows(results)), folder / CHECKLIST: checklist_page()}
    if results.has_task(few_captions.DRAWN_TASK):
        pages[folder / few_captions.CHART] = few_captions.curve_chart(results)
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path not in pages and _MARKED.search(text):
            pages[path] = _MARKED.sub(lambda found: f"{found[1]}{made_table(results, found[2])}{found[4]}", text)
    return pages


def made_table(results: StoredResults, declaration: str) -> str:
    """Return a table as Markdown; ``declaration`` is the name of a maker and its words."""
    name, *words = declaration.split()
    if name not in MAKERS:
        raise UnknownNameError("maker of tables", name, MAKERS)
    return as_markdown(MAKERS[name](results, *words))


def _records(results: StoredResults, task: str, method: str) -> Sequence[Record]:
    found = results.folds(task, method)
    if not found:
        raise InvalidInputError(f"there is no stored result of {method} on {task}; run it, or leave it out of the page")
    return found


def _mean(records: Sequence[Record], measure: str = "AP()", way: Direction | None = None) -> str:
    """Return the mean over folds, with the sample deviation where there are several, of one or both directions."""
    values = [np.mean([one.measures[measure][each] for each in ([way] if way else DIRECTIONS)]) for one in records]
    mean = f"{np.mean(values):.4f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1):.4f}"


def _chance(records: Sequence[Record], measure: str = "AP()", way: Direction | None = None) -> str:
    values = [one.chance[measure][each] for one in records for each in ([way] if way else DIRECTIONS)]
    return f"{np.mean(values):.4f}"


def _declared(task: str) -> tuple[str, str, str]:
    (printed,) = [one.printed for one in declared_tasks() if one.name == task]
    if printed is None:
        raise InvalidInputError(f"no paper prints a table of {task}")
    return printed


def paper_table(results: StoredResults, task: str) -> Table:
    """Return a table of Menon et al. (2015): MAP and what was chosen, each beside what they print."""
    place = _declared(task)
    rows: list[tuple[str, ...]] = []
    group = ""
    names = [method.name for one in declared_tasks() if one.name == task for method in one.methods]
    for name in names:
        for record in results.folds(task, name):
            if record.group != group:
                group = record.group
                rows.append((f"*{group.lower()}*", *[""] * 10))
            rows.append(_beside_paper(record, place))
    headings = [part for way in ("image query", "text query", "average") for part in (way, "paper")]
    title = f"{place[1]} of {place[2]}"
    return Table(title, ("method", *headings, "difference", "held-out MAP", "chosen", "paper"), tuple(rows))


class _Score(MapScore):
    def __init__(self, values: Mapping[Direction, float]) -> None:
        self.image_query, self.text_query = values["image_query"], values["text_query"]


def _beside_paper(record: Record, place: tuple[str, str, str]) -> tuple[str, ...]:
    ours, values = _Score(record.measures["AP()"]), printed_beside(place, record.method_title).get("AP()")
    theirs = _Score(values) if values else None
    cells = []
    for name in ("image_query", "text_query", "average"):
        cells += [f"{getattr(ours, name):.4f}", f"{getattr(theirs, name):.4f}" if theirs else NOTHING]
    training = published_training(*place, _printed_name(place, record))
    validation = record.validation
    return (
        record.method_title,
        *cells,
        format_signed(ours.average - theirs.average) if theirs else NOTHING,
        f"{validation['mean']:.4f} ± {validation['deviation']:.4f}" if validation.get("mean") else NOTHING,
        ", ".join(f"{_short(name)} = {_value(value)}" for name, value in record.parameters.items()) or NOTHING,
        NOTHING if training is None or training.parameters == "NA" else training.parameters,
    )


def _printed_name(place: tuple[str, str, str], record: Record) -> str:
    from diptych.benchmark.published import plain_name, published_rows

    names = (row["method"] for row in published_rows() if (row["paper"], row["table"]) == place[:2])
    return next((name for name in names if plain_name(name) == plain_name(record.method_title)), record.method_title)


def _short(name: str) -> str:
    return {"regularization": "ridge", "n_components": "k", "ratio": "S", "nu": "ν"}.get(name.rpartition("__")[2], name)


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def seeds_table(results: StoredResults, task: str, way: Direction) -> Table:
    """Return every method of a task in one direction: mean and deviation over seeds, and what the paper prints."""
    place = _declared(task)
    (declared,) = [one for one in declared_tasks() if one.name == task]
    measured = {name: some for name, some in results.methods(task).items() if some}
    any_records = next(iter(measured.values()))
    keys = list(any_records[0].measures)
    printed = {one.name: printed_beside(place, one.title) for one in declared.methods}
    beside = [key for key in keys if any(way in found.get(key, {}) for found in printed.values())]
    rows = []
    for method in declared.methods:
        if method.name not in measured and not printed[method.name]:
            continue
        records = measured.get(method.name)
        ours = [_mean(records, key, way) if records else NOTHING for key in keys]
        values = (printed[method.name].get(key, {}).get(way) for key in beside)
        rows.append((method.title, *ours, *(NOTHING if value is None else f"{value:.4f}" for value in values)))
    rows.append(("chance", *(_chance(any_records, key, way) for key in keys), *[""] * len(beside)))
    names = [_MEASURES.get(key, key) for key in keys]
    papers = [f"paper: {_MEASURES.get(key, key).partition(' ')[0]}" for key in beside]
    return Table(f"{task}, {way}", (way.replace("_", " "), *names, *papers), tuple(rows))


def varied_table(results: StoredResults, task: str) -> Table:
    """Return MAP at each value of the parameter that a task varies, in both directions."""
    (declared,) = [one for one in declared_tasks() if one.name == task]
    found = [_records(results, task, method.name) for method in declared.methods]
    values = [method.title.rpartition(" ")[2] for method in declared.methods]
    rows = [(way.replace("_", " "), *(_mean(records, way=way) for records in found)) for way in DIRECTIONS]
    name = declared.methods[0].title.rpartition(" ")[0]
    return Table(declared.title, (name, *values), tuple(rows))


def seen_unseen(results: StoredResults, *methods: str) -> Table:
    """Return MAP of methods on seen and unseen classes of both data sets, mean of both directions."""
    tasks = [f"extendable-{data}-{setting}" for data in _DATA for setting in ("seen", "unseen")]
    headings = [f"{name}, {setting}" for name in _DATA.values() for setting in ("seen", "unseen")]
    return _across(results, "MAP, mean of both directions", tasks, headings, methods)


def standard_splits(results: StoredResults, *methods: str) -> Table:
    """Return MAP of methods on the standard splits of both data sets, mean of both directions."""
    tasks = [f"standard-{data}" for data in _DATA]
    return _across(results, "MAP, mean of both directions", tasks, [*_DATA.values()], methods)


def _across(
    results: StoredResults, title: str, tasks: Sequence[str], headings: Sequence[str], methods: Sequence[str]
) -> Table:
    rows = [
        (_records(results, tasks[0], name)[0].method_title, *(_mean(_records(results, task, name)) for task in tasks))
        for name in methods
    ]
    rows.append(("chance", *(_chance(_records(results, task, methods[0])) for task in tasks)))
    return Table(title, (title, *headings), tuple(rows))


def measures_table(results: StoredResults, task: str, measures: str, *methods: str) -> Table:
    """Return several measures of methods on one task, mean of both directions; ``~`` stands for a blank in a name."""
    keys = [key.replace("~", " ") for key in measures.split(",")]
    rows = [
        (records[0].method_title, *(_mean(records, key) for key in keys))
        for records in (_records(results, task, name) for name in methods)
    ]
    first = _records(results, task, methods[0])
    rows.append(("chance", *(_chance(first, key) for key in keys)))
    return Table(task, ("mean of both directions", *(_MEASURES.get(key, key) for key in keys)), tuple(rows))


def recall_table(results: StoredResults, task: str, *methods: str) -> Table:
    """Return R@1 and R@10 of methods in both directions."""
    columns = [(way, key) for way in DIRECTIONS for key in ("R@1", "R@10")]
    rows = [
        (records[0].method_title, *(_mean(records, key, way) for way, key in columns))
        for records in (_records(results, task, name) for name in methods)
    ]
    first = _records(results, task, methods[0])
    rows.append(("chance", *(_chance(first, key, way) for way, key in columns)))
    return Table(task, (task, *(f"{way.replace('_', ' ')} {key}" for way, key in columns)), tuple(rows))


def _both_settings(results: StoredResults) -> tuple[TaskResults, ...]:
    names = [f"extendable-{data}-{setting}" for data in _DATA for setting in ("seen", "unseen")]
    return group_records(record for name in names for some in results.methods(name).values() for record in some)


def trivial_table(results: StoredResults) -> Table:
    """Return the mean ranks of the trivial solutions on seen and on unseen classes, and the test over folds."""
    rows = [
        (
            f"{experiment.title}, {found.title}",
            f"{found.seen:.1f}",
            f"{found.unseen:.1f}",
            format_p_value(found.p_value),
        )
        for experiment in find_experiments(_both_settings(results))
        for name in ("ts", "deep-ts")
        if (found := trivial_ranks(experiment, name)) is not None
    ]
    return Table("mean rank", ("mean rank among real-valued methods", "seen", "unseen", "p over folds"), tuple(rows))


def codes_observed(results: StoredResults) -> Table:
    """Return what Liu et al. observed of codes, tested on seen and on unseen classes of both data sets."""
    found = check_code_observations(_both_settings(results))
    rows = [(one.claim, one.where, one.verdict, format_p_value(one.p_value), one.evidence) for one in found]
    return Table("codes", ("claim", "data", "verdict", "p", "evidence"), tuple(rows), n_names=5)


def code_lengths(results: StoredResults, data: str, *methods: str) -> Table:
    """Return MAP of hashing methods by the length of their codes, on seen and on unseen classes."""
    lengths = (8, 16, 32)
    rows = []
    for setting in ("seen", "unseen"):
        task = f"extendable-{data}-{setting}"
        for name in methods:
            found = [_records(results, task, f"{name}-{bits}") for bits in lengths]
            title = found[0][0].method_title.partition(",")[0]
            rows.append((setting, title, *map(_mean, found)))
        rows.append(
            (setting, "chance", *(_chance(_records(results, task, f"{methods[0]}-{bits}")) for bits in lengths))
        )
    return Table(data, ("classes", "method", *(f"{bits} bits" for bits in lengths)), tuple(rows), n_names=2)


def click_differences(results: StoredResults) -> Table:
    """Return how often two methods that differ by more, or by less, than 0.005 differ significantly (Dong et al., IV).

    All pairs of rows of each list of queries, in the last column, by the randomisation test without correction.
    """
    rows = []
    for name, found in results.documents["clicks"]["lists"].items():
        column = list(next(iter(found["means"].values())))[-1]
        means = {row: values[column] for row, values in found["means"].items()} | {"random": found["random"]}
        counts = {True: [0, 0], False: [0, 0]}
        for pair, p_value in found["p_values"].items():
            one, other = pair.split(" | ")
            of_size = counts[abs(means[one] - means[other]) > _USUALLY_SIGNIFICANT]
            of_size[0] += p_value < LEVEL
            of_size[1] += 1
        shares = [f"{significant} of {pairs}" for significant, pairs in counts.values()]
        rows.append((name, str(found["queries"]), found["measure"], *shares))
    headings = ("list", "queries", "measure", "difference above 0.005: significant", "at most 0.005: significant")
    return Table("differences", headings, tuple(rows), n_names=1)


def click_table(results: StoredResults, name: str) -> Table:
    """Return one of the tables of `bench clicks` by its name."""
    return click_tables(results.documents["clicks"])[name]


def costa_pereira_table(results: StoredResults, task: str, name: str) -> Table:
    """Return one of the tables of `bench costa-pereira` by its name."""
    report = results.report("costa-pereira", task)
    if report is None:
        raise InvalidInputError(f"there is no stored result of `diptych bench costa-pereira --data {task}`")
    return costa_pereira_tables(report)[name]


MAKERS: Mapping[str, Callable[..., Table]] = {
    "paper": paper_table,
    "seeds": seeds_table,
    "varied": varied_table,
    "seen-unseen": seen_unseen,
    "standard": standard_splits,
    "measures": measures_table,
    "recall": recall_table,
    "trivial": trivial_table,
    "code-lengths": code_lengths,
    "codes-observed": codes_observed,
    "clicks": click_table,
    "click-differences": click_differences,
    "costa-pereira": costa_pereira_table,
    **few_captions.MAKERS,
}
"""What makes a table, by the name that pages call it."""
