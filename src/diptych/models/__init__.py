"""Feature vectors to one space: every method, one class each."""

from diptych.models.base import CrossModalModel, load_model
from diptych.models.clicks import PSI, DeViSE, Image2Text, OnlineClassification, QueryBasedScoring, Text2Image
from diptych.models.correlation import BLM, CCA, CFA, KCCA, PLS, LinearRegression
from diptych.models.discriminant import CCA3V, GMLDA, GMMFA, LCFS, LGCFL, MLCCA, ClusterCCA
from diptych.models.fusion import CoordinateAscent, FusedModel, fuse_scores
from diptych.models.hashing import CMFH, CVH, DCH, DCMH, DLFH, IMH, LCMFH, LSSH, MMNN, SCRATCH, SCMOrth, SCMSeq, SePHkm
from diptych.models.neural import LDSP, DeepSM, DeepTS, MNiL
from diptych.models.pairwise import (
    CMML,
    TS,
    BipartiteCrossProduct,
    FeaturePair,
    LogisticConcatenation,
    LogisticCrossProduct,
    OneClassSVM,
    PairwiseSM,
)
from diptych.models.preprocessed import Preprocessed
from diptych.models.random import Random
from diptych.models.ranking import WARP, BiCMSRM, ContrastiveProjection, PLRanking
from diptych.models.registry import find_model, method_name, model_classes
from diptych.models.semantic import SCM, SM, ConSE, MarginalSCM, MarginalSM
from diptych.models.shared_space import SharedSpace

__all__ = [
    "BLM",
    "CCA",
    "CCA3V",
    "CFA",
    "CMFH",
    "CMML",
    "CVH",
    "DCH",
    "DCMH",
    "DLFH",
    "GMLDA",
    "GMMFA",
    "IMH",
    "KCCA",
    "LCFS",
    "LCMFH",
    "LDSP",
    "LGCFL",
    "LSSH",
    "MLCCA",
    "MMNN",
    "PLS",
    "PSI",
    "SCM",
    "SCRATCH",
    "SM",
    "TS",
    "WARP",
    "BiCMSRM",
    "BipartiteCrossProduct",
    "ClusterCCA",
    "ConSE",
    "ContrastiveProjection",
    "CoordinateAscent",
    "CrossModalModel",
    "DeViSE",
    "DeepSM",
    "DeepTS",
    "FeaturePair",
    "FusedModel",
    "Image2Text",
    "LinearRegression",
    "LogisticConcatenation",
    "LogisticCrossProduct",
    "MNiL",
    "MarginalSCM",
    "MarginalSM",
    "OneClassSVM",
    "OnlineClassification",
    "PLRanking",
    "PairwiseSM",
    "Preprocessed",
    "QueryBasedScoring",
    "Random",
    "SCMOrth",
    "SCMSeq",
    "SePHkm",
    "SharedSpace",
    "Text2Image",
    "find_model",
    "fuse_scores",
    "load_model",
    "method_name",
    "model_classes",
]
