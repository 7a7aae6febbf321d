"""Who is trained, asked and searched."""

from diptych.protocols.hold_out import HoldOut
from diptych.protocols.standard import Relevant, TwoWayEvaluation, evaluate_model
from diptych.protocols.tuning import Trial, Tuning, tune

__all__ = ["HoldOut", "Relevant", "Trial", "Tuning", "TwoWayEvaluation", "evaluate_model", "tune"]
