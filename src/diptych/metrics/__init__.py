"""Scores to numbers: measures, curves, chance levels and significance.

Every measure carries its convention in its name, takes the exact expectation over the orders of tied items, and keeps
its values per query:

>>> import numpy as np
>>> from diptych.metrics import AP, CMC, SameLabel, evaluate_scores
>>> scores = np.array([[0.9, 0.5, 0.5], [0.2, 0.2, 0.2]])
>>> result = evaluate_scores(scores, SameLabel(["cat", "dog"], ["cat", "dog", "dog"]), [AP(), CMC(1)])
>>> {measure.label: round(value, 4) for measure, value in result.mean.items()}
{'MAP': 0.9028, 'CMC@1': 0.8333}
>>> {measure.label: round(value, 4) for measure, value in result.chance.items()}
{'MAP': 0.7083, 'CMC@1': 0.5}
"""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.metrics.evaluation import ConfusionMatrix, Evaluation, category_means, evaluate, evaluate_scores
    from diptych.metrics.first_relevant import CMC, CMCCurve, MeanRank, MedianRank, RecallAtK
    from diptych.metrics.hamming import HammingLookup
    from diptych.metrics.interpolated_precision import InterpolatedPrecisionRecall
    from diptych.metrics.measure import Curve, CurvePoints, Measure
    from diptych.metrics.ndcg import NDCG
    from diptych.metrics.precision_recall import AP, Precision, PrecisionRecallCurve, PrecisionScope, Recall
    from diptych.metrics.relevance import GradedRelevance, Judgement, Relevance, SameLabel, SharedLabel
    from diptych.metrics.significance import (
        BootstrapInterval,
        RandomisationTest,
        SpearmanCorrelation,
        bootstrap_difference,
        bootstrap_interval,
        draft_winner,
        randomisation_test,
        spearman,
        team_draft,
    )
    from diptych.metrics.tie_groups import RankedGroups, Ties, break_ties
else:
    # Each is imported when it is asked for: few need all measures.
    __getattr__, _ = declared_exports(__name__)

__all__ = [
    "AP",
    "CMC",
    "NDCG",
    "BootstrapInterval",
    "CMCCurve",
    "ConfusionMatrix",
    "Curve",
    "CurvePoints",
    "Evaluation",
    "GradedRelevance",
    "HammingLookup",
    "InterpolatedPrecisionRecall",
    "Judgement",
    "MeanRank",
    "Measure",
    "MedianRank",
    "Precision",
    "PrecisionRecallCurve",
    "PrecisionScope",
    "RandomisationTest",
    "RankedGroups",
    "Recall",
    "RecallAtK",
    "Relevance",
    "SameLabel",
    "SharedLabel",
    "SpearmanCorrelation",
    "Ties",
    "bootstrap_difference",
    "bootstrap_interval",
    "break_ties",
    "category_means",
    "draft_winner",
    "evaluate",
    "evaluate_scores",
    "randomisation_test",
    "spearman",
    "team_draft",
]
