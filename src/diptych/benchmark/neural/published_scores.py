"""What Zhang et al. (2017) print, under the labels of our measures."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

from diptych.space import Direction

_PAPER = "002"
# Their MAP@R divides by the relevant items among the first R.
_LABELS = {
    "MAP@50": "MAP@50 (retrieved)",
    "MAP@all": "MAP",
    "Recall@1": "R@1",
    "Recall@5": "R@5",
    "Recall@10": "R@10",
}

Scores = dict[str, dict[str, dict[Direction, float]]]


@cache
def published_scores(table: str) -> Scores:
    """Return the values of ``Table 1`` (MSCOCO) or ``Table 2`` (Flickr30K) by method, measure and direction.

    >>> from diptych.benchmark.neural import published_scores
    >>> published_scores("Table 2")["LDSP"]["R@1"]
    {'image_query': 0.357, 'text_query': 0.251}
    """
    text = files("diptych.benchmark").joinpath("published.csv").read_text(encoding="utf-8")
    scores: Scores = {}
    ways: dict[str, Direction] = {"image_query": "image_query", "text_query": "text_query"}
    for row in csv.DictReader(text.splitlines()):
        if (row["paper"], row["table"]) == (_PAPER, table) and row["metric"] in _LABELS and row["direction"] in ways:
            measured = scores.setdefault(row["method"], {}).setdefault(_LABELS[row["metric"]], {})
            measured[ways[row["direction"]]] = float(row["value"])
    return scores
