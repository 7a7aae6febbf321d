"""The page of all printed numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.benchmark.reporting.leaderboard import CITATIONS, SHORT, Table, as_markdown
from diptych.benchmark.reporting.observations import format_p_value, format_signed
from diptych.benchmark.reproduction import Answer, PrintedRow, rows_by_table

_NEAR = 0.02

_INTRODUCTION = """\
# Printed numbers and ours

Every number of the tables of five papers, and those that their texts print: our value and the command that prints
it, or the reason why there is none. The page is made of the printed values, which are in the package, and of stored
results, those of `diptych bench run` and what studies wrote with `--output`, packed by `diptych bench pack`:

```text
diptych bench reproduction bench/results --output docs/reproduction.md
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
        "in `precision` of every result in `bench/results/studies/neural-coco-pairs.json.gz`; "
        "`diptych bench neural --data coco-pairs --plots FOLDER` draws it and figure 5, the maps of points.",
        "Table 2": "Ours: Flickr8k, 6,000 photos to learn from and 1,000 to ask, because Flickr30K's photos are not "
        "publicly available; features of EfficientNet-Lite2 and MiniLM, of which MNiL takes the first and reads words. "
        "PL-ranking learns from classes: each photo and its captions are one (one seed). The other values are taken "
        "from the tables of [Networks compared](neural-benchmark.md), means of three seeds to four digits. Figures 3 "
        "and 5, precision by scope and maps of points, are drawn by `diptych bench neural --plots FOLDER`.",
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


def reproduction_page(answers: Sequence[Answer]) -> str:
    """Return the page as Markdown: how many rows are answered, how near ours are, then a table for each of theirs."""
    parts = [_INTRODUCTION, "## Summary", _summary(answers), as_markdown(_agreement(answers)), _READING]
    paper = ""
    for (number, table), rows in rows_by_table(answers):
        conditions = _CONDITIONS.get(number, {})
        if number != paper:
            paper = number
            parts += [f"## {SHORT[number]}", f"{CITATIONS[number]}.", *filter(None, [conditions.get("")])]
        heading = "Text" if table == "text" else table
        parts += [f"### {SHORT[number]} {heading}", *filter(None, [conditions.get(table)]), as_markdown(_table(rows))]
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


def _table(answers: Sequence[Answer]) -> Table:
    headings = ("method", "data", "setting", "measure", "query", "paper", "ours", "difference", "command, or why not")
    return Table("", headings, tuple(map(_cells, answers)), len(headings))


def _cells(answer: Answer) -> tuple[str, ...]:
    row = answer.row
    way = "" if row["direction"] == "na" else row["direction"].replace("_", " ")
    named = [row[key].replace("|", "/") for key in ("method", "dataset", "regime", "metric")]
    if answer.ours is None:
        return (*named, way, row["value"], "–", "–", answer.reason)
    gap = "–" if answer.difference is None else format_signed(answer.difference)
    return (*named, way, row["value"], _number(answer.ours.value, row), gap, f"`{answer.ours.command}`")


def _number(value: float, row: PrintedRow) -> str:
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
