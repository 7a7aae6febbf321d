"""Pairs, loss and passes of coupled networks in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.models.hashing._siamese import LabelPairs, PairBatch, coupled_loss, tanh_backward, tanh_forward
from diptych.models.neural._layers import (
    initial_layers,
)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(5, 40))
def test_partners_share_a_label_or_none(seed: int, n_labels: int, n_rows: int) -> None:
    rng = np.random.default_rng(seed)
    indicator = (rng.random((n_rows, n_labels)) < 0.4).astype(float)
    indicator[np.arange(n_rows), rng.integers(n_labels, size=n_rows)] = 1
    pairs, rows = LabelPairs(indicator), rng.integers(n_rows, size=50)
    common = indicator @ indicator.T > 0
    assert common[rows, pairs.similar(rows, rng)].all()
    partners, found = pairs.dissimilar(rows, rng)
    assert not common[rows, partners][found].any()
    # A row that shares a label with everybody has no dissimilar partner, and is said to have none.
    assert not found[common[rows].all(axis=1)].any()


def test_similar_partners_are_drawn_evenly_over_labels_and_rows() -> None:
    indicator = np.zeros((12, 2))
    indicator[:3, 0], indicator[2:, 1] = 1, 1
    drawn = LabelPairs(indicator).similar(np.full(20_000, 2), np.random.default_rng(0))
    shares = np.bincount(drawn, minlength=12) / 20_000
    expected = np.r_[np.full(2, 1 / 6), 1 / 6 + 1 / 20, np.full(9, 1 / 20)]
    np.testing.assert_allclose(shares, expected, atol=0.012)


def batch_of(n: int, rng: np.random.Generator) -> PairBatch:
    return PairBatch(np.arange(3 * n), rng.random(n) < 0.5, rng.random(n) < 0.7)


def test_the_coupled_loss_is_its_formula() -> None:
    rng = np.random.default_rng(5)
    n, margin, within = 6, 2.5, 0.3
    images, texts, batch = rng.normal(size=(3 * n, 4)), rng.normal(size=(3 * n, 4)), batch_of(n, rng)

    def attract(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.mean([np.sum((p - q) ** 2) / 2 for p, q in zip(a, b, strict=True)]))

    def repel(a: np.ndarray, b: np.ndarray) -> float:
        gaps = [max(0.0, margin - np.linalg.norm(p - q)) ** 2 / 2 for p, q in zip(a, b, strict=True)]
        return float(np.mean(np.array(gaps)[batch.differs]))

    near = np.where(batch.own[:, None], texts[:n], texts[n : 2 * n])
    expected = attract(images[:n], near) + repel(images[:n], texts[2 * n :])
    for side in (images, texts):
        expected += within * (attract(side[:n], side[n : 2 * n]) + repel(side[:n], side[2 * n :]))
    assert coupled_loss(images, texts, batch, margin=margin, within=within)[0] == pytest.approx(expected)


def test_points_in_one_place_have_a_finite_slope() -> None:
    same = np.ones((9, 4))
    batch = PairBatch(np.arange(9), np.zeros(3, dtype=bool), np.ones(3, dtype=bool))
    loss, *slopes = coupled_loss(same, same, batch, margin=2.0, within=0.5)
    assert loss == pytest.approx(2 * 2.0**2 / 2, rel=1e-5)
    assert not np.any(slopes)


def test_the_gradient_of_a_tanh_network_is_that_of_finite_differences() -> None:
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=(6, 5)), rng.normal(size=(6, 3))
    layers = [np.asarray(layer + 0.1 * rng.normal(size=layer.shape)) for layer in initial_layers((5, 4, 3), rng)]
    gradients = tanh_backward(tanh_forward(rows, layers), layers, weights)
    for layer, gradient in zip(layers, gradients, strict=True):
        for place in np.ndindex(*layer.shape):
            kept = layer[place]
            values = []
            for moved in (kept + 1e-6, kept - 1e-6):
                layer[place] = moved
                values.append(float((tanh_forward(rows, layers)[-1] * weights).sum()))
            layer[place] = kept
            assert gradient[place] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-7)
