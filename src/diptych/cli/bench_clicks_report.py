"""How ``diptych bench clicks`` prints what it found."""

from __future__ import annotations

import math

from rich.console import Console

from diptych.benchmark.published import published_value
from diptych.benchmark.web import FEATURES, WebReport
from diptych.benchmark.web.web_report import AVERAGE, LEARNED, RANDOM
from diptych.cli.terminal import table

_FOLDS = (0, 1, 2, 5, 10)
_PAPER = "003"
_LEAST_P = 0.0001
_PRINTED = {AVERAGE: "Method-fusion", RANDOM: "random"}
_LISTS = {
    "experts": ("Table V: captions as queries, graded by three experts", "Table V", "NDCG@25"),
    "crowd": ("Table V: captions as queries, graded by crowd workers", "Table V", "NDCG@25"),
    "words": ("Table IV: single words, every test picture ranked", "Table IV", "MAP"),
}


def print_click_benchmark(report: WebReport, console: Console) -> None:
    """Print every table, each in the paper's layout with the paper's values beside ours."""
    console.print("Methods for click logs on Flickr8k; the log is simulated from the training captions", style="bold")
    console.print(f"{report.data.log!r}")
    for name in _LISTS:
        _print_list(report, name, console)
    if LEARNED in report.rows:
        _print_fusion(report, console)
    _print_noise(report, console)
    _print_groups(report, console)
    _print_people(report, console)
    _print_costs(report, console)


def _print_list(report: WebReport, name: str, console: Console) -> None:
    title, printed_in, metric = _LISTS[name]
    lists = report.data.lists[name]
    console.print(f"\n{title}\n", style="bold")
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    for column in report.columns:
        listing.add_column(FEATURES.get(column, column), justify="right", no_wrap=True)
    for heading in ("p, random", "p, average", "paper:\nCaffeNet", "paper:\nfeature fusion"):
        listing.add_column(heading, justify="right", no_wrap=True)
    last = report.columns[-1]
    for row in (RANDOM, *report.rows):
        cells = [f"{report.mean(row, column, name):.4f}" for column in report.columns]
        tests = [_p(report, row, other, last, name) for other in (RANDOM, AVERAGE)]
        listing.add_row(report.title_of[row], *cells, *tests, *_printed(report, row, printed_in, metric))
    bound = f"{report.upper_bound(name):.4f}"
    paper = published_value(_PAPER, printed_in, "Upper bound", metric, "CaffeNet") or "–"
    listing.add_row("upper bound", *[bound] * len(report.columns), "", "", paper, "")
    console.print(listing)
    console.print(
        f"\n{len(lists.queries)} queries, {lists.n_judged:,} judged pairs; {report.measure(name).label}; p-values by "
        f"the randomisation test in the column {FEATURES.get(last, last)}."
    )


def _p(report: WebReport, row: str, other: str, column: str, name: str) -> str:
    if row in (other, RANDOM) or other not in (RANDOM, *report.rows):
        return ""
    p_value = report.compare(row, other, column, name).p_value
    return f"{p_value:.4f}" if p_value >= _LEAST_P else f"< {_LEAST_P}"


def _printed(report: WebReport, row: str, printed_in: str, metric: str) -> list[str]:
    name = _PRINTED.get(row, report.title_of[row])
    regimes = ("CaffeNet", "Feature-fusion")
    return [published_value(_PAPER, printed_in, name, metric, regime) or "–" for regime in regimes]


def _print_fusion(report: WebReport, console: Console) -> None:
    column = report.columns[-1]
    held_out = report.held_out_fusion(column)
    shares = ", ".join(f"{name} {share:.2f}" for name, share in report.weights(column).items())
    console.print(f"\nLearned weights ({FEATURES.get(column, column)}), from the development captions: {shares}.")
    console.print(
        f"Weights learned on one half of the development captions, measured on the other: NDCG@25 "
        f"{held_out[LEARNED]:.4f}; equal weights {held_out[AVERAGE]:.4f}; p {held_out['p']:.4f}."
    )


