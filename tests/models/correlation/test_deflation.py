"""Deflation of moments beside deflation of the data, for every shape and either way to an eigenvector."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.models.correlation import regression
from diptych.models.correlation.regression import ShrinkingMatrix, deflate


def views(image_width: int, text_width: int, fall: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return centred views whose directions fall in strength by a factor each."""
    rng = np.random.default_rng(5)
    count = min(image_width, text_width)
    latent = rng.normal(size=(400, count)) * fall ** np.arange(count)
    sides = [latent @ rng.normal(size=(count, width)) for width in (image_width, text_width)]
    sides[0] += 0.3 * rng.normal(size=sides[0].shape)
    return sides[0] - sides[0].mean(axis=0), sides[1] - sides[1].mean(axis=0)


def deflated_data(images: np.ndarray, texts: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and text loadings as the definition has them: from data that are deflated themselves."""
    left, right, scores, loadings = images.copy(), texts.copy(), [], []
    for _ in range(count):
        direction = np.linalg.svd(left.T @ right)[0][:, 0]
        score = left @ direction
        text_loading = right.T @ score / (score @ score)
        left -= np.outer(score, left.T @ score / (score @ score))
        right -= np.outer(score, text_loading)
        scores.append(score)
        loadings.append(text_loading)
    return np.stack(scores, axis=1), np.stack(loadings, axis=1)


@pytest.mark.parametrize("lanczos_width", [1, 10_000], ids=["Lanczos", "decomposition"])
@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (9, 9)], ids=str)
def test_moments_are_deflated_as_the_data_would_be(shape, lanczos_width, monkeypatch):
    monkeypatch.setattr(regression, "_LANCZOS_WIDTH", lanczos_width)
    images, texts = views(*shape, fall=0.8)
    weights, loadings = deflate(images.T @ images, images.T @ texts, 8, 0.0)
    scores, expected = deflated_data(images, texts, 8)
    # Our weights have unit length for data that are not deflated: scores differ by a factor, loadings by its inverse.
    scales = (images @ weights * scores).sum(axis=0) / (scores**2).sum(axis=0)
    np.testing.assert_allclose(images @ weights, scores * scales, atol=1e-9 * np.abs(scores).max())
    np.testing.assert_allclose(loadings * scales, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(np.linalg.norm(weights, axis=0), 1)


@pytest.mark.parametrize("lanczos_width", [1, 10_000], ids=["Lanczos", "decomposition"])
def test_scores_stay_orthogonal_over_many_components(lanczos_width, monkeypatch):
    monkeypatch.setattr(regression, "_LANCZOS_WIDTH", lanczos_width)
    images, texts = views(60, 40)
    weights, _ = deflate(images.T @ images, images.T @ texts, 40, 0.0)
    scores = images @ weights
    scores /= np.linalg.norm(scores, axis=0)
    assert weights.shape == (60, 40)
    np.testing.assert_allclose(scores.T @ scores, np.eye(40), atol=1e-10)


@pytest.mark.parametrize("shape", [(20, 10), (10, 20)], ids=str)
def test_values_that_fall_far_keep_their_digits(shape):
    rng = np.random.default_rng(2)
    left, right = (np.linalg.qr(rng.normal(size=(width, 10)))[0] for width in shape)
    values = 10.0 ** -np.arange(0, 10)
    matrix = ShrinkingMatrix((left * values) @ right.T)
    for number, value in enumerate(values[:9]):
        vector, strength = matrix.leading()
        assert strength == pytest.approx(value, rel=1e-5)
        assert abs(vector @ left[:, number]) == pytest.approx(np.linalg.norm(vector), rel=1e-8)
        matrix.subtract(value * left[:, number], right[:, number])


@pytest.mark.parametrize("lanczos_width", [1, 10_000], ids=["Lanczos", "decomposition"])
def test_nothing_is_left_where_the_sides_share_one_column(lanczos_width, monkeypatch):
    monkeypatch.setattr(regression, "_LANCZOS_WIDTH", lanczos_width)
    cross = np.zeros((6, 5))
    cross[0, 0] = 2.0
    weights, loadings = deflate(np.diag([2.0, 0, 0, 0, 0, 0]), cross, 3, 0.0)
    np.testing.assert_allclose(np.abs(weights), np.eye(6)[:, :1])
    np.testing.assert_allclose(np.abs(loadings), np.eye(5)[:, :1])
