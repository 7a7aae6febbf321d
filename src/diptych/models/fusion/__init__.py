"""Several models as one: late fusion of their scores, with weights given or learned."""

from diptych.models.fusion.fused_model import FusedModel, score_deviation
from diptych.models.fusion.score_fusion import AscentReport, CoordinateAscent, fuse_scores

__all__ = ["AscentReport", "CoordinateAscent", "FusedModel", "fuse_scores", "score_deviation"]
