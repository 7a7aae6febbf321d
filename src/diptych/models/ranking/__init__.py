"""Methods that learn to put what belongs together before what does not."""

from diptych.models.ranking.contrastive_projection import ContrastiveProjection

__all__ = ["ContrastiveProjection"]
