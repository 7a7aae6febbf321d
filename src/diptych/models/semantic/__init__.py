"""Methods whose space is made of concepts: which ones does each side show?"""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.semantic.conse import ConSE as ConSE
    from diptych.models.semantic.semantic_matching import SCM as SCM
    from diptych.models.semantic.semantic_matching import SM as SM
    from diptych.models.semantic.semantic_matching import MarginalSCM as MarginalSCM
    from diptych.models.semantic.semantic_matching import MarginalSM as MarginalSM
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
