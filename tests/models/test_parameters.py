"""Every method says by types what its parameters may be, and refuses all else before it looks at a row."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np
import pytest

from diptych.errors import InvalidInputError
from diptych.estimators import parameter_types
from diptych.models import CrossModalModel, FusedModel, Preprocessed, QueryBankNormalized, model_classes
from diptych.models.correlation import CCA
from diptych.models.parameters import COUNT, Interval, check_choice, check_count, check_number, check_parameters

# Learned or derived, free, or what the model checks together with others.
FREE = {"random_state", "image_hidden", "metric"}
NESTED = [FusedModel(parts=(CCA(),)), QueryBankNormalized(model=CCA()), Preprocessed(model=CCA())]
METHODS = [cls() for inputs in ("features", "items", "clicks") for cls in model_classes(inputs).values()] + NESTED


def wrong_values(kind: Any) -> list[Any]:
    """Return values that a parameter of this type may not have."""
    if get_origin(kind) is Literal:
        return ["sideways"]
    if kind is bool:
        return ["no"]
    if get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis:
        return [5, *((value,) for value in wrong_values(get_args(kind)[0]))]
    if get_origin(kind) is not Annotated:
        kinds = [each for each in get_args(kind) if each is not type(None)]
        return wrong_values(kinds[0]) if len(kinds) == 1 else []
    meaning = get_args(kind)[1]
    if meaning == COUNT:
        return [0, 2.5, True, "3"]
    assert isinstance(meaning, Interval)
    above = [] if meaning.high == float("inf") else [meaning.high + 0.1]
    return [meaning.low - 0.1, float("nan"), float("inf"), "3", *above, *([meaning.low] if meaning.open_low else [])]


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_a_wrong_parameter_is_named(model: CrossModalModel) -> None:
    check_parameters(model)
    for name, kind in parameter_types(type(model), include_extras=True).items():
        for value in wrong_values(kind) if name in model.get_params(deep=False) else ():
            with pytest.raises(InvalidInputError, match=name):
                check_parameters(type(model)(**{**model.get_params(deep=False), name: value}))


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_every_number_of_a_method_says_what_it_may_be(model: CrossModalModel) -> None:
    for name, kind in parameter_types(type(model), include_extras=True).items():
        if name in model.get_params(deep=False) and name not in FREE:
            assert kind not in (int, float, int | None, float | None), (name, kind)


def test_a_fit_refuses_wrong_parameters_before_its_rows() -> None:
    with pytest.raises(InvalidInputError, match=r"weight_power must be a number in \[0, inf\), got -1"):
        CCA(weight_power=-1).fit(np.eye(3), np.eye(3))


def test_bounds_are_in_the_message() -> None:
    with pytest.raises(InvalidInputError, match=r"share must be a number in \(0, 1\], got 0"):
        check_number("share", 0, *Interval(0, 1, open_low=True))
    with pytest.raises(InvalidInputError, match=r"count must be an integer of at least 1, got True"):
        check_count("count", True)
    with pytest.raises(InvalidInputError, match=r"word must be one of 'a', 'b', got 'c'"):
        check_choice("word", "c", ("a", "b"))
    assert check_count("count", np.int64(3)) == 3
