"""What the methods and encoders take from scikit-learn, imported without SciPy's statistics.

scikit-learn imports ``scipy.stats`` for functions that nothing here calls, which took a sixth of every start of the
program. It is there as soon as anything asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

STATISTICS = "scipy.stats"


class _Later(ModuleType):
    """Stands for a module until somebody wants something of it."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def statistics_later() -> Iterator[None]:
    """Let a module be imported whose ``import scipy.stats`` can wait until it is used.

    >>> with statistics_later():
    ...     from scipy import stats
    >>> stats.rankdata([3, 1, 2])
    array([3., 1., 2.])
    """
    stand_in = _Later(STATISTICS)
    sys.modules.setdefault(STATISTICS, stand_in)
    try:
        yield
    finally:
        if sys.modules.get(STATISTICS) is stand_in:
            del sys.modules[STATISTICS]


with statistics_later():
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import clone as clone
    from sklearn.exceptions import ConvergenceWarning as ConvergenceWarning
    from sklearn.exceptions import NotFittedError as NotFittedError
    from sklearn.utils.validation import check_is_fitted as check_is_fitted
