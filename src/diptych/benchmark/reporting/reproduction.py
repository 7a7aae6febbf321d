"""Every number that the papers print beside ours: the value and the command that prints it, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from diptych.benchmark.papers import CITATIONS, SHORT
from diptych.benchmark.published import DISTANCES, MEASURE_KEYS, plain_name, published_rows
from diptych.benchmark.reporting.observations import format_p_value, format_signed
from diptych.benchmark.results import STUDIES, Record, ResultFolder
from diptych.benchmark.tables import Table, as_markdown
from diptych.encoders import Visualness
from diptych.metrics import NDCG, GradedRelevance, evaluate_scores
from diptych.models import PSI, ConSE, Image2Text, MNiL, Text2Image
from diptych.space import DIRECTIONS, Direction

PrintedRow = Mapping[str, str]

_SCORES = {
    **dict.fromkeys(("MAP", "MAP@50", "MAP@all", "NDCG@25", "Recall@1", "Recall@5", "Recall@10"), 1),
    **dict.fromkeys(("MAP_percent", "CMC_rank1_percent"), 100),
}
_TVGRAZ = "TVGraz is not publicly available"
# Our short names of the methods of Liu et al.; their correlation matching is CCA.
_LIU_METHODS = {"SM": "sm", "deep-TS": "deep-ts", "TS": "ts", "CM": "cca"}
# Among which the paper ranks the trivial solutions.
_LIU_RANKED = ("cca", "sm", "scm", "pls", "blm", "gmmfa", "gmlda", "cca-3v", "lcfs", "deep-sm", "ts", "deep-ts")
_LIU_CODES = {"MM-NN": "mm-nn", "SCMorth": "scm-orth", "CVH": "cvh"}
_LIU_MEASURES = {"MAP_percent": "AP()", "CMC_rank1_percent": "CMC@1"}
_MENON_TASKS = {"Table 1": "pairwise-wikipedia", "Table 2": "pairwise-pascal", "Table 3": "pairwise-tvgraz"}
_MENON_DATA = {"WIKIPEDIA": "Table 1", "PASCAL": "Table 2", "TVGRAZ": "Table 3"}
# The paper's own data first, then the nearest that people hold.
_ZHANG_TASKS = {
    "Table 1": ("neural-coco-pairs", "neural-coco"),
    "Table 2": ("neural-flickr30k", "neural-flickr8k"),
}
_MNIL_PARAMETERS = {"rho": "margin", "tau": "within_margin", "beta_1": "image_term", "beta_2": "text_term"}
_MNIL = "MNiL"
_CLICKS = "diptych bench clicks"
_CLICKTURE = "Clickture's queries and pictures are not publicly available"
_JUDGED_LISTS = {"MIRFlickr-test": "words", "Clickture-dev": "experts", "IRC-MM15-test": "pascal"}
_COUNTS = {"n_queries": "queries", "n_images": "pictures", "n_pairs": "judged"}
# Which network stands for which; the paper has three.
STAND_INS = {"CaffeNet": "lite2", "VggNet": "lite0", "GoogleNet": "lite1", "Feature-fusion": "feature fusion"}
_AVERAGE = "average fusion"
_LEARNED = "learned fusion"
_RANDOM = "random"
_MODELS = ("image2text", "text2image", "psi", "devise", "conse")
_BOUNDS = {"Upper bound": "upper_bound", "random": _RANDOM, "Random baseline": _RANDOM}
_FUSIONS = {"Method-fusion": _AVERAGE, "average-fusion": _AVERAGE, "learned-fusion": _LEARNED}
_PIXELS_OF_CLICKTURE = "it trains on the pixels of Clickture-Lite's pictures, which are not publicly available"
_ONLY_QUOTED = "a method of other authors that the paper only quotes"
_QUOTED = {
    "Top performer [35]": "the authors' earlier fusion, one of whose methods is not described",
    "CSM [12]": _PIXELS_OF_CLICKTURE,
    "BoWDNN [50]": _PIXELS_OF_CLICKTURE,
    **dict.fromkeys(("CCL [30]", "MRW-NN [21]", "RCCA [22]"), _ONLY_QUOTED),
}
_WIKIPEDIA = "diptych bench costa-pereira --data wikipedia"
_NEAR = 0.02

_HEADINGS = ("method", "data", "setting", "measure", "query", "paper", "ours", "difference", "command, or why not")
_INTRODUCTION = """\
# Printed numbers and ours

