"""Encoders and a model joined: from file or words to a point of the space."""

from diptych.retriever.calibration import SEARCH_DIRECTIONS, Calibration, SearchDirection
from diptych.retriever.comparison import Comparison
from diptych.retriever.retriever import Retriever

__all__ = ["SEARCH_DIRECTIONS", "Calibration", "Comparison", "Retriever", "SearchDirection"]
