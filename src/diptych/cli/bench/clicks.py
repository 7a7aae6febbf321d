"""The tables and figures of `diptych bench clicks`: methods for click logs on human judgements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from diptych import figures
from diptych.benchmark.published import published_rows, published_value
from diptych.benchmark.studies.web_data import FEATURES
from diptych.benchmark.web import (
    AVERAGE_FUSION,
    LEARNED_FUSION,
    NEIGHBOUR_COUNTS,
    NEIGHBOUR_MODELS,
    RANDOM_ROW,
    WebReport,
    standard_error,
)
from diptych.cli.console.output import bold, numbers, or_dash, table
from diptych.cli.console.report_files import save_figures
from diptych.figures.group_results import MAX_QUERY_GROUP_METHODS

_PRINTED_FOLDS = (0, 1, 2, 5, 10)
_GROUPS = ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1")
_PAPER = "003"
_LEAST_P = 0.0001
DRAWN_FOLDS = tuple(range(11))
_CORRELATED = "devise"
_WINNER = "Top performer [35]"


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
    if LEARNED_FUSION in report.rows:
        _print_fusion(report, console)
    _print_noise(report, console)
    _print_neighbours(report, console)
    _print_groups(report, console)
    _print_correlations(report, console)
    for name in report.data.elsewhere:
        _print_elsewhere(report, name, console)
    _print_people(report, console)
    _print_others(report, console)
    _print_costs(report, console)


def _print_list(report: WebReport, name: str, console: Console) -> None:
    title, printed_in, metric = _LISTS[name]
    lists = report.data.lists[name]
    console.print(f"\n{title}\n", style="bold")
    features = numbers(*(FEATURES.get(column, column) for column in report.columns))
    beside = numbers("p, random", "p, average", "paper:\nCaffeNet", "paper:\nfeature fusion")
    listing = table(bold("method"), *features, *beside)
    last = report.columns[-1]
    for row in (RANDOM_ROW, *report.rows):
        cells = [f"{report.mean(row, column, name):.4f}" for column in report.columns]
        tests = [_p(report, row, other, last, name) for other in (RANDOM_ROW, AVERAGE_FUSION)]
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
    if row in (other, RANDOM_ROW) or other not in (RANDOM_ROW, *report.rows):
        return ""
    return _p_of(report.compare(row, other, column, name).p_value)


def _p_of(p_value: float) -> str:
    return or_dash(p_value, ".4f") if not p_value < _LEAST_P else f"< {_LEAST_P}"


def _printed(report: WebReport, row: str, printed_in: str, metric: str) -> list[str]:
    name = _name_in_paper(report, row)
    regimes = ("CaffeNet", "Feature-fusion")
    # Two methods are in no table of the paper, but in its last sentence of results.
    places = ((printed_in, regime) for regime in regimes)
    return [
        published_value(_PAPER, place, name, metric, regime)
        or published_value(_PAPER, "text", name, metric, regime)
        or "–"
        for place, regime in places
    ]


def _name_in_paper(report: WebReport, row: str) -> str:
    return {AVERAGE_FUSION: "Method-fusion", RANDOM_ROW: "random"}.get(row, report.title_of[row])


def _print_fusion(report: WebReport, console: Console) -> None:
    column = report.columns[-1]
    held_out = report.held_out_fusion(column)
    shares = ", ".join(f"{name} {share:.2f}" for name, share in report.weights(column).items())
    console.print(f"\nLearned weights ({FEATURES.get(column, column)}), from the development captions: {shares}.")
    console.print(
        f"Weights learned on one half of the development captions, measured on the other: NDCG@25 "
        f"{held_out[LEARNED_FUSION]:.4f}; equal weights {held_out[AVERAGE_FUSION]:.4f}; p {held_out['p']:.4f}."
    )


def _print_noise(report: WebReport, console: Console) -> None:
    column = report.columns[-1]
    console.print("\nFigure 7: NDCG@25 of expert grades with irrelevant pictures added\n", style="bold")
    listing = table(bold("method"), *numbers(*(f"{fold}-fold" for fold in _PRINTED_FOLDS)))
    for row in (RANDOM_ROW, *report.rows):
        cells = [f"{value:.4f}" for value in report.noise_curve(row, column, "experts", _PRINTED_FOLDS)]
        listing.add_row(report.title_of[row], *cells)
    console.print(listing)


def _print_neighbours(report: WebReport, console: Console) -> None:
    feature = report.features[0]
    title = f"\nFigure 8: NDCG@25 of expert grades by the number of neighbours, {FEATURES.get(feature, feature)}\n"
    console.print(title, style="bold")
    listing = table(bold("method"), *numbers(*map(str, NEIGHBOUR_COUNTS), "standard error"))
    for row in NEIGHBOUR_MODELS:
        curve = report.neighbour_curve(row, "experts", NEIGHBOUR_COUNTS)
        listing.add_row(row, *(f"{mean:.4f}" for mean, _ in curve), f"{max(error for _, error in curve):.4f}")
    chance = f"{report.mean(RANDOM_ROW, feature, 'experts'):.4f}"
    listing.add_row(RANDOM_ROW, *[chance] * len(NEIGHBOUR_COUNTS), "")
    console.print(listing)
    console.print("\nThe paper takes 50 for image2text and 30 for text2image, and prints its curves without numbers.")


def _print_groups(report: WebReport, console: Console) -> None:
    column = report.columns[-1]
    console.print("\nFigure 9: expert grades with one-fold noise, by visualness of the query\n", style="bold")
    groups = [f"{group}\n{size}" for group, size in zip(_GROUPS, report.group_sizes("experts"), strict=True)]
    listing = table(bold("method"), *numbers(*groups, "Spearman,\nvisualness", "Spearman,\n1/length"))
    for row in (RANDOM_ROW, *report.rows):
        means = [or_dash(value, ".3f") for value in report.group_means(row, column, "experts")]
        found = report.correlations(row, column, "experts").values()
        listing.add_row(report.title_of[row], *means, *(or_dash(one.coefficient, ".3f") for one in found))
    console.print(listing)


def _print_correlations(report: WebReport, console: Console) -> None:
    row, column = _correlated(report), report.columns[-1]
    console.print(
        f"\nFigure 10: Spearman's correlation of queries' NDCG@25 ({report.title_of[row]}), and p, with noise\n",
        style="bold",
    )
    listing = table(bold("with"), *numbers(*(f"{fold}-fold" for fold in _PRINTED_FOLDS), "paper: 0-fold"))
    folds = [report.correlations(row, column, "experts", fold) for fold in _PRINTED_FOLDS]
    for kind, name in (("visualness", "query visualness"), ("1/length", "reciprocal query length")):
        cells = (f"{or_dash(fold[kind].coefficient, '.3f')} ({_p_of(fold[kind].p_value)})" for fold in folds)
        paper = published_value(_PAPER, "text", f"DeViSE vs {name}", "Spearman", "zero noise")
        listing.add_row(kind, *cells, paper or "–")
    console.print(listing)


def _correlated(report: WebReport) -> str:
    return _CORRELATED if _CORRELATED in report.rows else report.rows[0]


def _print_elsewhere(report: WebReport, name: str, console: Console) -> None:
    """Print Table VIII: methods and weights as they are, on pictures of another data set."""
    lists, column = report.data.elsewhere[name], report.columns[-1]
    console.print(f"\nTable VIII: another test set, {name}, on which nothing was chosen\n", style="bold")
    beside = numbers("NDCG@25", "standard error", "p, random", "p, average", "paper: IRC-MM15-test")
    listing = table(bold("method"), *beside)
    printed = {RANDOM_ROW: "Random baseline", AVERAGE_FUSION: "average-fusion", LEARNED_FUSION: "learned-fusion"}
    for row in (RANDOM_ROW, *report.rows):
        values = report.values(row, column, name)
        tests = [_p(report, row, other, column, name) for other in (RANDOM_ROW, AVERAGE_FUSION)]
        paper = published_value(_PAPER, "Table VIII", printed.get(row, report.title_of[row]), "NDCG@25", "-") or "–"
        listing.add_row(report.title_of[row], f"{values.mean():.4f}", f"{standard_error(values):.4f}", *tests, paper)
    others = {"upper bound": ("Upper bound", f"{report.upper_bound(name):.4f}"), "Dong et al. (2015)": (_WINNER, "–")}
    for title, (method, ours) in others.items():
        listing.add_row(title, ours, "", "", "", published_value(_PAPER, "Table VIII", method, "NDCG@25", "-") or "–")
    console.print(listing)
    console.print(f"\n{len(lists.queries)} queries, {lists.n_judged:,} pairs.")


def _print_others(report: WebReport, console: Console) -> None:
    """Print Table X: what others report on the paper's test set, and which of these methods are measured here."""
    column = report.columns[-1]
    own = {title: row for row, title in report.title_of.items()} | {"average-fusion": AVERAGE_FUSION}
    console.print("\nTable X: other methods, experts\n", style="bold")
    heads = numbers("NDCG@25", "standard error", "p, text2image", "paper: Clickture-dev")
    listing = table(bold("method"), *heads)
    printed = [(each["method"], each["value"]) for each in published_rows() if each["paper"] == _PAPER and _in_x(each)]
    chance = published_value(_PAPER, "Table V", RANDOM_ROW, "NDCG@25", "CaffeNet") or "–"
    for method, paper in [(RANDOM_ROW, chance), *printed]:
        row = own.get(method.partition(" [")[0], "")
        cells = ["–", "", ""]
        if row in (RANDOM_ROW, *report.rows):
            values = report.values(row, column, "experts")
            cells = [
                f"{values.mean():.4f}",
                f"{standard_error(values):.4f}",
                _p(report, row, "text2image", column, "experts"),
            ]
        listing.add_row(method, *cells, paper)
    console.print(listing)


