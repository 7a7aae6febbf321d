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
    from diptych.metrics.evaluation import ConfusionMatrix as ConfusionMatrix
    from diptych.metrics.evaluation import Evaluation as Evaluation
    from diptych.metrics.evaluation import category_means as category_means
    from diptych.metrics.evaluation import evaluate as evaluate
    from diptych.metrics.evaluation import evaluate_scores as evaluate_scores
    from diptych.metrics.first_relevant import CMC as CMC
    from diptych.metrics.first_relevant import FOSCTTM as FOSCTTM
    from diptych.metrics.first_relevant import CMCCurve as CMCCurve
    from diptych.metrics.first_relevant import MeanRank as MeanRank
    from diptych.metrics.first_relevant import MedianRank as MedianRank
    from diptych.metrics.first_relevant import RecallAtK as RecallAtK
    from diptych.metrics.hamming import HammingLookup as HammingLookup
    from diptych.metrics.interpolated_precision import InterpolatedPrecisionRecall as InterpolatedPrecisionRecall
    from diptych.metrics.measure import Curve as Curve
    from diptych.metrics.measure import CurvePoints as CurvePoints
    from diptych.metrics.measure import Measure as Measure
    from diptych.metrics.measure import RankedGroups as RankedGroups
    from diptych.metrics.measure import Ties as Ties
    from diptych.metrics.measure import break_ties as break_ties
    from diptych.metrics.precision_recall import AP as AP
    from diptych.metrics.precision_recall import NDCG as NDCG
    from diptych.metrics.precision_recall import Precision as Precision
    from diptych.metrics.precision_recall import PrecisionRecallCurve as PrecisionRecallCurve
    from diptych.metrics.precision_recall import PrecisionScope as PrecisionScope
    from diptych.metrics.precision_recall import Recall as Recall
    from diptych.metrics.relevance import GradedRelevance as GradedRelevance
    from diptych.metrics.relevance import Judgement as Judgement
    from diptych.metrics.relevance import Relevance as Relevance
    from diptych.metrics.relevance import SameLabel as SameLabel
    from diptych.metrics.relevance import SharedLabel as SharedLabel
    from diptych.metrics.significance import BootstrapInterval as BootstrapInterval
    from diptych.metrics.significance import DrawsDifference as DrawsDifference
    from diptych.metrics.significance import RandomisationTest as RandomisationTest
    from diptych.metrics.significance import SpearmanCorrelation as SpearmanCorrelation
    from diptych.metrics.significance import bootstrap_difference as bootstrap_difference
    from diptych.metrics.significance import bootstrap_interval as bootstrap_interval
    from diptych.metrics.significance import draft_winner as draft_winner
    from diptych.metrics.significance import draws_difference as draws_difference
    from diptych.metrics.significance import randomisation_test as randomisation_test
    from diptych.metrics.significance import spearman as spearman
    from diptych.metrics.significance import team_draft as team_draft
    from diptych.metrics.tower_agreement import Agreement as Agreement
    from diptych.metrics.tower_agreement import agreement as agreement
    from diptych.metrics.tower_agreement import debiased_cka as debiased_cka
    from diptych.metrics.tower_agreement import mutual_neighbours as mutual_neighbours
else:
    # Each is imported when it is asked for: few need all measures.
    __getattr__, __all__ = declared_exports(__name__)
