"""Agreement of towers: invariances, brute force, and no bias where there is nothing in common."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.errors import InvalidInputError
from diptych.metrics import agreement, debiased_cka, mutual_neighbours


def dependence(k, left):
    n = len(k)
    k, left = (matrix - np.diag(np.diag(matrix)) for matrix in (k, left))
    ones = np.ones(n)
    both = (k * left).sum() + (ones @ k @ ones) * (ones @ left @ ones) / ((n - 1) * (n - 2))
    return (both - 2 * ones @ k @ left @ ones / (n - 2)) / (n * (n - 3))


def test_alignment_is_that_of_its_kernels():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(12, 5)) + 3
    b = a @ rng.normal(size=(5, 7)) + rng.normal(size=(12, 7))
    k, left = a @ a.T, b @ b.T
    expected = dependence(k, left) / np.sqrt(dependence(k, k) * dependence(left, left))
    assert debiased_cka(a, b) == pytest.approx(expected, abs=1e-10)
    turned = 2 * b @ np.linalg.qr(rng.normal(size=(7, 7)))[0] - 1
    assert debiased_cka(a, turned) == pytest.approx(expected, abs=1e-10)


def test_unrelated_wide_features_do_not_agree():
    rng = np.random.default_rng(0)
    found = [debiased_cka(rng.normal(size=(60, 300)), rng.normal(size=(60, 200))) for _ in range(30)]
    assert abs(np.mean(found)) < 0.02
    shares = [mutual_neighbours(rng.normal(size=(60, 30)), rng.normal(size=(60, 20)), 10) for _ in range(30)]
    assert np.mean(shares) == pytest.approx(10 / 59, abs=0.02)


def test_neighbours_are_counted_without_the_item_itself():
    a = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]])
    b = np.array([[1, 0], [0.9, 1], [0, 1], [1, 0.1]])
    # By cosine: 0-1, 2-3 in the one; 0-3, 1-2 or 1-3, 2-1 and 3-0 in the other.
    assert mutual_neighbours(a, a, 1) == 1
    assert mutual_neighbours(a, b, 1) == 0


def test_the_error_is_that_of_the_jackknife():
    values = np.arange(40.0)[:, None]
    found = agreement(lambda a, b: float(a.mean()), values, values)
    assert found.value == 19.5
    # Of a mean over blocks of equal size it is the standard error of the blocks' means.
    blocks = values.reshape(4, 10).mean(axis=0)
    assert found.error == pytest.approx(blocks.std(ddof=1) / np.sqrt(10))
    with pytest.raises(InvalidInputError, match="same items"):
        agreement(debiased_cka, values, values[:5])