Every number of the tables of five papers, and those that their texts print: our value and the command that prints
it, or the reason why there is none. The page is made of the printed values, which are in the package, and of stored
results, those of `diptych bench run` and what studies wrote with `--output`, packed by `diptych bench pack`:

```text
diptych bench pages bench/results
```

How each number came about, and why it differs where it does, is on the pages of the studies: [Benchmark](benchmark.md),
[What we found](findings.md), [Networks compared](neural-benchmark.md) and [Click logs compared](web-benchmark.md)."""

_READING = """\
Scores are MAP, recall, NDCG and CMC, from 0 to 1; a difference is ours minus theirs. Only where data and features are
the paper's own does a difference judge either side; elsewhere it says how far apart two collections are. Gains, counts,
times, memory and parameters have a value, but no difference. Times are seconds of a processor, an ARM Neoverse-N1."""

# What a reader must know of a printed table before comparing; by paper, then by table.
_CONDITIONS = {
    "000": {
        "": "Ours: Wikipedia's given features (128 SIFT words, 10 topics, square-rooted) where the paper has CaffeNet "
        "and word2vec; its class folds are not published, ours are seeded. CM is CCA; five folds, parameters chosen on "
        "hold-outs. XTD: classes that were not learned; non-XTD: classes that were.",
    },
    "001": {
        "Table 1": "The paper's own features and split.",
        "Table 2": "Ours: EfficientNet-Lite2 and MiniLM, 128 and 10 principal components, and a split of our own; "
        "neither the paper's features nor its split are publicly available, so that only orders compare.",
    },
    "002": {
        "Table 1": "Ours: COCO's val2014, 15,819 photos to learn from and 987 to ask. Figure 3, precision by scope, is "
        "the curve `precision_scope` of every record in `bench/results/studies/neural-coco-pairs.jsonl.gz`.",
        "Table 2": "Ours: Flickr8k, 6,000 photos to learn from and 1,000 to ask, because Flickr30K's photos are not "
        "publicly available; features of EfficientNet-Lite2 and MiniLM, of which MNiL takes the first and reads words. "
        "PL-ranking learns from classes: each photo and its captions are one.",
    },
    "003": {
        "": "Ours: a click log simulated from Flickr8k's training captions, judgements of its test captions by people. "
        "MIRFlickr's tags: 50 single words; Clickture-dev: captions judged by experts; IRC-MM15: Pascal Sentence's. "
        "EfficientNet-Lite2 stands for CaffeNet, Lite0 for VggNet. NDCG@25 has the paper's fixed normaliser, and few "
        "captions have more than a handful of good photographs, hence the low values.",
        "Table VII": "The paper's times are by the clock, of a PC with 32 GB and a GTX Titan X, for 23 million triads "
        "to learn from and 79,926 pairs to score; ours are seconds of one processor, an ARM Neoverse-N1, for 221,625 "
        "triads and 2,282,000 pairs.",
        "Table IX": "Ours: captions that name a person; celebrities are not among them.",
    },
    "004": {
        "": "Ours: Wikipedia's given features (128 SIFT words, 10 topics); the paper chose among larger codebooks and "
        "up to 4,000 topics.",
        "Table III": "The validation part is a random fifth of the training part, and the paper's draw is not known.",
        "Table IV": "CM under NCc depends on the signs of components, which nothing determines: ours is the mean over "
        "random signs. Tables VI, VII and IX compare points of CM by NC, which the signs do not change.",
    },
}


class StoredResults:
    """What runs left in one folder and in its folder ``studies``, packed or not, as pages look it up."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)

    @cached_property
    def documents(self) -> dict[str, Any]:
        """What `bench clicks` and `bench costa-pereira` wrote, by the names of their files."""
        return ResultFolder(self.folder).studies()

    @cached_property
    def _records(self) -> dict[str, dict[str, list[Record]]]:
        found: dict[str, dict[str, list[Record]]] = {}
        for folder in (self.folder, self.folder / STUDIES):
            for record in ResultFolder(folder).records() if folder.is_dir() else ():
                found.setdefault(record.task, {}).setdefault(record.method, []).append(record)
        return found

    def has_task(self, task: str) -> bool:
        """Return True if there is a record of a task."""
        return task in self._records

    def methods(self, task: str) -> Mapping[str, Sequence[Record]]:
        """Return the records of every method of a task, one for each fold."""
        return self._records.get(task, {})

    def folds(self, task: str, method: str) -> Sequence[Record]:
        """Return the records of a method on every fold of a task."""
        return self.methods(task).get(method, ())

    def titled(self, task: str, title: str) -> Sequence[Record]:
        """Return the records of the method that a paper calls ``title``."""
        wanted = plain_name(title)
        return next((some for some in self.methods(task).values() if plain_name(some[0].method_title) == wanted), ())

    def report(self, study: str, task: str) -> Mapping[str, Any] | None:
        """Return the document of one task in a study of several."""
        return next((report for report in self.documents.get(study, ()) if report["task"] == task), None)


