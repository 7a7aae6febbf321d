"""Methods that judge pairs: does this text belong to this picture?"""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.pairwise._bilinear import FeaturePair as FeaturePair
    from diptych.models.pairwise.cmml import CMML as CMML
    from diptych.models.pairwise.one_class_svm import OneClassSVM as OneClassSVM
    from diptych.models.pairwise.pair_classifiers import BipartiteCrossProduct as BipartiteCrossProduct
    from diptych.models.pairwise.pair_classifiers import LogisticConcatenation as LogisticConcatenation
    from diptych.models.pairwise.pair_classifiers import LogisticCrossProduct as LogisticCrossProduct
    from diptych.models.pairwise.pairwise_sm import PairwiseSM as PairwiseSM
    from diptych.models.pairwise.ts import TS as TS
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
