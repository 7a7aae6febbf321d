"""Results as figures: precision–recall, cumulative match, confusion, categories, sensitivity, length of codes
and groups of queries.

Every function takes measured results and returns a matplotlib ``Figure``; :func:`save_figure` writes it so that equal
figures are equal files. matplotlib is an extra: ``pip install 'diptych[plots]'``.
"""

from diptych.figures.bit_budget import bit_budget
from diptych.figures.category_bars import category_bars
from diptych.figures.cmc import cmc
from diptych.figures.confusion import confusion
from diptych.figures.embedding_map import embedding_map
from diptych.figures.method_precision_recall import method_precision_recall
from diptych.figures.noise_curves import noise_curves
from diptych.figures.precision_recall import precision_recall
from diptych.figures.precision_scope import precision_scope
from diptych.figures.query_group_bars import query_group_bars
from diptych.figures.radius_precision_recall import radius_precision_recall
from diptych.figures.retrieval_examples import retrieval_examples
from diptych.figures.sensitivity import sensitivity
from diptych.figures.style import require_matplotlib, save_figure
from diptych.figures.visual_shares import visual_shares

__all__ = [
    "bit_budget",
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
    "sensitivity",
    "visual_shares",
]
