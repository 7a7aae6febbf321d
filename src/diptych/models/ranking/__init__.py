"""Methods that learn to put what belongs together before what does not."""

from typing import TYPE_CHECKING

from diptych.models.ranking.bi_cmsrm import BiCMSRM as BiCMSRM
from diptych.models.ranking.contrastive_projection import ContrastiveProjection as ContrastiveProjection
from diptych.models.ranking.pl_ranking import PLRanking as PLRanking
from diptych.models.ranking.warp import WARP as WARP
from diptych.models.registry import exported

# A list that is computed would hide the names above from type checkers.
if not TYPE_CHECKING:
    __all__ = exported(__name__)
