"""Methods that align two frozen encoders with few pairs, or with none: what do two spaces have in common?"""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.alignment.csa import CSA as CSA
    from diptych.models.alignment.procrustes import Procrustes as Procrustes
    from diptych.models.alignment.relative import LocalCKA as LocalCKA
    from diptych.models.alignment.relative import RelativeRepresentations as RelativeRepresentations
    from diptych.models.alignment.sotalign import SOTAlign as SOTAlign
    from diptych.models.alignment.unpaired import MiniVec2Vec as MiniVec2Vec
    from diptych.models.alignment.unpaired import UnpairedCCA as UnpairedCCA
    from diptych.models.alignment.unpaired import WassersteinProcrustes as WassersteinProcrustes
else:
    # Each is imported when it is asked for.
    __getattr__, __all__ = declared_exports(__name__)
