"""Methods whose space is made of concepts: which ones does each side show?"""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.semantic.conse import ConSE as ConSE
    from diptych.models.semantic.marginal_scm import MarginalSCM as MarginalSCM
    from diptych.models.semantic.marginal_sm import MarginalSM as MarginalSM
    from diptych.models.semantic.scm import SCM as SCM
    from diptych.models.semantic.sm import SM as SM
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