@dataclass(frozen=True)
class Ours:
    """A value of ours, the command that prints it, and whether it was measured on the paper's own data and features."""

    value: float
    command: str
    same_data: bool = False


@dataclass(frozen=True)
class Answer:
    """A printed row with ours, or with the reason why we have none."""

    row: PrintedRow
    ours: Ours | None
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, for measures of retrieval; None for counts, times, memory and parameters."""
        scale = _SCORES.get(self.row["metric"])
        return None if self.ours is None or scale is None else (self.ours.value - float(self.row["value"])) / scale


def answer_rows(results: StoredResults) -> tuple[Answer, ...]:
    """Return an answer to every row of ``published.csv``, in its order."""
    return tuple(_answer(row, results) for row in published_rows())


def _answer(row: PrintedRow, results: StoredResults) -> Answer:
    try:
        found = _PAPERS[row["paper"]](row, results)
    except LookupError as missing:
        # A study of some methods only.
        found = f"the stored results lack {missing}"
    return Answer(row, None, found) if isinstance(found, str) else Answer(row, found)


Found = Ours | str


def _or_not_run(value: float | None, command: str, *, same_data: bool = False) -> Found:
    if value is None:
        return f"no result of `{command}` is stored"
    return Ours(float(value), command, same_data)


def _liu(row: PrintedRow, results: StoredResults) -> Found:
    if row["dataset"] == "NUS-WIDE":
        return "NUS-WIDE is not publicly available"
    if row["table"] == "Table I":
        tasks = f"extendable-{row['dataset'].split()[0].lower()}"
        count = _count_pairs if row["metric"] == "capacity_pairs" else _count_classes
        return Ours(count(results, tasks), f"diptych bench run --task '{tasks}-*' --method random", same_data=True)
    if row["regime"] == "features":
        return f"{row['method']}: these features are not published; ours are those given with the data set"
    if row["regime"] == "protocol":
        folds = len(results.folds("extendable-wikipedia-unseen", "sm")) or None
        return _or_not_run(folds, "diptych bench run --task 'extendable-*'", same_data=True)
    setting = "unseen" if row["regime"].startswith("XTD") else "seen"
    bits = re.search(r"(\d+) bit", row["regime"])
    method = f"{_LIU_CODES[row['method']]}-{bits[1]}" if bits else _LIU_METHODS[row["method"]]
    if row["metric"] == "MAP_rank":
        return _liu_rank(results, f"extendable-wikipedia-{setting}", method, _way(row))
    task, measure = f"extendable-wikipedia-{setting}", _LIU_MEASURES[row["metric"]]
    values = [record.measures[measure][_way(row)] for record in results.folds(task, method)]
    value = 100 * float(np.mean(values)) if values else None
    return _or_not_run(value, f"diptych bench run --task {task} --method {method}")


def _liu_rank(results: StoredResults, task: str, method: str, way: Direction) -> Found:
    """Return the rank of a method by MAP among the real-valued methods of the paper."""
    found = {name: results.folds(task, name) for name in _LIU_RANKED}
    means = {name: np.mean([one.measures["AP()"][way] for one in some]) for name, some in found.items() if some}
    rank = 1 + sum(value > means[method] for value in means.values()) if method in means else None
    return _or_not_run(rank, f"diptych bench run --task {task} --method {','.join(_LIU_RANKED)}")


def _count_pairs(results: StoredResults, tasks: str) -> int:
    """Return the pairs of both halves of the classes: those learned from, or searched, and those that ask."""
    seen, unseen = (results.folds(f"{tasks}-{setting}", "random")[0] for setting in ("seen", "unseen"))
    asked = sum(record.n_queries["image_query"] for record in (seen, unseen))
    return int(seen.n_train + unseen.n_gallery["image_query"] + asked)


def _count_classes(results: StoredResults, tasks: str) -> int:
    unseen = results.folds(f"{tasks}-unseen", "random")[0]
    return len({*unseen.train_classes, *unseen.test_classes})


def _menon(row: PrintedRow, results: StoredResults) -> Found:
    if row["regime"] == "claim":
        task = _MENON_TASKS[_MENON_DATA[row["dataset"]]]
        pair = [results.titled(task, name) for name in row["method"].split(" vs ")]
        ours, theirs = (some[0].average() if some else None for some in pair)
        command = f"diptych bench run --task {task}"
        return _or_not_run(None if ours is None or theirs is None else 100 * (ours / theirs - 1), command)
    task = _MENON_TASKS[row["table"]]
    records = results.titled(task, row["method"])
    if not records:
        command = f"`diptych bench run --task {task}`"
        return (
            f"{_TVGRAZ}; {command} reads its files" if task.endswith("tvgraz") else f"no result of {command} is stored"
        )
    (found,) = records
    if row["metric"] == "training_time_s":
        value = found.seconds["fit"]
    else:
        value = found.average() if row["direction"] == "average" else found.measures["AP()"][_way(row)]
    return Ours(value, f"diptych bench run --task {task} --method {found.method}", task != "pairwise-pascal")


def _way(row: PrintedRow) -> Direction:
    return "image_query" if row["direction"] == "image_query" else "text_query"


def _zhang(row: PrintedRow, results: StoredResults) -> Found:
    if row["metric"] in _MNIL_PARAMETERS:
        return Ours(getattr(MNiL(), _MNIL_PARAMETERS[row["metric"]]), "diptych methods mnil", same_data=True)
    table = "Table 1" if row["regime"] == "claim" else row["table"]
    task = next((name for name in _ZHANG_TASKS[table] if results.has_task(name)), _ZHANG_TASKS[table][0])
    command = f"diptych bench run --task {task}"
    if row["regime"] == "claim":
        metric = "MAP@50" if row["method"].endswith("PL-ranking") else "MAP@all"
        names = (_MNIL, row["method"].removeprefix(f"{_MNIL} vs "))
        ours, theirs = (_mean(results.titled(task, name), metric, "average") for name in names)
        return _or_not_run(None if ours is None or theirs is None else 100 * (ours / theirs - 1), command)
    return _or_not_run(_mean(results.titled(task, row["method"]), row["metric"], row["direction"]), command)


def _mean(records: Sequence[Record], metric: str, direction: str) -> float | None:
    """Return the mean over seeds of what a paper calls ``metric``, None without records."""
    ways = DIRECTIONS if direction == "average" else (direction,)
    values = [record.measures[MEASURE_KEYS[metric]][way] for record in records for way in DIRECTIONS if way in ways]
    return float(np.mean(values)) if values else None


def _dong(row: PrintedRow, results: StoredResults) -> Found:
    if row["regime"] == "constant":
        return _dong_constant(row["method"])
    if row["metric"] == "visualness":
        return Ours(Visualness().of(row["method"]).visualness, f"Visualness().of({row['method']!r})", same_data=True)
    if row["table"] in ("Table II", "Fig. 2", "Table VI") or row["regime"] == "with re-ranking trick":
        return _CLICKTURE
    if row["method"] in _QUOTED:
        return _QUOTED[row["method"]]
    clicks = results.documents.get("clicks")
    if clicks is None:
        return f"no result of `{_CLICKS}` is stored"
    if row["table"] == "text" and row["regime"] not in STAND_INS:
        return Ours(_dong_text(row, clicks), f"{_CLICKS} --json")
    if row["table"] == "Table VII":
        costs = clicks["costs"][f"{row['method'].lower()} {STAND_INS['CaffeNet']}"]
        part = "fit" if row["regime"] == "training" else "test"
        return Ours(costs[f"{part}_{'seconds' if row['metric'] == 'time' else 'megabytes'}"], _CLICKS)
    if row["table"] == "Table IX":
        return Ours(clicks["experts"]["people"][row["method"].lower()], _CLICKS)
    return _dong_list(row, clicks["lists"][_JUDGED_LISTS[row["dataset"]]])


def _dong_list(row: PrintedRow, found: Mapping[str, Any]) -> Found:
    name = _BOUNDS.get(row["method"], _COUNTS.get(row["metric"]))
    if name is not None:
        return Ours(found[name], _CLICKS)
    method = _FUSIONS.get(row["method"], row["method"].partition(" [")[0].lower().replace(" ", "-"))
    # Tables VIII and X name no network: the paper fuses them.
    return Ours(found["means"][method][STAND_INS.get(row["regime"], STAND_INS["Feature-fusion"])], _CLICKS)


def _dong_text(row: PrintedRow, clicks: Mapping[str, Any]) -> float:
    experts, words = clicks["experts"], clicks["lists"]["words"]
    group = re.search(r"visualness group (\d)", row["regime"])
    if group:
        means = experts["group_means"]["1-fold noise"]
        place = int(group[1]) - 1
        return float(np.mean([means[model][place] - means[_RANDOM][place] for model in _MODELS]))
    values: dict[str, Callable[[], float]] = {
        "Coordinate Ascent fusion": lambda: words["means"][_LEARNED]["feature fusion"],
        "image2text vs text2image": lambda: words["p_values"]["text2image | image2text"],
        "random": lambda: experts["group_means"]["0-fold noise"][_RANDOM][-1],
        "DeViSE vs reciprocal query length": lambda: experts["spearman"]["devise"]["1/length"],
        "DeViSE vs query visualness": lambda: experts["spearman"]["devise"]["visualness"],
        "queries with fewer than 25 Excellent images": lambda: experts["fewer_than_25_excellent"],
        "test queries with an exact match in Clickture-Lite": lambda: experts["percent_in_log"],
    }
    return float(values[row["method"]]())


def _dong_constant(name: str) -> Found:
    # A list with one excellent picture, which comes first, has 7 times the normaliser.
    one_excellent = evaluate_scores([[1.0]], GradedRelevance([[3.0]]), [NDCG()])[NDCG()]
    values: dict[str, tuple[float, str]] = {
        "NDCG normaliser": (
            one_excellent / 7,
            "evaluate_scores([[1.0]], GradedRelevance([[3.0]]), [NDCG()])[NDCG()] / 7",
        ),
        "image2text k": (Image2Text().n_neighbours, "diptych methods image2text"),
        "text2image k": (Text2Image().n_neighbours, "diptych methods text2image"),
        "PSI/DeViSE common space": (PSI().n_components, "diptych methods psi"),
        "ConSE m": (ConSE().n_labels, "diptych methods conse"),
        "PSI vocabulary": (PSI().max_words, "diptych methods psi"),
        "PSI mini-batch": (PSI().batch_size, "diptych methods psi"),
    }
    return Ours(*values[name], same_data=True)


def _costa_pereira(row: PrintedRow, results: StoredResults) -> Found:
    if row["dataset"] == "TVGraz":
        return _TVGRAZ
    report = results.report("costa-pereira", "wikipedia")
    if report is None:
        return f"no result of `{_WIKIPEDIA}` is stored"
    return Ours(float(_COSTA_PEREIRA[row["table"]](row, report)), _WIKIPEDIA, row["table"] == "Table III")


def _pairs_of_category(row: PrintedRow, report: Mapping[str, Any]) -> float:
    # "category Art & architecture" is called art in the files.
    return float(report["pairs"][row["regime"].split()[1].lower()][row["metric"]])


def _map_row(rows: Iterable[Mapping[str, Any]], method: str, detail: str | None = None) -> Mapping[str, Any]:
    for row in rows:
        if row["method"] == method and detail in (None, row["detail"]):
            return row
    raise LookupError(f"{method} {detail or ''}".strip())


def _by_distance(row: PrintedRow, report: Mapping[str, Any]) -> float:
    metric = next(ours for ours, printed in DISTANCES.items() if row["regime"].endswith(f"distance {printed}"))
    return float(_map_row(report["distances"], row["method"], metric)[row["direction"]])


def _map_or_gain(table: str, best: str) -> Callable[[PrintedRow, Mapping[str, Any]], float]:
    """Return what looks up a table's MAP, and by how many percent the average of ``best`` exceeds that of the row."""

    def look_up(row: PrintedRow, report: Mapping[str, Any]) -> float:
        own = _map_row(report[table], row["method"])
        if row["metric"] == "MAP":
            return float(own[row["direction"]])
        return 100 * float(_map_row(report[table], best)["average"] / own["average"] - 1)

    return look_up


