"""Moments and whiteners, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.models.linear import moments, whitener


def test_moments_equal_centred_products_whatever_the_block(views, monkeypatch):
    images, texts = views
    monkeypatch.setattr("diptych.arrays.BLOCK_ROWS", 37)
    sums = moments(images, texts)
    a, b = images - images.mean(axis=0), texts - texts.mean(axis=0)
    np.testing.assert_allclose(sums.image, a.T @ a)
    np.testing.assert_allclose(sums.text, b.T @ b)
    np.testing.assert_allclose(sums.cross, a.T @ b)
    assert sums.n_rows == 300


def test_float32_moments_keep_their_digits_far_from_the_origin():
    rng = np.random.default_rng(0)
    images = (rng.normal(size=(20_000, 4)) + 1000).astype(np.float32)
    sums = moments(images, images)
    exact = np.cov(images.astype(np.float64).T, bias=True) * len(images)
    np.testing.assert_allclose(sums.cross, exact, rtol=1e-3, atol=20)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("rank", [3, 6])
def test_whitener_whitens_the_directions_that_carry_variance(rank, ridge):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, rank)) @ rng.normal(size=(rank, 6))
    moment = rows.T @ rows
    result = whitener(moment, ridge)
    assert result.shape == (6, 6 if ridge else rank)
    np.testing.assert_allclose(result.T @ (moment + ridge * np.eye(6)) @ result, np.eye(result.shape[1]), atol=1e-6)