def _in_x(row: Mapping[str, str]) -> bool:
    """Whether a printed value stands in Table X or in the sentence after it."""
    return row["table"] == "Table X" or (row["table"], row["regime"], row["metric"]) == ("text", "CaffeNet", "NDCG@25")


def _print_people(report: WebReport, console: Console) -> None:
    column = report.columns[-1]
    chosen = report.people_queries("experts")
    console.print("\nTable IX: one kind of query, worst method first\n", style="bold")
    columns = numbers("NDCG@25, people", "NDCG@25, others", "paper: 240 celebrity queries")
    listing = table(bold("method"), *columns)

    def people(row: str) -> float:
        return float(report.values(row, column, "experts")[chosen].mean())

    for row in sorted((RANDOM_ROW, *report.rows), key=people):
        others = report.values(row, column, "experts")[~chosen]
        name = _name_in_paper(report, row)
        paper = published_value(_PAPER, "Table IX", name, "NDCG@25", "240 celebrity-related queries") or "–"
        listing.add_row(report.title_of[row], f"{people(row):.4f}", f"{float(others.mean()):.4f}", paper)
    console.print(listing)
    console.print(f"\n{int(chosen.sum())} of {len(chosen)} queries name a person; celebrities are not among them.")


def _print_costs(report: WebReport, console: Console) -> None:
    feature = report.features[0]
    console.print(f"\nTable VII: time and memory, {FEATURES.get(feature, feature)}\n", style="bold")
    measured = numbers("training, s", "training, MB", "test, s", "test, MB")
    paper = numbers("paper:\ntraining", "paper:\nMB", "paper:\ntest", "paper:\nMB")
    listing = table(bold("method"), *measured, *paper)
    for method in report.methods:
        run = report.runs[method.name, feature]
        ours = (run.fit_seconds, run.fit_megabytes, run.test_seconds, run.test_megabytes)
        cells = [or_dash(value, ",.1f") for value in ours]
        printed = [
            published_value(_PAPER, "Table VII", method.title, metric, regime) or "–"
            for regime in ("training", "test")
            for metric in ("time", "memory_MB")
        ]
        listing.add_row(method.title, *cells, *printed)
    console.print(listing)
    n_pairs = sum(len(lists.queries) * lists.grades.shape[1] for lists, _ in report.data.every_list().values())
    console.print(
        f"\nTest: {n_pairs:,} pairs of query and picture here, 79,926 in the paper. Seconds of processor "
        "time; memory: the most over what was there before. The paper trained on a Titan X, with 23 million triads."
    )


