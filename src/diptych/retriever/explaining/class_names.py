"""What people call the classes of a model."""

from __future__ import annotations

from diptych.models.semantic.classifier_pair import ClassifierPairModel
from diptych.retriever.retriever import Retriever


def class_names(retriever: Retriever, model: ClassifierPairModel) -> list[str]:
    """Return the names of a model's classes: those of the pairs it learned from, else the classes as they are."""
    known = getattr(retriever, "class_names_", ())
    if not known or model.classes_.dtype.kind not in "iu":
        return [str(value) for value in model.classes_]
    return [known[value] if 0 <= value < len(known) else f"class {value}" for value in model.classes_.tolist()]
