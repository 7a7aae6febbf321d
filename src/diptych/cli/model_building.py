"""Grids of models from what people type, and parameters as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.errors import InvalidInputError
from diptych.models import CrossModalModel, Preprocessed, method_name
from diptych.models.building import with_parameter

_SCALINGS = ("images", "texts")


def build_grid(model: Preprocessed, choices: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the grid for `tune` of a scaled model, after trying that every single choice can be set.

    ``images`` and ``texts`` choose the scaling, all other names are parameters of the method.

    >>> from diptych.cli.model_building import build_grid
    >>> from diptych.models import SCM, Preprocessed
    >>> build_grid(Preprocessed(model=SCM()), {"C": [1, 10], "images": ["l2", "hellinger"]})
    {'model__C': [1, 10], 'images': ['l2', 'hellinger']}
    """
    grid: dict[str, list[Any]] = {}
    for name, values in choices.items():
        if not isinstance(values, list) or not values:
            raise InvalidInputError(f"--tune takes name=[value, value, ...], got {name}={values!r}")
        if name in _SCALINGS:
            grid[name] = values
        else:
            grid[f"model__{name}"] = [_tried(model.model, name, value) for value in values]
    return grid


def readable_parameters(model: CrossModalModel) -> dict[str, Any]:
    """Return all parameters, nested ones included, with methods given by name.

    >>> from diptych.cli.model_building import readable_parameters
    >>> from diptych.models import CFA, SCM
    >>> readable_parameters(SCM(correlation=CFA()))["correlation"]
    'cfa'
    """
    values = model.get_params(deep=True)
    return {
        name: method_name(type(values[name])) if isinstance(values[name], CrossModalModel) else values[name]
        for name in sorted(values, key=lambda name: name.split("__"))
    }


def _tried(model: CrossModalModel, name: str, value: Any) -> Any:
    return with_parameter(model, name, value).get_params(deep=True)[name]
