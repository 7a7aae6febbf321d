"""Learning a retriever: from what a collection says of its own pictures, and from clicks."""

from diptych.collection.learning.corrected_clicks import CorrectedClicks, corrected_clicks
from diptych.collection.learning.history import learning_history
from diptych.collection.learning.impressions import Impressions
from diptych.collection.learning.learning import Learning
from diptych.collection.learning.learning_record import LearningRecord
from diptych.collection.learning.learning_report import LearningReport
from diptych.collection.learning.position_model import PositionModel
from diptych.collection.learning.promotion import rollback
from diptych.collection.learning.training import Training
from diptych.collection.learning.training_pairs import training_pairs

__all__ = [
    "CorrectedClicks",
    "Impressions",
    "Learning",
    "LearningRecord",
    "LearningReport",
    "PositionModel",
    "Training",
    "corrected_clicks",
    "learning_history",
    "rollback",
    "training_pairs",
]
