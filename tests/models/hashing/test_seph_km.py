"""SePH: the divergence and its gradient against dense sums, tied codes, kernel logistic regression, unified codes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from diptych.codes import pack_signs
from diptych.data import load_dataset
from diptych.errors import InvalidInputError
from diptych.metrics import AP, SameLabel, evaluate
from diptych.models import SePHkm
from diptych.models.hashing import _solvers, seph_km
from diptych.models.hashing._solvers import KernelBasis, fit_kernel_logistic
from diptych.models.hashing.seph_km import HammingAffinity, codes_from_affinity, descend, flip_bits
from diptych.protocols import Retrieval, evaluate_retrieval
from tests.models.hashing.sure_bits import assert_same_bits


def labels_of(n, rng, classes=4):
    labels = (rng.random((n, classes)) < 0.4).astype(float)
    labels[np.arange(n), rng.integers(0, classes, n)] = 1
    return labels


def dense_objective(codes, labels, quantization):
    """The definition, item by item, with matrices of n×n."""
    unit = labels / np.linalg.norm(labels, axis=1, keepdims=True)
    different = ~np.eye(len(codes), dtype=bool)
    affinity = (unit @ unit.T)[different]
    nearness = 1 / (1 + ((codes[:, None] - codes) ** 2).sum(axis=2)[different] / 4)
    wanted, found = affinity / affinity.sum(), nearness / nearness.sum()
    shared = wanted > 0
    divergence = (wanted[shared] * np.log(wanted[shared] / found[shared])).sum()
    return divergence + quantization * ((np.abs(codes) - 1) ** 2).mean()


@pytest.mark.parametrize("block", [1, 700, 1 << 20])
def test_streamed_passes_give_the_dense_objective_and_its_gradient(monkeypatch, block):
    monkeypatch.setattr(seph_km, "_BLOCK_BYTES", block)
    rng = np.random.default_rng(0)
    labels, codes = labels_of(23, rng), rng.normal(size=(23, 5))
    affinity = HammingAffinity(labels, np.ones(23), quantization=0.3)
    value, gradient = affinity(codes)
    assert value == pytest.approx(dense_objective(codes, labels, 0.3), rel=1e-12)
    slopes = np.zeros_like(codes)
    for place in np.ndindex(codes.shape):
        step = np.zeros_like(codes)
        step[place] = 1e-5
        slopes[place] = (dense_objective(codes + step, labels, 0.3) - dense_objective(codes - step, labels, 0.3)) / 2e-5
    np.testing.assert_allclose(gradient, slopes, atol=1e-9)


def test_collapsed_labels_are_the_dense_problem_with_tied_codes():
    rng = np.random.default_rng(1)
    kinds, codes, counts = np.unique(labels_of(9, rng), axis=0), rng.normal(size=(9, 6)), rng.integers(1, 6, 9)
    codes, counts = codes[: len(kinds)], counts[: len(kinds)]
    tied, dense = np.repeat(codes, counts, axis=0), np.repeat(kinds, counts, axis=0)
    collapsed = HammingAffinity(kinds, counts.astype(float), quantization=0.01)
    streamed = HammingAffinity(dense, np.ones(len(dense)), quantization=0.01)
    value, gradient = collapsed(codes)
    assert value == pytest.approx(dense_objective(tied, dense, 0.01), rel=1e-12)
    np.testing.assert_allclose(np.repeat(gradient, counts, axis=0), streamed(tied)[1], atol=1e-14)
    path = descend(collapsed, codes, step=0.25, max_iter=20)
    np.testing.assert_allclose(
        np.repeat(path, counts, axis=0), descend(streamed, tied, step=0.25, max_iter=20), atol=1e-8
    )


def test_descending_every_pair_ties_the_codes_of_a_class_and_parts_the_classes():
    labels = np.eye(3)[np.arange(45) % 3]
    affinity = HammingAffinity(labels, np.ones(45), quantization=0.01)
    signs = codes_from_affinity(affinity, 12, step=0.25, max_iter=100, seed=0)
    assert {len(np.unique(signs[kind::3], axis=0)) for kind in range(3)} == {1}
    assert len(np.unique(signs, axis=0)) == 3
    assert np.abs(signs.mean(axis=0)).max() < 1


def test_the_objective_falls_along_the_descent_and_bits_are_turned_to_a_local_minimum():
    rng = np.random.default_rng(2)
    kinds = np.unique(labels_of(40, rng), axis=0)
    affinity = HammingAffinity(kinds, rng.integers(1, 9, len(kinds)).astype(float), quantization=0.01)
    start = 1e-4 * rng.normal(size=(len(kinds), 8))
    values = [affinity(descend(affinity, start, step=0.25, max_iter=steps))[0] for steps in (1, 10, 40, 100)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.5 * values[0]

    signs = codes_from_affinity(affinity, 8, step=0.25, max_iter=100, seed=0)
    turned = flip_bits(affinity, signs)
    lowest = affinity(turned)[0]
    assert lowest < affinity(signs)[0]
    assert set(np.unique(turned)) == {-1.0, 1.0}
    for place in np.ndindex(turned.shape):
        turned[place] *= -1
        assert affinity(turned)[0] > lowest - 1e-9
        turned[place] *= -1


def test_labels_that_nobody_shares_are_refused():
    with pytest.raises(InvalidInputError, match="no two pairs share a label"):
        HammingAffinity(np.eye(4), np.ones(4), quantization=0.01)


def test_kernel_features_are_gaussians_of_the_mean_squared_distance():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 3)) * 7 + 100
    basis = KernelBasis.fitted(rows, 40, seed=0)
    distances = ((rows[:, None] - rows) ** 2).sum(axis=2)
    wanted = np.exp(-distances / distances.mean())
    found = basis(rows)
    # Few enough rows are their own centres, in another order.
    np.testing.assert_allclose(found[:, found.argmax(axis=1)], wanted, atol=1e-12)
    assert len(KernelBasis.fitted(np.repeat(rows, 3, axis=0), 60, seed=0).centres) == 40
    assert len(KernelBasis.fitted(rows, 7, seed=0).centres) == 7


def test_kernel_logistic_regression_reaches_the_optimum_of_every_bit(monkeypatch):
    monkeypatch.setattr(_solvers, "_TOLERANCE", 1e-7)
    monkeypatch.setattr(_solvers, "_BLOCK_BYTES", 1000)
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(60, 3))
    signs = np.where(rows @ rng.normal(size=(3, 4)) + rng.normal(size=(60, 4)) > 0, 1.0, -1.0)
    basis = KernelBasis.fitted(rows, 12, seed=0)
    weights = fit_kernel_logistic(basis, rows, signs, regularization=0.05, max_iter=500)
    features, kernel = basis(rows), basis(basis.centres * basis.scale + basis.mean)
    slope = -features.T @ (signs * expit(-signs * (features @ weights))) + 2 * 0.05 * kernel @ weights
    assert np.abs(slope).max() < 1e-4
    factor = np.linalg.cholesky(kernel)
    for bit in range(4):
        # In the coordinates u of w = K₀^(−½)u the penalty is c‖u‖², and scikit-learn's C is 1/(2c).
        reference = LogisticRegression(C=10, fit_intercept=False, tol=1e-9, max_iter=2000)
        reference.fit(np.linalg.solve(factor, features.T).T, signs[:, bit])
        np.testing.assert_allclose(
            features @ weights[:, bit], np.linalg.solve(factor, features.T).T @ reference.coef_[0], atol=2e-3
        )


def test_unified_codes_multiply_probabilities_and_divide_by_the_prior(problem):
    model = problem.fit(SePHkm(n_bits=7))
    image, text = (
        expit(decide(rows))
        for decide, rows in ((model.decision_images, problem.images), (model.decision_texts, problem.texts))
    )
    prior = expit(model.prior_log_odds_)
    wanted = image * text / prior - (1 - image) * (1 - text) / (1 - prior)
    assert_same_bits(model.encode_pairs(problem.images, problem.texts), pack_signs(wanted), wanted)
    # Three classes of thirty: a bit separates one of them from the two others.
    np.testing.assert_allclose(np.minimum(prior, 1 - prior), 1 / 3)


def test_streamed_and_collapsed_codes_serve_alike_and_seeds_matter(problem):
    rows = slice(0, 60)
    for affinity in ("streamed", "collapsed"):
        model = problem.fit(SePHkm(affinity=affinity, n_centres=20), rows)
        assert model.score(problem.images[60:], problem.texts[60:], problem.labels[60:]) > 0.9
    first, second = (problem.fit(SePHkm(random_state=seed)).encode_images(problem.images) for seed in (0, 1))
    assert (first != second).any()


def test_a_part_of_the_pairs_and_rows_without_labels(problem):
    part = problem.fit(SePHkm(max_pairs=30, n_centres=500))
    assert len(part.image_centres_) == 30
    several = np.stack([problem.labels == name for name in ("art", "birds", "cars")], axis=1).astype(int)
    several[:20] = 0
    model = SePHkm().fit(problem.images, problem.texts, several)
    known = SePHkm().fit(problem.images[20:], problem.texts[20:], several[20:])
    outputs = known.decision_images(problem.images)
    # The optimiser adds zeros for the rows without labels, so it stops a little elsewhere.
    np.testing.assert_allclose(model.decision_images(problem.images), outputs, atol=1e-3)
    assert_same_bits(model.encode_images(problem.images), known.encode_images(problem.images), outputs, margin=1e-3)


def test_shuffled_labels_give_chance(problem):
    scores = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        images, texts, labels = rng.normal(size=(90, 8)), rng.normal(size=(90, 5)), rng.permutation(problem.labels)
        model = SePHkm(n_centres=20, random_state=seed).fit(images[:60], texts[:60], labels[:60])
        result = evaluate(
            model.encode_images(images[60:]),
            model.encode_texts(texts[60:]),
            model.space,
            SameLabel(labels[60:], labels[60:]),
            [AP()],
        )
        scores.append(result.mean[AP()] - result.chance[AP()])
    assert abs(np.mean(scores)) < 4 * np.std(scores, ddof=1) / np.sqrt(len(scores))


@pytest.mark.data("wikipedia")
def test_unified_codes_of_the_training_pairs_of_wikipedia():
    splits = load_dataset("wikipedia")
    model = SePHkm(refine=True, n_centres=100).fit(*splits.train.aligned())
    result = evaluate_retrieval(model, Retrieval(splits.test, splits.train), gallery="unified")
    assert 0.25 < result.image_query.mean[AP()] < 0.33
    assert 0.60 < result.text_query.mean[AP()] < 0.70
