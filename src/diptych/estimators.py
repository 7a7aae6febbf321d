"""The manners of scikit-learn's estimators, and scikit-learn itself when it is needed.

Importing it takes longer than most searches, and a fitted model needs it for nothing. Where it is imported, it goes
without ``scipy.stats`` and pandas, which it imports for functions that nothing here calls; they are there as soon as
anything asks for them.

Constructor parameters that were renamed or added go by their former names, too, with a warning; files and digests keep
these.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Self, TypeVar

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
    # The engine looks in other threads whether pandas has been imported, and takes a stand-in for it.
    present = {*sys.modules, *(("pandas",) if "lancedb" in sys.modules else ())}
    stand_ins = {name: _Later(name) for name in LATER if name not in present}
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


FORMERLY_SEED = {"seed": "random_state"}


class FormerNames:
    """Lets the constructor, ``set_params`` and attributes of an estimator go by names that they had before.

    >>> import warnings
    >>> from diptych.models import CVH
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     model = CVH(seed=3)
    >>> model, str(caught[0].message)
    (CVH(random_state=3), "CVH: 'seed' is called 'random_state' now")
    """

    former_names: ClassVar[Mapping[str, str]] = {}
    """The former name of a parameter, and its name."""

    added_parameters: ClassVar[tuple[str, ...]] = ()
    """Parameters that came later; None means what was before them, and then no file and no digest holds them."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        constructor = vars(cls).get("__init__")
        known = {} if constructor is None else inspect.signature(constructor).parameters
        renamed = {former: name for former, name in cls.former_names.items() if name in known and former not in known}
        if constructor is not None and renamed:
            # Wrapped, so that the signature that scikit-learn reads stays as it is written.
            cls.__init__ = _taking_former_names(constructor)  # type: ignore[method-assign]
            for former in renamed:
                setattr(cls, former, _FormerAttribute(former))

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of this model or, by ``outer__inner``, of one inside it."""
        changed: Self = super().set_params(**_renamed(self, parameters))  # type: ignore[misc]
        return changed


class _FormerAttribute:
    def __init__(self, former: str) -> None:
        self._former = former

    def __get__(self, model: FormerNames | None, owner: type) -> Any:
        if model is None:
            raise AttributeError(self._former)
        return getattr(model, _name_now(model, self._former, stacklevel=3))

    def __set__(self, model: FormerNames, value: Any) -> None:
        setattr(model, _name_now(model, self._former, stacklevel=3), value)


def current_name(model: Any, name: str) -> str:
    """Return what the parameter ``name`` of a model, or ``outer__inner`` of one inside it, is called now."""
    return _translated(model, name, lambda owner: owner.former_names)


def former_parameters(model: Any, *, deep: bool = True) -> dict[str, Any]:
    """Return ``get_params`` by the names of before, in alphabetical order: what files, digests and cache keys hold."""
    values = {
        name: value
        for name, value in model.get_params(deep=deep).items()
        if value is not None or not _is_added(model, name)
    }
    return dict(sorted((_translated(model, name, _now_to_former), value) for name, value in values.items()))


def _is_added(model: Any, name: str) -> bool:
    first, _, rest = name.partition("__")
    if rest:
        return _is_added(model.get_params()[first], rest)
    return isinstance(model, FormerNames) and first in model.added_parameters


def _now_to_former(model: FormerNames) -> dict[str, str]:
    return {name: former for former, name in model.former_names.items()}


def _translated(model: Any, name: str, names_of: Callable[[FormerNames], Mapping[str, str]]) -> str:
    first, _, rest = name.partition("__")
    names = names_of(model) if isinstance(model, FormerNames) else {}
    inner = f"__{_translated(model.get_params().get(first), rest, names_of)}" if rest else ""
    return names.get(first, first) + inner


def _taking_former_names(constructor: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(constructor)
    def construct(self: FormerNames, *arguments: Any, **parameters: Any) -> None:
        constructor(self, *arguments, **_renamed(self, parameters))

    return construct


def _renamed(model: FormerNames, parameters: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {name: value for name, value in parameters.items() if name not in model.former_names}
    for former in parameters.keys() - renamed.keys():
        name = _name_now(model, former, stacklevel=4)
        if name in renamed:
            raise TypeError(f"{type(model).__name__} is given {name} twice: {former!r} is its former name")
        renamed[name] = parameters[former]
    return renamed


def _name_now(model: FormerNames, former: str, *, stacklevel: int) -> str:
    name = model.former_names[former]
    message = f"{type(model).__name__}: {former!r} is called {name!r} now"
    warnings.warn(message, FutureWarning, stacklevel=stacklevel)
    return name
