"""Methods that learn from pairs alone: what do a picture and its text have in common?"""

from typing import TYPE_CHECKING

from diptych.models.correlation.blm import BLM as BLM
from diptych.models.correlation.cca import CCA as CCA
from diptych.models.correlation.cfa import CFA as CFA
from diptych.models.correlation.kcca import KCCA as KCCA
from diptych.models.correlation.linear_regression import LinearRegression as LinearRegression
from diptych.models.correlation.pls import PLS as PLS
from diptych.models.registry import exported

# A list that is computed would hide the names above from type checkers.
if not TYPE_CHECKING:
    __all__ = exported(__name__)
