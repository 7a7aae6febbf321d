"""Learning a retriever: from what a collection says of its own pictures, and from clicks; trying another."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.collection.learning.click_learning import Learning as Learning
    from diptych.collection.learning.click_learning import LearningReport as LearningReport
    from diptych.collection.learning.position_model import Impressions as Impressions
    from diptych.collection.learning.position_model import PositionModel as PositionModel
    from diptych.collection.learning.rehearsal import Rehearsal as Rehearsal
    from diptych.collection.learning.rehearsal_report import MeasuredDifference as MeasuredDifference
    from diptych.collection.learning.rehearsal_report import RehearsalReport as RehearsalReport
    from diptych.collection.learning.rehearsal_report import RehearsedQuestion as RehearsedQuestion
    from diptych.collection.learning.rehearsal_report import RehearsedQuestions as RehearsedQuestions
    from diptych.collection.learning.retriever_training import Training as Training
    from diptych.collection.learning.retriever_training import TrainingReport as TrainingReport
    from diptych.collection.learning.retriever_training import rollback as rollback
    from diptych.collection.learning.retriever_training import rolls_back_to as rolls_back_to
    from diptych.collection.learning.retriever_training import training_pairs as training_pairs
    from diptych.collection.learning.retriever_training import unpaired_items as unpaired_items
    from diptych.collection.learning.search_log import SearchLog as SearchLog
    from diptych.collection.store.model_history import LearningRecord as LearningRecord
else:
    # Each is imported when it is asked for.
    __getattr__, __all__ = declared_exports(__name__)
