"""Methods that judge pairs: does this text belong to this picture?"""

from diptych.models.pairwise._bilinear import FeaturePair
from diptych.models.pairwise.bipartite_cross_product import BipartiteCrossProduct
from diptych.models.pairwise.cmml import CMML
from diptych.models.pairwise.logistic_concatenation import LogisticConcatenation
from diptych.models.pairwise.logistic_cross_product import LogisticCrossProduct
from diptych.models.pairwise.one_class_svm import OneClassSVM
from diptych.models.pairwise.pairwise_sm import PairwiseSM
from diptych.models.pairwise.ts import TS

__all__ = [
    "CMML",
    "TS",
    "BipartiteCrossProduct",
    "FeaturePair",
    "LogisticConcatenation",
    "LogisticCrossProduct",
    "OneClassSVM",
    "PairwiseSM",
]
