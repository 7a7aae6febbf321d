"""Dong et al., "Cross-media similarity evaluation for web image retrieval in the wild", TMM 2018: tables in its layout.

Every table is made of the document that ``diptych bench clicks --output`` writes, with what the paper prints beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.benchmark.click_data import FEATURES
from diptych.benchmark.clicks import AVERAGE_FUSION, LEARNED_FUSION, RANDOM_ROW, TITLES, standard_error
from diptych.benchmark.published import published_rows, published_value
from diptych.benchmark.tables import NOTHING, Table

Document = Mapping[str, Any]
_PAPER = "003"
MIN_SHOWN_P = 0.0001
_GROUPS = ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1")
_LISTS = {
    "experts": ("Table V: captions as queries, graded by three experts", "Table V", "NDCG@25"),
    "crowd": ("Table V: captions as queries, graded by crowd workers", "Table V", "NDCG@25"),
    "words": ("Table IV: single words, every test picture ranked", "Table IV", "MAP"),
}
_IN_TABLE_VIII = {RANDOM_ROW: "Random baseline", AVERAGE_FUSION: "average-fusion", LEARNED_FUSION: "learned-fusion"}
_WINNER = "Top performer [35]"


def click_tables(document: Document) -> dict[str, Table]:
    """Return the tables IV to X and the numbers of figures 7 to 10, as far as the document has them."""
    lists = document["lists"]
    tables = {name: _list(document, name) for name in _LISTS if name in lists}
    tables |= {name: _elsewhere(document, name) for name in lists if name not in (*_LISTS, "captions")}
    makers = {
        "noise": _noise,
        "neighbours": _neighbours,
        "experts": _groups,
        "correlations": _correlations,
        "ranks": _ranks,
        "answers": _answers,
        "costs": _costs,
    }
    names = {"experts": "groups"}
    tables |= {names.get(key, key): make(document) for key, make in makers.items() if key in document}
    tables |= {f"queries-{name}": _queries(document, name) for name, found in lists.items() if "values" in found}
    if "experts" not in document:
        return tables
    grades = {"grades": _grades(document)} if "grades" in document["experts"] else {}
    return tables | grades | {"people": _people(document), "others": _others(document)}


def _rows(document: Document, name: str) -> list[str]:
    return [RANDOM_ROW, *document["lists"][name]["means"]]


def _columns(document: Document, name: str) -> list[str]:
    return list(next(iter(document["lists"][name]["means"].values())))


def _title(row: str) -> str:
    return TITLES.get(row, row)


def _value(found: Document, row: str, column: str) -> str:
    return f"{found['random'] if row == RANDOM_ROW else found['means'][row][column]:.4f}"


def _p(found: Document, row: str, other: str) -> str:
    """Return the p-value of two rows, which the document has once for each pair."""
    names = () if row == RANDOM_ROW else (f"{row} | {other}", f"{other} | {row}")
    p_value = next((found["p_values"][name] for name in names if name in found["p_values"]), None)
    return "" if p_value is None else _p_of(p_value)


def _p_of(p_value: float) -> str:
    return f"{p_value:.4f}" if p_value >= MIN_SHOWN_P else f"< {MIN_SHOWN_P}"


def _printed(place: str, name: str, metric: str, regime: str) -> str:
    # Two methods are in no table of the paper, but in its last sentence of results.
    values = (published_value(_PAPER, where, name, metric, regime) for where in (place, "text"))
    return next((value for value in values if value), NOTHING)


def _in_paper(row: str) -> str:
    return {AVERAGE_FUSION: "Method-fusion", RANDOM_ROW: "random"}.get(row, _title(row))


def _list(document: Document, name: str) -> Table:
    title, place, metric = _LISTS[name]
    found, columns = document["lists"][name], _columns(document, name)
    regimes = ("CaffeNet", "Feature-fusion")
    rows = [
        (
            _title(row),
            *(_value(found, row, column) for column in columns),
            *(_p(found, row, other) for other in (RANDOM_ROW, AVERAGE_FUSION)),
            *(_printed(place, _in_paper(row), metric, regime) for regime in regimes),
        )
        for row in _rows(document, name)
    ]
    bound = [f"{found['upper_bound']:.4f}"] * len(columns)
    rows.append(("upper bound", *bound, "", "", _printed(place, "Upper bound", metric, regimes[0]), ""))
    headings = ("method", *(FEATURES.get(column, column) for column in columns), "p, random", "p, average")
    note = (
        f"{found['queries']} queries, {found['judged']:,} judged pairs; {found['measure']}; p-values by the "
        f"randomisation test in the column {FEATURES.get(columns[-1], columns[-1])}."
    )
    return Table(title, (*headings, "paper: CaffeNet", "paper: fusion"), tuple(rows), notes=(note,))


def _elsewhere(document: Document, name: str) -> Table:
    found, column = document["lists"][name], _columns(document, name)[-1]
    rows = []
    for row in _rows(document, name):
        values = found.get("values", {}).get(row)
        error = "" if values is None else f"{standard_error(np.array(values)):.4f}"
        paper = _printed("Table VIII", _IN_TABLE_VIII.get(row, _title(row)), "NDCG@25", "-")
        tests = [_p(found, row, other) for other in (RANDOM_ROW, AVERAGE_FUSION)]
        rows.append((_title(row), _value(found, row, column), error, *tests, paper))
    bound = f"{found['upper_bound']:.4f}"
    rows.append(("upper bound", bound, "", "", "", _printed("Table VIII", "Upper bound", "NDCG@25", "-")))
    rows.append(("Dong et al. (2015)", NOTHING, "", "", "", _printed("Table VIII", _WINNER, "NDCG@25", "-")))
    headings = ("method", "NDCG@25", "standard error", "p, random", "p, average", "paper: IRC-MM15-test")
    title = f"Table VIII: another test set, {name}, on which nothing was chosen"
    return Table(title, headings, tuple(rows), notes=(f"{found['queries']} queries, {found['judged']:,} pairs.",))


def _noise(document: Document) -> Table:
    folds = next(iter(document["noise"].values()))
    rows = [(_title(row), *(f"{value:.4f}" for value in curve.values())) for row, curve in document["noise"].items()]
    title = "Figure 7: NDCG@25 of expert grades with irrelevant pictures added"
    return Table(title, ("method", *(f"{fold}-fold" for fold in folds)), tuple(rows))


def _neighbours(document: Document) -> Table:
    curves = document["neighbours"]
    counts = [str(count) for count in next(iter(curves.values()))]
    rows = [
        (row, *(f"{mean:.4f}" for mean, _ in curve.values()), f"{max(error for _, error in curve.values()):.4f}")
        for row, curve in curves.items()
    ]
    chance = f"{document['lists']['experts']['random']:.4f}"
    rows.append((RANDOM_ROW, *[chance] * len(counts), ""))
    note = "The paper takes 50 for image2text and 30 for text2image, and prints its curves without numbers."
    title = "Figure 8: NDCG@25 of expert grades by the number of neighbours"
    return Table(title, ("method", *counts, "standard error"), tuple(rows), notes=(note,))


def _groups(document: Document) -> Table:
    experts = document["experts"]
    sizes = [f"{group} ({size})" for group, size in zip(_GROUPS, experts["group_sizes"], strict=True)]
    rows = []
    for row, means in experts["group_means"]["1-fold noise"].items():
        correlations = experts["spearman"].get(row, {}).values()
        cells = [*_cells(means), *_cells(correlations)]
        rows.append((_title(row), *cells, *[""] * (len(sizes) + 2 - len(cells))))
    headings = ("method", *sizes, "Spearman, visualness", "Spearman, 1/length")
    title = "Figure 9: expert grades with one-fold noise, by visualness of the query"
    return Table(title, headings, tuple(rows))


def _cells(values: Sequence[float | None] | Any) -> list[str]:
    return [NOTHING if value is None else f"{value:.3f}" for value in values]


def _correlations(document: Document) -> Table:
    found = document["correlations"]
    rows = []
    for kind, name in (("visualness", "query visualness"), ("1/length", "reciprocal query length")):
        paper = published_value(_PAPER, "text", f"DeViSE vs {name}", "Spearman", "zero noise") or NOTHING
        # Queries of equal values correlate with nothing.
        pairs = found["by_noise"][kind].values()
        cells = (NOTHING if value is None or p is None else f"{value:.3f} ({_p_of(p)})" for value, p in pairs)
        rows.append((kind, *cells, paper))
    folds = next(iter(found["by_noise"].values()))
    title = f"Figure 10: Spearman's correlation of queries' NDCG@25 ({_title(found['row'])}), and p, with noise"
    return Table(title, ("with", *(f"{fold}-fold" for fold in folds), "paper: 0-fold"), tuple(rows))


def _queries(document: Document, name: str) -> Table:
    found = document["lists"][name]
    first, *others = found["values"]
    rows = []
    for row in others:
        gaps = np.array(found["values"][row]) - np.array(found["values"][first])
        counts = [int((gaps > 0).sum()), int((gaps < 0).sum()), int((gaps == 0).sum())]
        rows.append((_title(row), *map(str, counts), f"{gaps.max():+.4f}", f"{gaps.min():+.4f}"))
    headings = ("method", "better", "worse", "equal", "most won", "most lost")
    title = f"Figure 3: query by query beside {_title(first)}, {name}"
    return Table(title, headings, tuple(rows), notes=(f"{found['queries']} queries; {found['measure']}.",))


def _grades(document: Document) -> Table:
    experts = document["experts"]
    sizes = [f"{group} ({size})" for group, size in zip(_GROUPS, experts["group_sizes"], strict=True)]
    rows = tuple((f"grade {grade}", *map(str, counts)) for grade, counts in experts["grades"].items())
    return Table("Figure 4: judged pictures by grade and visualness of the query", ("grade", *sizes), rows)


def _ranks(document: Document) -> Table:
    curves = document["ranks"]
    rows = tuple((_title(row), *(f"{value:.4f}" for value in curve.values())) for row, curve in curves.items())
    ranks = next(iter(curves.values()))
    return Table("Figure 5: NDCG of expert grades by rank", ("method", *(f"@{rank}" for rank in ranks)), rows)


def _answers(document: Document) -> Table:
    rows = [
        (
            one["query"],
            f"{one['visualness']:.3f}",
            _title(row),
            ", ".join(f"{name} ({grade:g})" for name, grade in shown),
        )
        for one in document["answers"]
        for row, shown in one["answers"].items()
    ]
    headings = ("query", "visualness", "method", "first pictures (grades)")
    return Table("Table VI: queries with their first answers", headings, tuple(rows), n_names=4)


def _people(document: Document) -> Table:
    means = sorted(document["experts"]["people"].items(), key=lambda item: item[1] or 0.0)
    regime = "240 celebrity-related queries"
    rows = [
        (
            _title(row),
            NOTHING if value is None else f"{value:.4f}",
            published_value(_PAPER, "Table IX", _in_paper(row), "NDCG@25", regime) or NOTHING,
        )
        for row, value in means
    ]
    headings = ("method", "NDCG@25, people", "paper: 240 celebrity queries")
    note = "Queries that name a person; celebrities are not among them."
    return Table("Table IX: one kind of query, worst method first", headings, tuple(rows), notes=(note,))


def _others(document: Document) -> Table:
    found, column = document["lists"]["experts"], _columns(document, "experts")[-1]
    own = {_title(row): row for row in _rows(document, "experts")} | {"average-fusion": AVERAGE_FUSION}
    chance = published_value(_PAPER, "Table V", RANDOM_ROW, "NDCG@25", "CaffeNet") or NOTHING
    printed = [(row["method"], row["value"]) for row in published_rows() if row["paper"] == _PAPER and _in_x(row)]
    rows = []
    for method, paper in [(RANDOM_ROW, chance), *printed]:
        row = own.get(method.partition(" [")[0], "")
        measured = row == RANDOM_ROW or row in found["means"]
        cells = (_value(found, row, column), _p(found, row, "text2image")) if measured else (NOTHING, "")
        rows.append((method, *cells, paper))
    headings = ("method", "NDCG@25", "p, text2image", "paper: Clickture-dev")
    return Table("Table X: other methods, experts", headings, tuple(rows))


def _in_x(row: Mapping[str, str]) -> bool:
    """Return True if a printed value stands in Table X or in the sentence after it."""
    return row["table"] == "Table X" or (row["table"], row["regime"], row["metric"]) == ("text", "CaffeNet", "NDCG@25")


def _costs(document: Document) -> Table:
    feature = _columns(document, next(iter(document["lists"])))[0]
    rows = []
    for name, cost in document["costs"].items():
        method, _, used = name.rpartition(" ")
        if used != feature:
            continue
        ours = (f"{cost[part]:,.1f}" for part in ("fit_seconds", "fit_megabytes", "test_seconds", "test_megabytes"))
        paper = (
            published_value(_PAPER, "Table VII", _title(method), metric, regime) or NOTHING
            for regime in ("training", "test")
            for metric in ("time", "memory_MB")
        )
        rows.append((_title(method), *ours, *paper))
    kinds = ("training, s", "training, MB", "test, s", "test, MB")
    printed = ("paper: training", "paper: MB", "paper: test", "paper: MB")
    note = "Seconds of processor time; memory: the most over what was there before. The paper trained on a Titan X."
    return Table("Table VII: time and memory", ("method", *kinds, *printed), tuple(rows), notes=(note,))
