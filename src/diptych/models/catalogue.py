"""The methods by the names people type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from diptych.errors import InvalidInputError, UnknownNameError
from diptych.models.base import CrossModalModel, Inputs


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
    # The package lists its public names once; this module is one of them, so it is read when asked, not when imported.
    from diptych import models

    public = [getattr(models, name) for name in models.__all__]
    methods = [value for value in public if isinstance(value, type) and issubclass(value, CrossModalModel)]
    others = (CrossModalModel, models.FusedModel, models.Preprocessed, models.SharedSpace)
    chosen = [cls for cls in methods if cls not in others and cls.inputs == inputs]
    return {method_name(cls): cls for cls in sorted(chosen, key=method_name)}


def method_name(cls: type[CrossModalModel]) -> str:
    """Turn a class name into its command-line name: ``MarginalSCM`` becomes ``marginal-scm``."""
    return cls.command_name or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()


def find_model(name: str, *, among: Sequence[Inputs] = ("features",)) -> type[CrossModalModel]:
    """Return the method called ``name``, whatever its case, hyphens or underscores; a typo gets a suggestion.

    ``among`` says from what the method may learn.

    >>> from diptych.models import find_model
    >>> find_model("marginal_SM").__name__
    'MarginalSM'
    >>> find_model("mnil", among=("features", "items")).__name__
    'MNiL'
    """
    methods = {known: cls for inputs in among for known, cls in model_classes(inputs).items()}
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
