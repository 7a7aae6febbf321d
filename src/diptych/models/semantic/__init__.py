"""Methods whose space is made of concepts: which ones does each side show?"""

from typing import TYPE_CHECKING

from diptych.models.registry import exported
from diptych.models.semantic.conse import ConSE as ConSE
from diptych.models.semantic.marginal_scm import MarginalSCM as MarginalSCM
from diptych.models.semantic.marginal_sm import MarginalSM as MarginalSM
from diptych.models.semantic.scm import SCM as SCM
from diptych.models.semantic.sm import SM as SM

# A list that is computed would hide the names above from type checkers.
if not TYPE_CHECKING:
    __all__ = exported(__name__)
