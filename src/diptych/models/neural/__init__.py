"""Methods whose towers are networks."""

from typing import TYPE_CHECKING

from diptych.models.neural.deep_sm import DeepSM as DeepSM
from diptych.models.neural.deep_ts import DeepTS as DeepTS
from diptych.models.neural.ldsp import LDSP as LDSP
from diptych.models.neural.mnil import MNiL as MNiL
from diptych.models.registry import exported

# A list that is computed would hide the names above from type checkers.
if not TYPE_CHECKING:
    __all__ = exported(__name__)