def draw_click_benchmark(report: WebReport, folder: Path) -> list[Path]:
    """Draw curves over noise and neighbours, correlations, and groups of visualness; return the files."""
    column, folds = report.columns[-1], DRAWN_FOLDS
    correlated = _correlated(report)
    followed = [report.correlations(correlated, column, "experts", fold) for fold in folds]
    neighbours = {
        row: [mean for mean, _ in report.neighbour_curve(row, "experts", NEIGHBOUR_COUNTS)] for row in NEIGHBOUR_MODELS
    }
    neighbours[RANDOM_ROW] = [report.mean(RANDOM_ROW, column, "experts")] * len(NEIGHBOUR_COUNTS)
    curves = {
        report.title_of[row]: report.noise_curve(row, column, "experts", DRAWN_FOLDS)
        for row in (*report.rows, RANDOM_ROW)
    }
    drawn = {
        "clicks-noise.png": figures.noise_curves(
            DRAWN_FOLDS, curves, score="NDCG@25", title="Expert grades, with irrelevant pictures added"
        ),
        "clicks-neighbours.png": figures.noise_curves(
            NEIGHBOUR_COUNTS,
            neighbours,
            score="NDCG@25",
            title="Expert grades",
            against="neighbours",
        ),
        "clicks-correlations.png": figures.noise_curves(
            folds,
            {kind: [found[kind].coefficient for found in followed] for kind in followed[0]},
            score="Spearman's correlation",
            title=f"What predicts the answers of {report.title_of[correlated]}",
        ),
        "clicks-visualness.png": figures.query_group_bars(
            _GROUPS,
            {report.title_of[row]: report.group_means(row, column, "experts") for row in _shown(report)},
            report.group_means(RANDOM_ROW, column, "experts"),
            counts=report.group_sizes("experts"),
            title="Experts, one-fold noise",
        ),
    }
    return save_figures(drawn, folder)


def _shown(report: WebReport) -> list[str]:
    """Return the methods of the fusion and their average, as many as bars can tell apart."""
    fused = [method.name for method in report.methods if method.is_fused]
    shown = [row for row in (*fused, AVERAGE_FUSION) if row in report.rows and row != LEARNED_FUSION]
    return shown[:MAX_QUERY_GROUP_METHODS]
