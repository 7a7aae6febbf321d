"""Encoders and a model joined: from file or words to a point of the space, and why an answer is there."""

from diptych.encoders import SideBySide
from diptych.retriever.calibration import Calibration
from diptych.retriever.explaining import (
    Contribution,
    ExplainedTerm,
    Explanation,
    Subject,
    View,
    explain,
    explanation_kind,
)
from diptych.retriever.fused import CentredSide, fused_retriever
from diptych.retriever.model_selection import Comparison
from diptych.retriever.retriever import Retriever
from diptych.retriever.tower_encoders import ImageTower, TextTower
from diptych.space import SEARCH_DIRECTIONS, SearchDirection

__all__ = [
    "SEARCH_DIRECTIONS",
    "Calibration",
    "CentredSide",
    "Comparison",
    "Contribution",
    "ExplainedTerm",
    "Explanation",
    "ImageTower",
    "Retriever",
    "SearchDirection",
    "SideBySide",
    "Subject",
    "TextTower",
    "View",
    "explain",
    "explanation_kind",
    "fused_retriever",
]
