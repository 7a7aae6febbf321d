"""DLFH: a likelihood that never falls, brute force of one bit, and both kinds of hash functions."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.metrics import AP, SameLabel, evaluate
from diptych.models import DLFH
from diptych.models.hashing import dlfh
from diptych.models.hashing.dlfh import improve_codes, latent_factor_codes
from tests.models.hashing.sure_bits import assert_same_bits


def likelihood(left, right, similar, strength):
    theta = strength / left.shape[1] * left @ right.T
    return float((similar * theta - np.logaddexp(0, theta)).sum())


def signs(rng, *shape):
    return np.where(rng.random(shape) < 0.5, -1.0, 1.0)


@pytest.mark.parametrize("strength", [1.0, 4.0, 8.0])
def test_no_step_lowers_the_likelihood_of_what_it_looks_at(strength):
    rng = np.random.default_rng(0)
    labels = (rng.random((40, 5)) < 0.3).astype(float)
    similar = labels @ labels.T > 0
    left, right = signs(rng, 40, 6), signs(rng, 40, 6)
    values = [likelihood(left, right, similar, strength)]
    for _ in range(6):
        improve_codes(left, labels, right, labels, strength=strength)
        values.append(likelihood(left, right, similar, strength))
        improve_codes(right, labels, left, labels, strength=strength)
        values.append(likelihood(right, left, similar, strength))
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > values[0]


def test_a_bit_becomes_the_best_of_the_quadratic_that_bounds_the_likelihood(monkeypatch):
    rng = np.random.default_rng(1)
    labels, strength = (rng.random((30, 4)) < 0.4).astype(float), 5.0
    codes, other = signs(rng, 30, 3), signs(rng, 7, 3)
    similar = labels @ labels[:7].T > 0
    expected = codes.copy()
    for bit in range(3):
        # One number at a time: slope of the likelihood by differences, curvature at its bound m(λ/q)²/4.
        for row in range(30):
            step = np.zeros_like(expected)
            step[row, bit] = 1e-5
            slope = (
                likelihood(expected + step, other, similar, strength)
                - likelihood(expected - step, other, similar, strength)
            ) / 2e-5
            now = expected[row, bit]
            bound = [
                slope * (bit_value - now) - 7 * (strength / 3) ** 2 / 8 * (bit_value - now) ** 2
                for bit_value in (-1, 1)
            ]
            # So far from a tie that the error of a slope by differences does not decide.
            assert abs(bound[1] - bound[0]) > 1e-6
            expected[row, bit] = 1.0 if bound[1] >= bound[0] else -1.0
    monkeypatch.setattr(dlfh, "_BLOCK_NUMBERS", 50)
    improve_codes(codes, labels, other, labels[:7], strength=strength)
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("n_bits", [1, 2])
def test_few_bits_are_learned_too(n_bits):
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    images = 2 * np.eye(2)[labels] + 0.5 * rng.normal(size=(200, 2))
    texts = 2 * np.eye(2)[labels] + 0.5 * rng.normal(size=(200, 2))
    model = DLFH(n_bits=n_bits).fit(images[:120], texts[:120], labels[:120])
    # One bit for two classes; with bits as they were drawn at first it would be a half.
    assert model.score(images[120:], texts[120:], labels[120:]) > 0.8


def test_codes_of_one_class_agree_across_the_sides():
    labels = np.eye(4)[np.arange(80) % 4]
    left, right = latent_factor_codes(labels, 16, strength=4.0, n_columns=16, max_iter=30, seed=0)
    agreement, same = left @ right.T / 16, labels @ labels.T > 0
    assert agreement[same].min() > 0.3
    assert agreement[~same].max() < -0.3


def test_ridge_hash_functions_are_the_regularised_least_squares(problem):
    model = problem.fit(DLFH(n_bits=5, regularization=0.3))
    indicator = (problem.labels[:, None] == np.unique(problem.labels)).astype(float)
    codes, _ = latent_factor_codes(indicator, 5, strength=8.0, n_columns=5, max_iter=30, seed=0)
    rows = problem.images - problem.images.mean(axis=0)
    ridge = 0.3 * (rows**2).sum() / 8
    weights = np.linalg.solve(rows.T @ rows + ridge * np.eye(8), rows.T @ codes)
    np.testing.assert_allclose(model.decision_images(problem.images), rows @ weights, atol=1e-9)


def test_kernel_hash_functions_separate_what_a_plane_cannot():
    rng = np.random.default_rng(2)
    labels = np.arange(120) % 2
    angle, radius = rng.random(120) * 2 * np.pi, 1 + 2 * labels + 0.2 * rng.normal(size=120)
    rings = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    texts = np.eye(2)[labels] + 0.1 * rng.normal(size=(120, 2))
    scores = {
        kind: DLFH(n_bits=8, hash_functions=kind, n_centres=30)
        .fit(rings[:80], texts[:80], labels[:80])
        .score(rings[80:], texts[80:], labels[80:])
        for kind in ("ridge", "kernel")
    }
    assert scores["kernel"] > 0.9 > 0.75 > scores["ridge"]


def test_kernel_models_are_saved_whole_and_say_the_same_of_one_row(problem, tmp_path):
    model = problem.fit(DLFH(n_bits=12, hash_functions="kernel", n_centres=20))
    model.save(tmp_path / "dlfh")
    again = DLFH.load(tmp_path / "dlfh")
    batch = model.encode_pairs(problem.images, problem.texts)
    np.testing.assert_array_equal(again.encode_pairs(problem.images, problem.texts), batch)
    outputs = model.decision_pairs(problem.images, problem.texts)
    rows = [(problem.images[i : i + 1], problem.texts[i : i + 1]) for i in range(90)]
    np.testing.assert_allclose(np.vstack([model.decision_pairs(*row) for row in rows]), outputs, atol=1e-9)
    assert_same_bits([model.encode_pairs(*row)[0] for row in rows], batch, outputs)


def test_what_cannot_be_learned_scores_as_chance():
    gaps = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        images, texts, labels = rng.normal(size=(90, 8)), rng.normal(size=(90, 5)), rng.permutation(np.arange(90) % 3)
        model = DLFH(random_state=seed, max_iter=5).fit(images[:60], texts[:60], labels[:60])
        truth = SameLabel(labels[60:], labels[60:])
        result = evaluate(model.encode_images(images[60:]), model.encode_texts(texts[60:]), model.space, truth, [AP()])
        gaps.append(result.mean[AP()] - result.chance[AP()])
    assert abs(np.mean(gaps)) < 4 * np.std(gaps, ddof=1) / np.sqrt(len(gaps))
