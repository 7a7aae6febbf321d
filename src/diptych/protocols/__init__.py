"""Who is trained, asked and searched."""

from diptych.protocols.class_fold import ClassFold
from diptych.protocols.class_hold_out import ClassHoldOut
from diptych.protocols.extendable import Extendable
from diptych.protocols.hold_out import HoldOut
from diptych.protocols.retrieval import Retrieval
from diptych.protocols.standard import Relevant, TwoWayEvaluation, evaluate_model, evaluate_retrieval
from diptych.protocols.trial import Trial
from diptych.protocols.tuning import Tuning, tune

__all__ = [
    "ClassFold",
    "ClassHoldOut",
    "Extendable",
    "HoldOut",
    "Relevant",
    "Retrieval",
    "Trial",
    "Tuning",
    "TwoWayEvaluation",
    "evaluate_model",
    "evaluate_retrieval",
    "tune",
]
