"""Several models as one: late fusion of their scores, with weights given or learned."""

from diptych.models.fusion.coordinate_ascent import AscentReport, CoordinateAscent
from diptych.models.fusion.fuse_scores import fuse_scores
from diptych.models.fusion.fused_model import FusedModel, score_deviation

__all__ = ["AscentReport", "CoordinateAscent", "FusedModel", "fuse_scores", "score_deviation"]
