"""Learning a retriever: from what a collection says of its own pictures, and from clicks; trying another."""

from diptych.collection.changes.retriever_history import LearningRecord
from diptych.collection.learning.click_learning import Learning, LearningReport
from diptych.collection.learning.position_model import CorrectedClicks, Impressions, PositionModel, corrected_clicks
from diptych.collection.learning.rehearsal import Rehearsal
from diptych.collection.learning.rehearsal_report import (
    MeasuredDifference,
    RehearsalReport,
    RehearsedQuestion,
    RehearsedQuestions,
)
from diptych.collection.learning.retriever_training import (
    Training,
    TrainingReport,
    learning_history,
    rollback,
    training_pairs,
)
from diptych.collection.learning.search_log import SearchLog

__all__ = [
    "CorrectedClicks",
    "Impressions",
    "Learning",
    "LearningRecord",
    "LearningReport",
    "MeasuredDifference",
    "PositionModel",
    "Rehearsal",
    "RehearsalReport",
    "RehearsedQuestion",
    "RehearsedQuestions",
    "SearchLog",
    "Training",
    "TrainingReport",
    "corrected_clicks",
    "learning_history",
    "rollback",
    "training_pairs",
]
