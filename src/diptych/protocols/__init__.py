"""Who is trained, asked and searched."""

from diptych.protocols.class_hold_out import ClassHoldOut
from diptych.protocols.hold_out import HoldOut
from diptych.protocols.standard import Relevant, TwoWayEvaluation, evaluate_model
from diptych.protocols.trial import Trial
from diptych.protocols.tuning import Tuning, tune

__all__ = ["ClassHoldOut", "HoldOut", "Relevant", "Trial", "Tuning", "TwoWayEvaluation", "evaluate_model", "tune"]
