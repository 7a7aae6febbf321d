"""Who is trained, asked and searched."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.protocols.folds import ClassFold as ClassFold
    from diptych.protocols.folds import DevelopmentPart as DevelopmentPart
    from diptych.protocols.folds import Extendable as Extendable
    from diptych.protocols.folds import FewPairs as FewPairs
    from diptych.protocols.folds import Fold as Fold
    from diptych.protocols.folds import RandomDraws as RandomDraws
    from diptych.protocols.folds import RetrievalProtocol as RetrievalProtocol
    from diptych.protocols.folds import SeenClasses as SeenClasses
    from diptych.protocols.folds import StandardSplit as StandardSplit
    from diptych.protocols.folds import Training as Training
    from diptych.protocols.folds import UnseenClasses as UnseenClasses
    from diptych.protocols.retrieval import EncodedRetrieval as EncodedRetrieval
    from diptych.protocols.retrieval import Gallery as Gallery
    from diptych.protocols.retrieval import QueryGroups as QueryGroups
    from diptych.protocols.retrieval import Relevant as Relevant
    from diptych.protocols.retrieval import Retrieval as Retrieval
    from diptych.protocols.retrieval import TwoWayEvaluation as TwoWayEvaluation
    from diptych.protocols.retrieval import evaluate_model as evaluate_model
    from diptych.protocols.retrieval import evaluate_retrieval as evaluate_retrieval
    from diptych.protocols.retrieval import with_noise as with_noise
    from diptych.protocols.tuning import ClassHoldOut as ClassHoldOut
    from diptych.protocols.tuning import ClassQueryHoldOut as ClassQueryHoldOut
    from diptych.protocols.tuning import CrossValidation as CrossValidation
    from diptych.protocols.tuning import HoldOut as HoldOut
    from diptych.protocols.tuning import HoldOuts as HoldOuts
    from diptych.protocols.tuning import QueryHoldOut as QueryHoldOut
    from diptych.protocols.tuning import Trial as Trial
    from diptych.protocols.tuning import Tuning as Tuning
    from diptych.protocols.tuning import class_list as class_list
    from diptych.protocols.tuning import tune as tune
else:
    # Few who evaluate a model also tune one.
    __getattr__, __all__ = declared_exports(__name__)
