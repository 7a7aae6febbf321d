"""What people call the classes of a model."""

from __future__ import annotations

from diptych.errors import InvalidInputError
from diptych.models.semantic.classifier_pair import ClassifierPairModel
from diptych.retriever.explaining.match import Match


def class_names(match: Match, model: ClassifierPairModel) -> list[str]:
    """Return the names that were given for a model's classes, else the classes as it learned them."""
    given = match.class_names
    if given is None:
        is_number = model.classes_.dtype.kind in "iuf"
        return [f"class {value}" if is_number else str(value) for value in model.classes_.tolist()]
    if len(given) != len(model.classes_):
        raise InvalidInputError(f"give one name for each of the {len(model.classes_)} classes, got {len(given)}")
    return list(given)
