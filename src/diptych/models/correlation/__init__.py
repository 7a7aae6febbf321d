"""Methods that learn from pairs alone: what do a picture and its text have in common?"""

from diptych.models.correlation.blm import BLM
from diptych.models.correlation.cca import CCA
from diptych.models.correlation.cfa import CFA
from diptych.models.correlation.kcca import KCCA
from diptych.models.correlation.linear_regression import LinearRegression
from diptych.models.correlation.pls import PLS

__all__ = ["BLM", "CCA", "CFA", "KCCA", "PLS", "LinearRegression"]
