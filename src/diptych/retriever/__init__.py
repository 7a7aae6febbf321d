"""Encoders and a model joined: from file or words to a point of the space, and why an answer is there."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from diptych.encoders import SideBySide
    from diptych.retriever.calibration import Calibration
    from diptych.retriever.comparison import Comparison
    from diptych.retriever.explaining import Contribution, ExplainedTerm, Explanation, Subject, View
    from diptych.retriever.explaining.explain import explain, explanation_kind
    from diptych.retriever.fused import fused_retriever
    from diptych.retriever.mteb_models import MTEBModel, retriever_of_mteb
    from diptych.retriever.retriever import Retriever
    from diptych.retriever.tower_encoders import CentredSide, ImageTower, TextTower
    from diptych.space import SEARCH_DIRECTIONS, SearchDirection
else:
    # Who searches needs none of what explains and learns.
    __getattr__ = lazy_exports(
        __name__,
        {
            "diptych.encoders": "SideBySide",
            "diptych.retriever.calibration": "Calibration",
            "diptych.retriever.explaining": (
                "Contribution ExplainedTerm Explanation Subject View explain explanation_kind"
            ),
            "diptych.retriever.fused": "fused_retriever",
            "diptych.retriever.comparison": "Comparison",
            "diptych.retriever.mteb_models": "MTEBModel retriever_of_mteb",
            "diptych.retriever.retriever": "Retriever",
            "diptych.retriever.tower_encoders": "CentredSide ImageTower TextTower",
            "diptych.space": "SEARCH_DIRECTIONS SearchDirection",
        },
    )

__all__ = [
    "SEARCH_DIRECTIONS",
    "Calibration",
    "CentredSide",
    "Comparison",
    "Contribution",
    "ExplainedTerm",
    "Explanation",
    "ImageTower",
    "MTEBModel",
    "Retriever",
    "SearchDirection",
    "SideBySide",
    "Subject",
    "TextTower",
    "View",
    "explain",
    "explanation_kind",
    "fused_retriever",
    "retriever_of_mteb",
]
