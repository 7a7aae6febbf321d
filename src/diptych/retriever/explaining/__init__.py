"""Why an answer is there: one idea of explaining per module."""

from diptych.retriever.explaining.contribution import Contribution
from diptych.retriever.explaining.explain import explain, explanation_kind
from diptych.retriever.explaining.explained_term import ExplainedTerm
from diptych.retriever.explaining.explanation import Explanation
from diptych.retriever.explaining.subject import Subject
from diptych.retriever.explaining.view import View

__all__ = ["Contribution", "ExplainedTerm", "Explanation", "Subject", "View", "explain", "explanation_kind"]
