"""What a table of clicks says about its queries: how visual they are and how long, after Dong et al. (2018)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from diptych.arrays import FloatArray, IntArray
from diptych.data.clicks import ClickLog
from diptych.encoders import Visualness, visual_share
from diptych.metrics import spearman
from diptych.protocols import QueryGroups

LENGTHS = ("1 word", "2 words", "3 words", "4 words", "5 words", "6 and more")
THRESHOLDS = tuple(round(0.1 * step, 1) for step in range(10))


def analyse_queries(log: ClickLog, visualness: Visualness, *, top: int = 20) -> dict[str, Any]:
    """Return groups by length and visualness, shares above thresholds, correlations and frequent queries, as JSON."""
    clicks = np.bincount(log.query_ids, weights=log.clicks, minlength=len(log.queries)).astype(np.float64)
    scores = np.array([visualness.of(query).visualness for query in log.queries])
    lengths = np.array([max(1, len(query.split())) for query in log.queries])
    names = [f"{low:g}–{high:g}" for low, high in pairwise(QueryGroups().edges)]
    return {
        "queries": len(log.queries),
        "clicks": float(clicks.sum()),
        "length": {"mean": float(lengths.mean()), "median": float(np.median(lengths)), "longest": int(lengths.max())},
        "visualness": {
            "mean": float(scores.mean()),
            "share_of_none": float((scores == 0).mean()),
            "share_of_all": float((scores == 1).mean()),
        },
        "thresholds": [
            {
                "threshold": threshold,
                "share_of_queries": _number(visual_share(scores, threshold, None)),
                "share_of_clicks": _number(visual_share(scores, threshold, clicks)),
            }
            for threshold in THRESHOLDS
        ],
        "by_length": _groups(clicks, np.clip(lengths, 1, len(LENGTHS)) - 1, LENGTHS),
        "by_visualness": _groups(clicks, QueryGroups().of(scores), names),
        "spearman": _correlations(clicks, scores, lengths),
        "top": _top(list(log.queries), clicks, visualness, top),
    }


def _groups(clicks: FloatArray, groups: IntArray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the queries and clicks of each group; a group without queries has only its name and zeros."""
    found = []
    for number, name in enumerate(names):
        inside = groups == number
        queries, in_group = int(inside.sum()), float(clicks[inside].sum())
        found.append(
            {
                "group": name,
                "queries": queries,
                "share_of_queries": queries / len(inside),
                "clicks": in_group,
                "share_of_clicks": in_group / float(clicks.sum()) if clicks.any() else None,
                "clicks_per_query": in_group / queries if queries else None,
            }
        )
    return found


def _correlations(clicks: FloatArray, scores: FloatArray, lengths: IntArray) -> list[dict[str, Any]]:
    pairs = {
        ("visualness", "clicks"): (scores, clicks),
        ("1/length", "clicks"): (1 / lengths, clicks),
        ("visualness", "1/length"): (scores, 1 / lengths),
    }
    found = {names: spearman(*values) for names, values in pairs.items()}
    return [
        {"between": list(names), "coefficient": _number(each.coefficient), "p_value": _number(each.p_value)}
        for names, each in found.items()
    ]


def _top(queries: Sequence[str], clicks: FloatArray, visualness: Visualness, count: int) -> list[dict[str, Any]]:
    listed = []
    for row in np.argsort(-clicks, kind="stable")[:count].tolist():
        found = visualness.of(queries[row])
        spans = [span._asdict() for span in found.spans]
        about = {"query": found.query, "marked": found.marked, "visualness": found.visualness, "spans": spans}
        listed.append({**about, "clicks": float(clicks[row])})
    return listed


def _number(value: float) -> float | None:
    """Return the number, or None for what is not defined: JSON knows no NaN."""
    return None if value != value else value
