"""Which gallery items are relevant to which query."""

from diptych.metrics.relevance.graded_relevance import GradedRelevance
from diptych.metrics.relevance.relevance import Judgement, Relevance
from diptych.metrics.relevance.same_label import SameLabel
from diptych.metrics.relevance.shared_label import SharedLabel

__all__ = ["GradedRelevance", "Judgement", "Relevance", "SameLabel", "SharedLabel"]
