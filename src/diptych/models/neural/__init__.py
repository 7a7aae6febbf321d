"""Methods whose towers are networks."""

from diptych.models.neural.deep_sm import DeepSM
from diptych.models.neural.deep_ts import DeepTS

__all__ = ["DeepSM", "DeepTS"]
