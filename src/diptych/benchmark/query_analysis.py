"""What a query log says about its queries: how visual they are, how long, and which of them fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.encoders import Visualness, visual_share
from diptych.metrics import spearman
from diptych.protocols import QueryGroups

LENGTHS = ("1 word", "2 words", "3 words", "4 words", "5 words", "6 and more")
_LEVEL = 0.05
FORMAT_VERSION = 1
THRESHOLDS = tuple(round(0.1 * step, 1) for step in range(10))
_ADVANCE_EVERY = 5_000


@dataclass(frozen=True)
class LoggedQueries:
    """The different queries of a log, each with its counts; a table of clicks knows the clicks alone."""

    texts: Sequence[str]
    clicks: FloatArray
    searches: FloatArray | None = None
    answered: FloatArray | None = None  # In how many of the searches something was clicked.
    unmatched: FloatArray | None = None  # How many of the searches had no good match.

    @property
    def frequency(self) -> FloatArray:
        """How often each query was asked, as far as the log knows: searches, or else clicks."""
        return self.clicks if self.searches is None else self.searches

    @property
    def success(self) -> FloatArray:
        """How well each query did: the share of its searches with a click, or else its clicks."""
        if self.searches is None or self.answered is None:
            return self.clicks
        return self.answered / self.searches


def visualness_names() -> list[str]:
    """Return the names of the five groups of Dong et al. (2018)."""
    return [f"{low:g}–{high:g}" for low, high in pairwise(QueryGroups().edges)]


def describe_groups(log: LoggedQueries, groups: IntArray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what became of the queries of each group; a group without queries has only its name and zeros."""
    return [_describe(log, groups == number, name) for number, name in enumerate(names)]


def crossed_groups(log: LoggedQueries, lengths: IntArray, visualness: IntArray) -> list[dict[str, Any]]:
    """Return the groups of one length and one visualness that hold a query and fail, the worst first."""
    described = [
        _describe(log, (lengths == row) & (visualness == column), f"{length}, visualness {name}")
        for row, length in enumerate(LENGTHS)
        for column, name in enumerate(visualness_names())
    ]
    failing = [group for group in described if group.get("fails")]
    return sorted(failing, key=lambda group: (group["answered_share"], -group["searches"]))


def _describe(log: LoggedQueries, inside: BoolArray, name: str) -> dict[str, Any]:
    queries, clicks = int(inside.sum()), float(log.clicks[inside].sum())
    group: dict[str, Any] = {
        "group": name,
        "queries": queries,
        "share_of_queries": queries / len(inside),
        "clicks": clicks,
        "share_of_clicks": _share(clicks, log.clicks),
        "clicks_per_query": clicks / queries if queries else None,
    }
    if log.searches is None or log.answered is None or log.unmatched is None:
        return group
    searches, answered = float(log.searches[inside].sum()), float(log.answered[inside].sum())
    return {
        **group,
        "searches": int(searches),
        "answered_share": answered / searches if searches else None,
        "no_good_match_share": float(log.unmatched[inside].sum()) / searches if searches else None,
        "fails": _fails(log.searches, log.answered, inside),
    }


def _share(part: float, whole: FloatArray) -> float | None:
    total = float(whole.sum())
    return part / total if total else None


def _fails(searches: FloatArray, answered: FloatArray, inside: BoolArray) -> bool:
    """Return True if searches in a group are answered less often than the others, by Fisher's exact test."""
    from scipy.stats import fisher_exact

    table = [
        [int(answered[part].sum()), int(searches[part].sum() - answered[part].sum())] for part in (inside, ~inside)
    ]
    if not all(sum(row) for row in table):
        return False
    return bool(fisher_exact(table, alternative="less").pvalue < _LEVEL)


def analyse_queries(
    log: LoggedQueries, visualness: Visualness, *, top: int, advance: Callable[[int, int], None]
) -> dict[str, Any]:
    """Return the whole report, as it is written to JSON."""
    scores, lengths = _measure(log, visualness, advance)
    by_length, by_visualness = np.clip(lengths, 1, len(LENGTHS)) - 1, QueryGroups().of(scores)
    return {
        "format": "diptych-queries",
        "format_version": FORMAT_VERSION,
        "queries": len(log.texts),
        "searches": None if log.searches is None else int(log.searches.sum()),
        "clicks": float(log.clicks.sum()),
        "answered_share": _rate(log.answered, log.searches),
        "no_good_match_share": _rate(log.unmatched, log.searches),
        "length": {"mean": float(lengths.mean()), "median": float(np.median(lengths)), "longest": int(lengths.max())},
        "visualness": {
            "mean": float(scores.mean()),
            "share_of_none": float((scores == 0).mean()),
            "share_of_all": float((scores == 1).mean()),
        },
        "thresholds": _thresholds(log, scores),
        "by_length": describe_groups(log, by_length, LENGTHS),
        "by_visualness": describe_groups(log, by_visualness, visualness_names()),
        "failing": crossed_groups(log, by_length, by_visualness),
        "success": "clicks" if log.answered is None else "answered_share",
        "spearman": _correlations(log, scores, lengths),
        "top": _top(log, visualness, top),
    }


def _measure(
    log: LoggedQueries, visualness: Visualness, advance: Callable[[int, int], None]
) -> tuple[FloatArray, IntArray]:
    count = len(log.texts)
    scores, lengths = np.zeros(count), np.zeros(count, dtype=np.int64)
    for row, query in enumerate(log.texts):
        scores[row] = visualness.of(query).visualness
        lengths[row] = max(1, len(query.split()))
        if row % _ADVANCE_EVERY == 0:
            advance(row, count)
    advance(count, count)
    return scores, lengths


def _thresholds(log: LoggedQueries, scores: FloatArray) -> list[dict[str, Any]]:
    weights = {"queries": None, "searches": log.searches, "clicks": log.clicks}
    return [
        {
            "threshold": threshold,
            **{
                f"share_of_{name}": _number(visual_share(scores, threshold, weight))
                for name, weight in weights.items()
                if name == "queries" or weight is not None
            },
        }
        for threshold in THRESHOLDS
    ]


def _correlations(log: LoggedQueries, scores: FloatArray, lengths: IntArray) -> list[dict[str, Any]]:
    pairs = {
        ("visualness", "success"): (scores, log.success),
        ("1/length", "success"): (1 / lengths, log.success),
        ("visualness", "1/length"): (scores, 1 / lengths),
    }
    found = {names: spearman(*values) for names, values in pairs.items()}
    return [
        {"between": list(names), "coefficient": _number(each.coefficient), "p_value": _number(each.p_value)}
        for names, each in found.items()
    ]


def _top(log: LoggedQueries, visualness: Visualness, count: int) -> list[dict[str, Any]]:
    listed = []
    for row in np.argsort(-log.frequency, kind="stable")[:count].tolist():
        found = visualness.of(log.texts[row])
        entry: dict[str, Any] = {
            "query": found.query,
            "marked": found.marked,
            "visualness": found.visualness,
            "spans": [span._asdict() for span in found.spans],
            "clicks": float(log.clicks[row]),
        }
        if log.searches is not None and log.answered is not None:
            entry["searches"] = int(log.searches[row])
            entry["answered_share"] = float(log.answered[row] / log.searches[row])
        listed.append(entry)
    return listed


def _rate(part: FloatArray | None, whole: FloatArray | None) -> float | None:
    return None if part is None or whole is None else float(part.sum() / whole.sum())


def _number(value: float) -> float | None:
    """Return the number, or None for what is not defined: JSON knows no NaN."""
    return None if value != value else value
