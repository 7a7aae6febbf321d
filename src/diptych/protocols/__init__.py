"""Who is trained, asked and searched."""

from diptych.protocols.class_fold import ClassFold
from diptych.protocols.class_hold_out import ClassHoldOut
from diptych.protocols.class_list import class_list
from diptych.protocols.class_query_hold_out import ClassQueryHoldOut
from diptych.protocols.encoded_retrieval import EncodedRetrieval, Gallery, Relevant
from diptych.protocols.extendable import Extendable
from diptych.protocols.fold import Fold
from diptych.protocols.hold_out import HoldOut
from diptych.protocols.hold_outs import HoldOuts
from diptych.protocols.noise import with_noise
from diptych.protocols.query_groups import QueryGroups
from diptych.protocols.query_hold_out import QueryHoldOut
from diptych.protocols.random_draws import RandomDraws
from diptych.protocols.retrieval import Retrieval
from diptych.protocols.retrieval_protocol import RetrievalProtocol
from diptych.protocols.seen_classes import SeenClasses
from diptych.protocols.standard import evaluate_model, evaluate_retrieval
from diptych.protocols.standard_split import StandardSplit
from diptych.protocols.training import Training
from diptych.protocols.trial import Trial
from diptych.protocols.tuning import Tuning, tune
from diptych.protocols.two_way_evaluation import TwoWayEvaluation
from diptych.protocols.unseen_classes import UnseenClasses

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