def _print_noise(report: WebReport, console: Console) -> None:
    column = report.columns[-1]
    console.print("\nFigure 7: NDCG@25 of expert grades with irrelevant pictures added\n", style="bold")
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    for fold in _FOLDS:
        listing.add_column(f"{fold}-fold", justify="right", no_wrap=True)
    for row in (RANDOM, *report.rows):
        cells = [f"{value:.4f}" for value in report.noise_curve(row, column, "experts", _FOLDS)]
        listing.add_row(report.title_of[row], *cells)
    console.print(listing)


def _print_groups(report: WebReport, console: Console) -> None:
    column = report.columns[-1]
    console.print("\nFigure 9: expert grades with one-fold noise, by visualness of the query\n", style="bold")
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    sizes = report.group_sizes("experts")
    for group, size in zip(("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1"), sizes, strict=True):
        listing.add_column(f"{group}\n{size}", justify="right", no_wrap=True)
    listing.add_column("Spearman,\nvisualness", justify="right", no_wrap=True)
    listing.add_column("Spearman,\n1/length", justify="right", no_wrap=True)
    for row in (RANDOM, *report.rows):
        means = [_number(value) for value in report.group_means(row, column, "experts")]
        correlations = [_number(value) for value in report.correlations(row, column, "experts").values()]
        listing.add_row(report.title_of[row], *means, *correlations)
    console.print(listing)
    console.print("\nThe paper: DeViSE 0.057 with visualness, 0.224 with 1/length, without noise.")


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _print_people(report: WebReport, console: Console) -> None:
    column = report.columns[-1]
    chosen = report.people_queries("experts")
    console.print("\nTable IX: one kind of query, worst method first\n", style="bold")
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    for heading in ("NDCG@25, people", "NDCG@25, others", "paper: 240 celebrity queries"):
        listing.add_column(heading, justify="right", no_wrap=True)

    def people(row: str) -> float:
        return float(report.values(row, column, "experts")[chosen].mean())

    for row in sorted((RANDOM, *report.rows), key=people):
        others = report.values(row, column, "experts")[~chosen]
        name = _PRINTED.get(row, report.title_of[row])
        paper = published_value(_PAPER, "Table IX", name, "NDCG@25", "240 celebrity-related queries") or "–"
        listing.add_row(report.title_of[row], f"{people(row):.4f}", f"{float(others.mean()):.4f}", paper)
    console.print(listing)
    console.print(f"\n{int(chosen.sum())} of {len(chosen)} queries name a person; celebrities are not among them.")


def _print_costs(report: WebReport, console: Console) -> None:
    feature = report.features[0]
    console.print(f"\nTable VII: time and memory, {FEATURES.get(feature, feature)}\n", style="bold")
    listing = table()
    listing.add_column("method", no_wrap=True, style="bold")
    for heading in (
        "training, s",
        "training, MB",
        "test, s",
        "test, MB",
        "paper:\ntraining",
        "paper:\nMB",
        "paper:\ntest",
        "paper:\nMB",
    ):
        listing.add_column(heading, justify="right", no_wrap=True)
    for method in report.methods:
        run = report.runs[method.name, feature]
        ours = (run.fit_seconds, run.fit_megabytes, run.test_seconds, run.test_megabytes)
        cells = ["–" if math.isnan(value) else f"{value:,.1f}" for value in ours]
        printed = [
            published_value(_PAPER, "Table VII", method.title, metric, regime) or "–"
            for regime in ("training", "test")
            for metric in ("time", "memory_MB")
        ]
        listing.add_row(method.title, *cells, *printed)
    console.print(listing)
    n_pairs = sum(len(lists.queries) * lists.grades.shape[1] for lists, _ in report.data.every_list().values())
    console.print(
        f"\nTest: {n_pairs:,} pairs of query and picture here, 79,926 in the paper. Memory: the most over what was "
        "there before. The paper trained on a Titan X, with 23 million triads."
    )