def _chosen_setting(row: PrintedRow, report: Mapping[str, Any]) -> float:
    """Return the best setting on the validation part, and its MAP; the features are those given to the public."""
    if row["metric"] == "MAP":
        kind, name, detail = (
            ("correlation", "CM-KCCA", None) if row["method"] == "CM" else ("distances", row["method"], "pearson")
        )
        return float(_map_row(report[kind], name, detail)[row["direction"]])
    patterns = {"bow_codewords": r"(\d+) SIFT words", "lda_topics": r"(\d+) LDA topics"}
    if row["metric"] in patterns:
        return _number(patterns[row["metric"]], report["title"])
    return _number(r"n_components=(\d+)", _map_row(report["test"], row["method"])["detail"])


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    return float(found[1]) if found else float("nan")


_COSTA_PEREIRA: dict[str, Callable[[PrintedRow, Mapping[str, Any]], float]] = {
    "Table III": _pairs_of_category,
    "Table IV": _by_distance,
    "Table VI": _map_or_gain("correlation", "CM-KCCA"),
    "Table VII": _chosen_setting,
    "Table IX": _map_or_gain("test", "SCM"),
    "text": lambda _, report: 100 * _number(r"kappa=([\d.]+)", _map_row(report["test"], "CM")["detail"]),
}

