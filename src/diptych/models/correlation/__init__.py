"""Methods that learn from pairs alone: what do a picture and its text have in common?"""

from diptych.models.correlation.cca import CCA
from diptych.models.correlation.cfa import CFA
from diptych.models.correlation.kcca import KCCA
from diptych.models.correlation.linear_regression import LinearRegression

__all__ = ["CCA", "CFA", "KCCA", "LinearRegression"]
