"""Methods that learn to put what belongs together before what does not."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.models.ranking.bi_cmsrm import BiCMSRM as BiCMSRM
    from diptych.models.ranking.contrastive_projection import ContrastiveProjection as ContrastiveProjection
    from diptych.models.ranking.pl_ranking import PLRanking as PLRanking
    from diptych.models.ranking.warp import WARP as WARP
else:
    # Each is imported when it is asked for: a search needs few of them.
    __getattr__, __all__ = declared_exports(__name__)
