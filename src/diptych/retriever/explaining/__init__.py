"""Why an answer is there: one idea of explaining per module."""

from diptych.retriever.explaining.explain import explain, explanation_kind
from diptych.retriever.explaining.explanation import Contribution, ExplainedTerm, Explanation, View
from diptych.retriever.explaining.match import Subject

__all__ = ["Contribution", "ExplainedTerm", "Explanation", "Subject", "View", "explain", "explanation_kind"]
