"""Whiteners, against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.models.linear import whitener


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("rank", [3, 6])
def test_whitener_whitens_the_directions_that_carry_variance(rank, ridge):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, rank)) @ rng.normal(size=(rank, 6))
    moment = rows.T @ rows
    result = whitener(moment, ridge)
    assert result.shape == (6, 6 if ridge else rank)
    np.testing.assert_allclose(result.T @ (moment + ridge * np.eye(6)) @ result, np.eye(result.shape[1]), atol=1e-6)
