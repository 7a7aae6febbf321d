"""Methods that learn to put what belongs together before what does not."""

from diptych.models.ranking.bi_cmsrm import BiCMSRM
from diptych.models.ranking.contrastive_projection import ContrastiveProjection
from diptych.models.ranking.pl_ranking import PLRanking
from diptych.models.ranking.warp import WARP

__all__ = ["WARP", "BiCMSRM", "ContrastiveProjection", "PLRanking"]
