"""The manners of scikit-learn's estimators, and scikit-learn itself when it is needed.

Importing it takes longer than most searches, and a fitted model needs it for nothing. Where it is imported, it goes
without ``scipy.stats`` and pandas, which it imports for functions that nothing here calls; they are there as soon as
anything asks for them.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Self, TypeVar, get_type_hints

Estimator = TypeVar("Estimator")
LATER = ("scipy.stats", "pandas")

# A module is in sys.modules before it is whole, and two threads must not put their stand-ins there at once.
_IMPORTING = threading.RLock()


class BaseEstimator:
    """Parameters are those of the constructor, which only stores them; for scikit-learn this is an estimator.

    >>> from diptych.models import CCA, SCM
    >>> SCM(C=3.0, correlation=CCA(n_components=9)).get_params()["correlation__n_components"]
    9
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, those of estimators inside as ``outer__inner`` unless not ``deep``."""
        values: dict[str, Any] = {}
        for name in self._get_param_names():
            values[name] = getattr(self, name)
            if deep and hasattr(values[name], "get_params") and not isinstance(values[name], type):
                values |= {f"{name}__{inner}": value for inner, value in values[name].get_params().items()}
        return values

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of this estimator or, by ``outer__inner``, of one inside it."""
        changed: Self = scikit_learn("sklearn.base").BaseEstimator.set_params(self, **parameters)
        return changed

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect of this estimator."""
        return scikit_learn("sklearn.base").BaseEstimator.__sklearn_tags__(self)

    def __repr__(self) -> str:
        """Show the parameters that differ from the defaults."""
        defaults = self._parameters()
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(cls._parameters())

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        return _parameters_of(cls.__init__)


@cache
def _parameters_of(constructor: Any) -> dict[str, inspect.Parameter]:
    if constructor is object.__init__:
        return {}
    return dict(list(inspect.signature(constructor).parameters.items())[1:])


def parameter_types(cls: type, *, include_extras: bool = False) -> dict[str, Any]:
    """Return the types of a constructor's parameters by name; those of a dataclass are resolved where they stand.

    ``include_extras`` keeps what ``Annotated`` says besides the type.
    """
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    source = owner if "__dataclass_fields__" in vars(owner) else vars(owner)["__init__"]
    return get_type_hints(source, include_extras=include_extras)


def clone(estimator: Estimator) -> Estimator:
    """Return an unfitted copy with the same parameters."""
    copied: Estimator = scikit_learn("sklearn.base").clone(estimator)
    return copied


def check_is_fitted(estimator: Any, attributes: str | None = None) -> None:
    """Raise scikit-learn's error unless the estimator has learned something, or these attributes."""
    scikit_learn("sklearn.utils.validation").check_is_fitted(estimator, attributes)


class _Later(ModuleType):
    """Stands for a module until somebody wants something of it."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _some_imports_later() -> Iterator[None]:
    stand_ins = {name: _Later(name) for name in LATER if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


def scikit_learn(module: str) -> Any:
    """Return a module of scikit-learn; its ``import scipy.stats`` and ``import pandas`` wait until they are used.

    >>> scikit_learn("sklearn.exceptions").NotFittedError.__name__
    'NotFittedError'
    """
    with _IMPORTING, nullcontext() if module in sys.modules else _some_imports_later():
        return import_module(module)
