"""Methods whose towers are networks."""

from diptych.models.neural.deep_sm import DeepSM
from diptych.models.neural.deep_ts import DeepTS
from diptych.models.neural.ldsp import LDSP
from diptych.models.neural.mnil import MNiL

__all__ = ["LDSP", "DeepSM", "DeepTS", "MNiL"]
