"""Closed and alternating forms of hashing: CVH, SCM, CMFH, LCMFH and DCH against their definitions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from diptych.arrays import unit_rows
from diptych.codes import pack_signs
from diptych.errors import InvalidInputError
from diptych.models import CCA, CMFH, CVH, DCH, LCMFH, SCMOrth, SCMSeq
from diptych.models.hashing._solvers import semantic_factors
from diptych.models.hashing.dch import descend
from diptych.models.hashing.scm import signed_sum
from diptych.models.labels import Targets
from diptych.models.moments import moments
from tests.models.hashing.sure_bits import assert_same_bits


@pytest.fixture(scope="module")
def pairs():
    """Eighty rows of four classes; both sides see the class and a little of each other."""
    rng = np.random.default_rng(3)
    labels = np.arange(80) % 4
    shared = rng.normal(size=(80, 3))
    images = rng.normal(size=(4, 9))[labels] + shared @ rng.normal(size=(3, 9)) + 0.3 * rng.normal(size=(80, 9)) + 2
    texts = rng.normal(size=(4, 6))[labels] + shared @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(80, 6)) - 1
    return images, texts, labels


def one_hot(labels):
    return np.eye(labels.max() + 1)[labels]


def centred(rows):
    return rows - rows.mean(axis=0)


def similarity(indicator):
    labels = unit_rows(indicator)
    return 2 * labels @ labels.T - 1


def test_cvh_bits_are_signs_of_canonical_variates(pairs):
    images, texts, _ = pairs
    model = CVH(n_bits=6, regularization=0.3).fit(images, texts)
    correlation = CCA(n_components=6, regularization=0.3, weight_power=0.0).fit(images, texts)
    np.testing.assert_allclose(model.correlations_, correlation.correlations_, atol=1e-10)
    variates = correlation.encode_images(images)
    assert_same_bits(model.encode_images(images), pack_signs(variates), variates)


def test_cvh_and_scm_separate_one_hot_classes_with_as_many_bits_as_classes_less_one():
    # Classes of different sizes, or all directions would be equally good and their signs a matter of rounding.
    labels = np.repeat(np.arange(5), [3, 5, 8, 12, 20])
    rows = one_hot(labels)
    for model in (CVH(n_bits=4, regularization=1e-6), SCMOrth(n_bits=4, regularization=1e-6)):
        codes = model.fit(rows, rows, labels).encode_images(rows)
        assert len(np.unique(codes, axis=0)) == 5, model
        assert_same_bits(codes, model.encode_texts(rows), model.decision_images(rows))
    assert model.rank_ == 4


def test_scm_orth_warns_when_bits_exceed_the_rank_and_the_bits_before_stay(pairs):
    images, texts, labels = pairs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short = SCMOrth(n_bits=3, regularization=0.01, fill="null").fit(images, texts, labels)
    with pytest.warns(UserWarning, match="3 directions"):
        long = SCMOrth(n_bits=12, regularization=0.01, fill="null").fit(images, texts, labels)
    np.testing.assert_allclose(
        long.decision_images(images)[:, :3], short.decision_images(images), rtol=1e-9, atol=1e-12
    )
    # Noise bits lose what the three good ones had; mixtures do not.
    mixed = SCMOrth(n_bits=12, regularization=0.01).fit(images, texts, labels)
    assert long.score(images, texts, labels) < short.score(images, texts, labels) - 0.1
    assert mixed.score(images, texts, labels) > short.score(images, texts, labels) - 0.05


def test_semantic_factors_multiply_to_the_dense_form(pairs):
    images, texts, labels = pairs
    indicator = one_hot(labels)
    indicator[::7, 0], indicator[5] = 1, 0
    targets = Targets.from_labels(indicator, len(images))
    left, right = semantic_factors(moments(images, texts, targets, view="unit"))
    dense = centred(images).T @ similarity(indicator) @ centred(texts)
    np.testing.assert_allclose(2 * left @ right.T, dense, atol=1e-9)


def test_scm_seq_residual_in_moments_is_the_dense_residual(pairs):
    images, texts, labels = pairs
    n_bits, ridge = 7, 0.05
    model = SCMSeq(n_bits=n_bits, regularization=ridge, on_increase="continue").fit(images, texts, labels)
    x, y = centred(images), centred(texts)
    residual = n_bits * similarity(one_hot(labels))
    for bit in range(n_bits):
        expected = leading_value(x, y, x.T @ residual @ y, ridge)
        np.testing.assert_allclose(model.singular_values_[bit], expected, rtol=1e-8)
        signs = [
            np.where(side[:, bit] >= 0, 1, -1) for side in (model.decision_images(images), model.decision_texts(texts))
        ]
        np.testing.assert_allclose(
            signed_sum(images, images.mean(axis=0), model.image_projection_[:, bit]), x.T @ signs[0], atol=1e-9
        )
        residual = residual - np.outer(*signs)


def leading_value(x, y, cross, ridge):
    """Largest generalised singular value, by the eigenproblem that the whitened SVD replaces."""
    image = x.T @ x + ridge * np.trace(x.T @ x) / x.shape[1] * np.eye(x.shape[1])
    text = y.T @ y + ridge * np.trace(y.T @ y) / y.shape[1] * np.eye(y.shape[1])
    product = np.linalg.solve(image, cross) @ np.linalg.solve(text, cross.T)
    return np.sqrt(np.linalg.eigvals(product).real.max())


def test_scm_seq_falls_back_to_canonical_directions_where_a_singular_value_rises(pairs):
    rng, labels = np.random.default_rng(5), pairs[2]
    images = rng.normal(size=(4, 9))[labels] + 3 * rng.normal(size=(80, 9))
    texts = rng.normal(size=(4, 6))[labels] + rng.normal(size=(80, 6))
    free = SCMSeq(n_bits=6, regularization=0.01, on_increase="continue").fit(images, texts, labels)
    rises = np.flatnonzero(np.diff(free.singular_values_) > 0)
    fallen = SCMSeq(n_bits=6, regularization=0.01, on_increase="cca").fit(images, texts, labels)
    assert fallen.n_learned_ == rises[0] + 1
    learned, same = (model.decision_images(images)[:, : fallen.n_learned_] for model in (fallen, free))
    np.testing.assert_allclose(learned, same, rtol=1e-9, atol=1e-12)


def cmfh_objective(x, y, latent, bases, predictors, model):
    rebuilt = (
        model.balance * ((x - latent @ bases[0]) ** 2).sum()
        + (1 - model.balance) * ((y - latent @ bases[1]) ** 2).sum()
    )
    predicted = ((latent - x @ predictors[0]) ** 2).sum() + ((latent - y @ predictors[1]) ** 2).sum()
    norms = sum((part**2).sum() for part in (*bases, *predictors)) * len(x) + (latent**2).sum()
    return (rebuilt + model.mu * predicted + model.regularization * norms) / len(x)


@pytest.mark.parametrize(("balance", "mu"), [(0.5, 100.0), (0.2, 3.0)])
def test_cmfh_never_raises_its_objective_and_is_stationary(pairs, balance, mu):
    images, texts, _ = pairs
    model = CMFH(n_bits=5, balance=balance, mu=mu, tol=0, max_iter=400).fit(images, texts)
    assert (np.diff(model.objectives_) <= 1e-9 * model.objectives_[0]).all()
    x, y = (centred(rows) / np.sqrt((centred(rows) ** 2).sum(axis=1).mean()) for rows in (images, texts))
    latent = model.decision_pairs(images, texts)
    n = len(x)
    predictors = [
        np.linalg.solve(rows.T @ rows / n + model.regularization / mu * np.eye(rows.shape[1]), rows.T @ latent / n)
        for rows in (x, y)
    ]
    np.testing.assert_allclose(model.decision_images(images), x @ predictors[0], atol=1e-9)
    np.testing.assert_allclose(model.decision_texts(texts), y @ predictors[1], atol=1e-9)
    bases = [
        np.linalg.solve(weight * latent.T @ latent / n + model.regularization * np.eye(5), weight * latent.T @ rows / n)
        for weight, rows in ((balance, x), (1 - balance, y))
    ]
    value = cmfh_objective(x, y, latent, bases, predictors, model)
    np.testing.assert_allclose(value, model.objectives_[-1], rtol=1e-3)
    assert value <= model.objectives_[-1] * (1 + 1e-9)


def test_cmfh_legacy_scaling_loses_the_coupling(pairs):
    images, texts, _ = pairs
    right, wrong = (CMFH(n_bits=8, legacy_scaling=legacy).fit(images, texts) for legacy in (False, True))
    sizes = [np.linalg.norm(model.decision_pairs(images, texts)) for model in (right, wrong)]
    assert sizes[1] < 0.5 * sizes[0]


def test_cmfh_does_not_depend_on_the_units_of_a_view(pairs):
    images, texts, _ = pairs
    plain, scaled = CMFH(n_bits=8).fit(images, texts), CMFH(n_bits=8).fit(1000 * images + 5, texts)
    outputs = plain.decision_pairs(images, texts)
    np.testing.assert_allclose(scaled.decision_pairs(1000 * images + 5, texts), outputs, rtol=1e-6, atol=1e-9)
    codes = plain.encode_pairs(images, texts), scaled.encode_pairs(1000 * images + 5, texts)
    assert_same_bits(*codes, outputs, margin=1e-6)


def test_lcmfh_latent_vectors_are_those_of_the_classes(pairs):
    images, texts, labels = pairs
    model = LCMFH(n_bits=6, max_iter=60, tol=0).fit(images, texts, labels)
    assert (np.diff(model.objectives_) <= 1e-9 * model.objectives_[0]).all()
    x = centred(images) / np.sqrt((centred(images) ** 2).sum(axis=1).mean())
    latent = one_hot(labels) @ model.class_codes_
    ridge = model.regularization / model.mu * np.eye(x.shape[1])
    predictor = np.linalg.solve(x.T @ x / len(x) + ridge, x.T @ latent / len(x))
    np.testing.assert_allclose(model.decision_images(images), x @ predictor, atol=1e-9)


def test_discrete_descent_finds_what_no_single_bit_improves(pairs):
    labels = one_hot(pairs[2])
    rng = np.random.default_rng(0)
    classifier = rng.normal(size=(6, 4))
    pull = labels @ classifier.T + 0.1 * rng.normal(size=(80, 6))
    codes = np.where(rng.random((80, 6)) < 0.5, -1.0, 1.0)

    def objective(bits):
        return ((bits @ classifier) ** 2).sum(axis=1) - 2 * (bits * pull).sum(axis=1)

    before = objective(codes)
    descend(codes, pull, classifier, sweeps=50)
    after = objective(codes)
    assert (after <= before + 1e-9).all()
    for bit in range(6):
        turned = codes.copy()
        turned[:, bit] *= -1
        assert (objective(turned) >= after - 1e-4).all()


def test_dch_gives_rows_of_one_class_one_code_when_features_do_not_count(pairs):
    images, texts, labels = pairs
    far = images + 50 * np.eye(9)[labels]
    codes = DCH(n_bits=12, nu=0, projection_ridge=1e-9).fit(far, texts, labels).encode_images(far)
    assert len(np.unique(codes, axis=0)) <= 6


@pytest.mark.parametrize("model", [CVH(), SCMSeq(), CMFH(), LCMFH(), DCH()])
def test_shuffled_supervision_gives_chance(pairs, model):
    images, texts, labels = pairs
    rng = np.random.default_rng(1)
    noise = rng.normal(size=images.shape)
    scores = []
    for draw in range(12):
        order = np.random.default_rng(draw).permutation(80)
        fitted = model.fit(noise[:40], texts[order][:40], labels[np.random.default_rng(draw + 9).permutation(80)][:40])
        scores.append(fitted.score(noise[40:], texts[40:], labels[40:]))
    # One tie group of 40 items with 10 relevant ones each.
    chance = 9 / 39 + (1 - 9 / 39) * sum(1 / rank for rank in range(1, 41)) / 40
    assert abs(np.mean(scores) - chance) < 0.06


@pytest.mark.parametrize("model", [CVH, SCMOrth, SCMSeq, CMFH, LCMFH, DCH])
def test_a_bad_number_of_bits_is_refused(pairs, model):
    with pytest.raises(InvalidInputError, match="n_bits must be an integer of at least 1, got 0"):
        model(n_bits=0).fit(*pairs)