_PAPERS: dict[str, Callable[[PrintedRow, StoredResults], Found]] = {
    "000": _liu,
    "001": _menon,
    "002": _zhang,
    "003": _dong,
    "004": _costa_pereira,
}


def reproduction_page(answers: Sequence[Answer]) -> str:
    """Return the page as Markdown: how many rows are answered, how near ours are, then a table for each of theirs."""
    parts = [_INTRODUCTION, "## Summary", _summary(answers), as_markdown(_agreement(answers)), _READING]
    tables: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        tables.setdefault((answer.row["paper"], answer.row["table"]), []).append(answer)
    paper = ""
    for (number, table), rows in tables.items():
        conditions = _CONDITIONS.get(number, {})
        if number != paper:
            paper = number
            parts += [f"## {SHORT[number]}", f"{CITATIONS[number]}.", *filter(None, [conditions.get("")])]
        heading = "Text" if table == "text" else table
        cells = Table("", _HEADINGS, tuple(map(_cells, rows)), len(_HEADINGS))
        parts += [f"### {SHORT[number]} {heading}", *filter(None, [conditions.get(table)]), as_markdown(cells)]
    return "\n\n".join(parts) + "\n"


def _summary(answers: Sequence[Answer]) -> str:
    valued = [answer for answer in answers if answer.ours is not None]
    answered = len(valued) + sum(bool(answer.reason) for answer in answers)
    return (
        f"{answered} of {len(answers)} printed numbers are answered: {len(valued)} by a value of ours, "
        f"{answered - len(valued)} by the reason why there is none."
    )


