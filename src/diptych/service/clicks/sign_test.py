"""Whether one of two is preferred by more than chance."""

from __future__ import annotations

from scipy.special import bdtr


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the exact sign test: Pr of a split at least as uneven by tossing a fair coin.

    With n = wins + losses and m = min(wins, losses), p = min(1, 2 Σ_{i≤m} C(n, i) / 2ⁿ). Ties are left out, as Dixon
    and Mood (1946) do. Without any vote p is 1.

    >>> from diptych.service.clicks.sign_test import sign_test
    >>> sign_test(5, 0), sign_test(3, 3)
    (0.0625, 1.0)
    """
    n = wins + losses
    if n == 0:
        return 1.0
    return min(1.0, 2.0 * float(bdtr(float(min(wins, losses)), n, 0.5)))
