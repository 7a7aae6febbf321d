"""Constructor parameters that were renamed or added: former names work, with a warning; files and digests keep them."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

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
