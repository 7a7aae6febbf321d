"""What a query log says about its queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.cli.queries_asked import AskedQueries
from diptych.cli.queries_groups import LENGTHS, crossed_groups, describe_groups, length_groups, visualness_names
from diptych.encoders import Visualness, visual_share
from diptych.metrics import spearman
from diptych.protocols import QueryGroups

FORMAT_VERSION = 1
THRESHOLDS = tuple(round(0.1 * step, 1) for step in range(10))
_ADVANCE_EVERY = 5_000


def analyse_queries(
    asked: AskedQueries, visualness: Visualness, *, top: int, advance: Callable[[int, int], None]
) -> dict[str, Any]:
    """Return the whole report, as it is written to JSON."""
    scores, lengths = _measure(asked, visualness, advance)
    by_length, by_visualness = length_groups(lengths), QueryGroups().of(scores)
    return {
        "format": "diptych-queries",
        "format_version": FORMAT_VERSION,
        "queries": len(asked.texts),
        "searches": None if asked.searches is None else int(asked.searches.sum()),
        "clicks": float(asked.clicks.sum()),
        "answered_share": _rate(asked.answered, asked.searches),
        "no_good_match_share": _rate(asked.unmatched, asked.searches),
        "length": {"mean": float(lengths.mean()), "median": float(np.median(lengths)), "longest": int(lengths.max())},
        "visualness": {
            "mean": float(scores.mean()),
            "share_of_none": float((scores == 0).mean()),
            "share_of_all": float((scores == 1).mean()),
        },
        "thresholds": _thresholds(asked, scores),
        "by_length": describe_groups(asked, by_length, LENGTHS),
        "by_visualness": describe_groups(asked, by_visualness, visualness_names()),
        "failing": crossed_groups(asked, by_length, by_visualness),
        "success": "clicks" if asked.answered is None else "answered_share",
        "spearman": _correlations(asked, scores, lengths),
        "top": _top(asked, visualness, top),
    }


def _measure(
    asked: AskedQueries, visualness: Visualness, advance: Callable[[int, int], None]
) -> tuple[FloatArray, IntArray]:
    count = len(asked.texts)
    scores, lengths = np.zeros(count), np.zeros(count, dtype=np.int64)
    for row, query in enumerate(asked.texts):
        scores[row] = visualness.of(query).visualness
        lengths[row] = max(1, len(query.split()))
        if row % _ADVANCE_EVERY == 0:
            advance(row, count)
    advance(count, count)
    return scores, lengths


def _thresholds(asked: AskedQueries, scores: FloatArray) -> list[dict[str, Any]]:
    weights = {"queries": None, "searches": asked.searches, "clicks": asked.clicks}
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


def _correlations(asked: AskedQueries, scores: FloatArray, lengths: IntArray) -> list[dict[str, Any]]:
    pairs = {
        ("visualness", "success"): (scores, asked.success),
        ("1/length", "success"): (1 / lengths, asked.success),
        ("visualness", "1/length"): (scores, 1 / lengths),
    }
    found = {names: spearman(*values) for names, values in pairs.items()}
    return [
        {"between": list(names), "coefficient": _number(each.coefficient), "p_value": _number(each.p_value)}
        for names, each in found.items()
    ]


def _top(asked: AskedQueries, visualness: Visualness, count: int) -> list[dict[str, Any]]:
    rows = np.argsort(-asked.frequency, kind="stable")[:count]
    listed = []
    for row in rows.tolist():
        found = visualness.of(asked.texts[row])
        entry: dict[str, Any] = {
            "query": found.query,
            "marked": found.marked,
            "visualness": found.visualness,
            "spans": [span._asdict() for span in found.spans],
            "clicks": float(asked.clicks[row]),
        }
        if asked.searches is not None and asked.answered is not None:
            entry["searches"] = int(asked.searches[row])
            entry["answered_share"] = float(asked.answered[row] / asked.searches[row])
        listed.append(entry)
    return listed


def _rate(part: FloatArray | None, whole: FloatArray | None) -> float | None:
    return None if part is None or whole is None else float(part.sum() / whole.sum())


def _number(value: float) -> float | None:
    """Return the number, or None for what is not defined: JSON knows no NaN."""
    return None if value != value else value
