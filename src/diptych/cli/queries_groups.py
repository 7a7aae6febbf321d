"""Groups of queries, and which of them fail."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from diptych.arrays import BoolArray, FloatArray, IntArray
from diptych.cli.queries_asked import AskedQueries
from diptych.protocols import QueryGroups

LENGTHS = ("1 word", "2 words", "3 words", "4 words", "5 words", "6 and more")
_LEVEL = 0.05


def visualness_names() -> list[str]:
    """Return the names of the five groups of Dong et al. (2018)."""
    edges = QueryGroups().edges
    return [f"{low:g}–{high:g}" for low, high in pairwise(edges)]


def length_groups(lengths: IntArray) -> IntArray:
    """Return the group of each length; very long queries share one."""
    return np.clip(lengths, 1, len(LENGTHS)) - 1


def describe_groups(asked: AskedQueries, groups: IntArray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what became of the queries of each group; a group without queries has only its name and zeros."""
    return [_describe(asked, groups == number, name) for number, name in enumerate(names)]


def crossed_groups(asked: AskedQueries, lengths: IntArray, visualness: IntArray) -> list[dict[str, Any]]:
    """Return the groups of one length and one visualness that hold a query and fail, the worst first."""
    names = visualness_names()
    described = [
        _describe(asked, (lengths == row) & (visualness == column), f"{length}, visualness {name}")
        for row, length in enumerate(LENGTHS)
        for column, name in enumerate(names)
    ]
    failing = [group for group in described if group.get("fails")]
    return sorted(failing, key=lambda group: (group["answered_share"], -group["searches"]))


def _describe(asked: AskedQueries, inside: BoolArray, name: str) -> dict[str, Any]:
    queries, clicks = int(inside.sum()), float(asked.clicks[inside].sum())
    group: dict[str, Any] = {
        "group": name,
        "queries": queries,
        "share_of_queries": queries / len(inside),
        "clicks": clicks,
        "share_of_clicks": _share(clicks, asked.clicks),
        "clicks_per_query": clicks / queries if queries else None,
    }
    if asked.searches is None or asked.answered is None or asked.unmatched is None:
        return group
    searches, answered = float(asked.searches[inside].sum()), float(asked.answered[inside].sum())
    return {
        **group,
        "searches": int(searches),
        "answered_share": answered / searches if searches else None,
        "no_good_match_share": float(asked.unmatched[inside].sum()) / searches if searches else None,
        "fails": _fails(asked.searches, asked.answered, inside),
    }


def _share(part: float, whole: FloatArray) -> float | None:
    total = float(whole.sum())
    return part / total if total else None


def _fails(searches: FloatArray, answered: FloatArray, inside: BoolArray) -> bool:
    """Say whether searches in a group are answered less often than the others, by Fisher's exact test."""
    from scipy.stats import fisher_exact

    table = [
        [int(answered[part].sum()), int(searches[part].sum() - answered[part].sum())] for part in (inside, ~inside)
    ]
    if not all(sum(row) for row in table):
        return False
    return bool(fisher_exact(table, alternative="less").pvalue < _LEVEL)
