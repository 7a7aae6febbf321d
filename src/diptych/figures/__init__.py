"""Results as figures: precision–recall, cumulative match, confusion, categories and groups of queries.

Every function takes measured results and returns a matplotlib ``Figure``; :func:`save_figure` writes it so that equal
figures are equal files. matplotlib is an extra: ``pip install 'diptych[plots]'``.
"""

from diptych.figures.embedding_map import embedding_map
from diptych.figures.group_results import category_bars, confusion, noise_curves, query_group_bars, visual_shares
from diptych.figures.retrieval_curves import (
    cmc,
    method_precision_recall,
    precision_recall,
    precision_scope,
    radius_precision_recall,
)
from diptych.figures.retrieval_examples import retrieval_examples
from diptych.figures.style import require_matplotlib, save_figure

__all__ = [
    "category_bars",
    "cmc",
    "confusion",
    "embedding_map",
    "method_precision_recall",
    "noise_curves",
    "precision_recall",
    "precision_scope",
    "query_group_bars",
    "radius_precision_recall",
    "require_matplotlib",
    "retrieval_examples",
    "save_figure",
    "visual_shares",
]
