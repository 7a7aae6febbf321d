"""Methods that learn from pairs alone: what do a picture and its text have in common?"""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.correlation.cca import CCA as CCA
    from diptych.models.correlation.factors import BLM as BLM
    from diptych.models.correlation.factors import CFA as CFA
    from diptych.models.correlation.kcca import KCCA as KCCA
    from diptych.models.correlation.regression import PLS as PLS
    from diptych.models.correlation.regression import LinearRegression as LinearRegression
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
