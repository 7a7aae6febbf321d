"""Methods whose space is made of concepts: which ones does each side show?"""

from diptych.models.semantic.conse import ConSE
from diptych.models.semantic.marginal_scm import MarginalSCM
from diptych.models.semantic.marginal_sm import MarginalSM
from diptych.models.semantic.scm import SCM
from diptych.models.semantic.sm import SM

__all__ = ["SCM", "SM", "ConSE", "MarginalSCM", "MarginalSM"]
