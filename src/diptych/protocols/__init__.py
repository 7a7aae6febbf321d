"""Who is trained, asked and searched."""

from diptych.protocols.class_folds import ClassFold, Extendable, SeenClasses, UnseenClasses, class_list
from diptych.protocols.folds import Fold, RandomDraws, RetrievalProtocol, StandardSplit, Training
from diptych.protocols.hold_outs import ClassHoldOut, ClassQueryHoldOut, HoldOut, HoldOuts, QueryHoldOut
from diptych.protocols.query_groups import QueryGroups, with_noise
from diptych.protocols.retrieval import (
    EncodedRetrieval,
    Gallery,
    Relevant,
    Retrieval,
    TwoWayEvaluation,
    evaluate_model,
    evaluate_retrieval,
)
from diptych.protocols.tuning import Trial, Tuning, tune

__all__ = [
    "ClassFold",
    "ClassHoldOut",
    "ClassQueryHoldOut",
    "EncodedRetrieval",
    "Extendable",
    "Fold",
    "Gallery",
    "HoldOut",
    "HoldOuts",
    "QueryGroups",
    "QueryHoldOut",
    "RandomDraws",
    "Relevant",
    "Retrieval",
    "RetrievalProtocol",
    "SeenClasses",
    "StandardSplit",
    "Training",
    "Trial",
    "Tuning",
    "TwoWayEvaluation",
    "UnseenClasses",
    "class_list",
    "evaluate_model",
    "evaluate_retrieval",
    "tune",
    "with_noise",
]
