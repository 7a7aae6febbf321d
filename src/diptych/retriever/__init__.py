"""Encoders and a model joined: from file or words to a point of the space, and why an answer is there."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.encoders import SideBySide as SideBySide
    from diptych.retriever.calibration import Calibration as Calibration
    from diptych.retriever.comparison import Comparison as Comparison
    from diptych.retriever.explaining.explain import explain as explain
    from diptych.retriever.explaining.explain import explanation_kind as explanation_kind
    from diptych.retriever.explaining.explanation import Contribution as Contribution
    from diptych.retriever.explaining.explanation import ExplainedTerm as ExplainedTerm
    from diptych.retriever.explaining.explanation import Explanation as Explanation
    from diptych.retriever.explaining.explanation import View as View
    from diptych.retriever.explaining.match import Subject as Subject
    from diptych.retriever.fused import fused_retriever as fused_retriever
    from diptych.retriever.mteb_models import MTEBModel as MTEBModel
    from diptych.retriever.retriever import Retriever as Retriever
    from diptych.retriever.tower_encoders import CentredSide as CentredSide
    from diptych.retriever.tower_encoders import ImageTower as ImageTower
    from diptych.retriever.tower_encoders import TextTower as TextTower
    from diptych.space import SEARCH_DIRECTIONS as SEARCH_DIRECTIONS
    from diptych.space import SearchDirection as SearchDirection
else:
    # Who searches needs none of what explains and learns.
    __getattr__, __all__ = declared_exports(__name__)
