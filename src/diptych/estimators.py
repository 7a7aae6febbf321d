"""What the methods and encoders take from scikit-learn, imported without SciPy's statistics and pandas.

scikit-learn imports ``scipy.stats``, and pandas where that is installed, for functions that nothing here calls, which
took a third of every start of the program. They are there as soon as anything asks for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

LATER = ("scipy.stats", "pandas")


class _Later(ModuleType):
    """Stands for a module until somebody wants something of it."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def some_imports_later() -> Iterator[None]:
    """Let a module be imported whose ``import scipy.stats`` and ``import pandas`` can wait until they are used.

    >>> with some_imports_later():
    ...     from scipy import stats
    >>> stats.rankdata([3, 1, 2])
    array([3., 1., 2.])
    """
    stand_ins = {name: _Later(name) for name in LATER if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


with some_imports_later():
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import clone as clone
    from sklearn.exceptions import ConvergenceWarning as ConvergenceWarning
    from sklearn.exceptions import NotFittedError as NotFittedError
    from sklearn.utils.validation import check_is_fitted as check_is_fitted
