"""L-BFGS with a stopping rule that does not depend on units, and a word when it did not get there."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from diptych.arrays import FloatArray

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
"""Gives value and gradient at a point."""


def minimise(
    objective: Objective, start: FloatArray, *, slope: FloatArray, tol: float, max_iter: int, hint: str
) -> FloatArray:
    """Return where the gradient has shrunk to ``tol`` times the largest entry of ``slope``.

    ``hint`` completes the warning that is given when ``max_iter`` iterations were not enough.
    """
    options = {"maxiter": max_iter, "gtol": tol * float(np.abs(slope).max()), "ftol": 0.0, "maxcor": 20}
    solution = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    if solution.nit >= max_iter:
        warnings.warn(
            f"the fit to pairs stopped after {max_iter} iterations before it converged; raise max_iter or {hint}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return np.asarray(solution.x)