def _agreement(answers: Sequence[Answer]) -> Table:
    headings = ("paper", "rows", "values", "scores", "median difference", "median size", "within 0.02")
    kinds = [(SHORT[paper], [one for one in answers if one.row["paper"] == paper]) for paper in SHORT]
    known = [one for one in answers if one.ours is not None and one.ours.same_data]
    rows = [_agreement_row(name, some) for name, some in (*kinds, ("all", answers), ("same data and features", known))]
    return Table("agreement", headings, tuple(rows))


def _agreement_row(name: str, answers: Sequence[Answer]) -> tuple[str, ...]:
    gaps = np.array([gap for gap in (answer.difference for answer in answers) if gap is not None])
    counts = (str(len(answers)), str(sum(answer.ours is not None for answer in answers)), str(len(gaps)))
    if not len(gaps):
        return (name, *counts, "–", "–", "–")
    near = int((np.abs(gaps) <= _NEAR).sum())
    return (
        name,
        *counts,
        format_signed(float(np.median(gaps))),
        f"{np.median(np.abs(gaps)):.4f}",
        f"{near} of {len(gaps)}",
    )


def _cells(answer: Answer) -> tuple[str, ...]:
    row = answer.row
    way = "" if row["direction"] == "na" else row["direction"].replace("_", " ")
    named = [row[key].replace("|", "/") for key in ("method", "dataset", "regime", "metric")]
    if answer.ours is None:
        return (*named, way, row["value"], "–", "–", answer.reason)
    gap = "–" if answer.difference is None else format_signed(answer.difference)
    return (*named, way, row["value"], _with_digits(answer.ours.value, row), gap, f"`{answer.ours.command}`")


def _with_digits(value: float, row: PrintedRow) -> str:
    """Return ours with the digits that its measure has."""
    if row["metric"] in ("time", "training_time_s"):
        return f"{value:.3g} s" if value < 1000 else f"{value:,.0f} s"
    if "percent" in row["metric"] or row["metric"] == "memory_MB":
        return f"{value:.1f}"
    if "p_value" in row["metric"]:
        return format_p_value(value)
    if row["metric"] == "constant":
        return f"{value:.5f}"
    return f"{value:.0f}" if float(value).is_integer() and abs(value) != 1 else f"{value:.4f}"
