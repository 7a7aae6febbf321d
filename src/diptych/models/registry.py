"""The methods by the names people type, and unfitted models from a name and values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_args

from diptych.errors import InvalidInputError, UnknownNameError
from diptych.estimators import clone, parameter_types
from diptych.lazy_exports import import_exports
from diptych.models.base import REGISTRY, CrossModalModel, Inputs
from diptych.plugins import METHODS, installed_classes
from diptych.space import Space


@cache
def model_classes(inputs: Inputs = "features") -> dict[str, type[CrossModalModel]]:
    """Return every public method that learns from ``inputs``, keyed by its command-line name such as ``marginal-scm``.

    ``items`` gives those that learn from the pictures and texts themselves instead of their features, ``clicks`` those
    that learn from a click log.

    >>> from diptych.models import model_classes
    >>> model_classes()["scm"].__name__
    'SCM'
    >>> list(model_classes("items"))
    ['mnil']
    """
    import_exports("diptych.models")
    chosen = [cls for cls in REGISTRY.values() if cls.inputs == inputs]
    return {method_name(cls): cls for cls in sorted(chosen, key=method_name)}


def installed_methods(*among: Inputs) -> dict[str, type[CrossModalModel]]:
    """Return the methods that other packages bring (entry points ``diptych.methods``) and that learn from ``among``."""
    return {method_name(cls): cls for cls in installed_classes(METHODS, CrossModalModel) if cls.inputs in among}


def method_name(cls: type[CrossModalModel]) -> str:
    """Turn a class name into its command-line name: ``MarginalSCM`` becomes ``marginal-scm``."""
    return cls.command_name or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()


def find_model(
    name: str,
    *,
    among: Sequence[Inputs] = ("features",),
    further: Mapping[str, type[CrossModalModel]] | None = None,
) -> type[CrossModalModel]:
    """Return the method called ``name``, whatever its case, hyphens or underscores; a typo gets a suggestion.

    ``among`` says from what the method may learn; ``further`` are methods outside the package, by name, beside those of
    installed packages.

    >>> from diptych.models import find_model
    >>> find_model("marginal_SM").__name__
    'MarginalSM'
    >>> find_model("mnil", among=("features", "items")).__name__
    'MNiL'
    """
    methods = installed_methods(*among)
    methods |= {known: cls for inputs in among for known, cls in model_classes(inputs).items()} | dict(further or {})
    plain = {_plain(known): cls for known, cls in methods.items()}
    if _plain(name) not in plain:
        _refuse_known(name)
        raise UnknownNameError("method", name, methods)
    return plain[_plain(name)]


def _refuse_known(name: str) -> None:
    for inputs in _LEARNED_OTHERWISE:
        for known in model_classes(inputs):
            if _plain(known) == _plain(name):
                raise InvalidInputError(f"{known} {_LEARNED_OTHERWISE[inputs]}")


_LEARNED_OTHERWISE: dict[Inputs, str] = {
    "items": "learns from pictures and texts themselves, not from features: use it with diptych train",
    "clicks": "learns from clicks, which are not here: use diptych learn",
}


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


FILE_PARAMETERS = frozenset({"checkpoint", "image_weights", "word_vectors"})
"""Parameters that name files or folders of this machine, which others may not set from afar."""


def build_model(
    method: str,
    parameters: Mapping[str, Any],
    *,
    seed: int = 0,
    among: Sequence[Inputs] = ("features",),
    further: Mapping[str, type[CrossModalModel]] | None = None,
) -> CrossModalModel:
    """Return the method with these parameters; ``outer__inner`` names a parameter of a nested method.

    ``seed`` becomes the ``random_state`` of a method that draws random numbers, unless that is among the parameters;
    ``among`` and ``further`` are as in `find_model`.

    >>> from diptych.models.registry import build_model
    >>> build_model("scm", {"correlation": "cca", "correlation__n_components": 9, "C": 1})
    SCM(C=1, correlation=CCA(n_components=9))
    """
    model = find_model(method, among=among, further=further)()
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=seed)
    # A nested method must be there before its own parameters are set.
    for name in sorted(parameters, key=lambda name: name.count("__")):
        _set_parameter(model, name, parameters[name], name)
    _check_space(model)
    return model


def with_parameter(model: CrossModalModel, name: str, value: Any) -> CrossModalModel:
    """Return an unfitted copy of a model with one parameter set, which is tried at once.

    >>> from diptych.models import SCM
    >>> from diptych.models.registry import with_parameter
    >>> with_parameter(SCM(), "C", 3.0)
    SCM(C=3.0)
    """
    changed: CrossModalModel = clone(model)
    _set_parameter(changed, name, value, name)
    _check_space(changed)
    return changed


def _set_parameter(model: CrossModalModel, name: str, value: Any, typed: str) -> None:
    first, _, rest = name.partition("__")
    known = model.get_params(deep=False)
    if first not in known:
        raise UnknownNameError(f"parameter of {method_name(type(model))}", first, known)
    if not rest:
        model.set_params(**{first: _as_model(value, first) if _takes_model(model, first) else value})
    elif isinstance(known[first], CrossModalModel):
        _set_parameter(known[first], rest, value, typed)
    else:
        fix = f"give {first}=cca, say, as well" if _takes_model(model, first) else f"{first!r} is not a method"
        raise InvalidInputError(f"{typed!r} has nothing to set, because {first!r} is {known[first]!r}; {fix}")


def _as_model(value: Any, name: str) -> CrossModalModel | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} takes the name of a method, got {value!r}")
    return find_model(value)()


def _takes_model(model: CrossModalModel, name: str) -> bool:
    hint = parameter_types(type(model)).get(name)
    return any(isinstance(kind, type) and issubclass(kind, CrossModalModel) for kind in (hint, *get_args(hint)))


def _check_space(model: CrossModalModel) -> Space:
    """Ask for the space, which checks its name: an unknown one should not be found out after an hour of fitting."""
    return model.space
