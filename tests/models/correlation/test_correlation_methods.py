"""CCA, CFA and regression: algebraic identities, and relations between the methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.cross_decomposition import CCA as IterativeCCA

from diptych import Space
from diptych.data import load_dataset
from diptych.errors import InvalidInputError
from diptych.metrics import AP
from diptych.models import CCA, CFA, KCCA, LinearRegression
from diptych.models.correlation.cca import RIDGES
from diptych.models.moments import moments
from diptych.protocols import evaluate_model


def test_cca_whitens_and_diagonalises(views):
    images, texts = views
    model = CCA(regularization=0, weight_power=0).fit(images, texts)
    a, b = model.encode_images(images), model.encode_texts(texts)
    n = len(a)
    np.testing.assert_allclose(a.T @ a / n, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(b.T @ b / n, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(a.T @ b / n, np.diag(model.correlations_), atol=1e-9)
    assert (np.diff(model.correlations_) <= 0).all()


def test_cca_agrees_with_the_generalised_eigenproblem(views):
    images, texts = views
    a, b = images - images.mean(axis=0), texts - texts.mean(axis=0)
    zero_a, zero_b = np.zeros((9, 9)), np.zeros((6, 6))
    left = np.block([[zero_a, a.T @ b], [b.T @ a, zero_b]])
    right = np.block([[a.T @ a, np.zeros((9, 6))], [np.zeros((6, 9)), b.T @ b]])
    expected = eigh(left, right, eigvals_only=True)[::-1][:6]
    np.testing.assert_allclose(CCA(regularization=0).fit(images, texts).correlations_, expected, atol=1e-9)


def test_cca_agrees_with_the_iterative_algorithm(views):
    images, texts = views
    ours = CCA(n_components=2, regularization=0).fit(images, texts).correlations_
    x, y = IterativeCCA(n_components=2, max_iter=5000, tol=1e-12).fit(images, texts).transform(images, texts)
    np.testing.assert_allclose(ours, [np.corrcoef(x[:, k], y[:, k])[0, 1] for k in range(2)], atol=1e-6)


def test_unregularised_cca_ignores_invertible_maps_of_either_side(views):
    images, texts = views
    rng = np.random.default_rng(0)
    plain = CCA(regularization=0).fit(images, texts)
    moved_images, moved_texts = images @ rng.normal(size=(9, 9)) + 3, texts @ rng.normal(size=(6, 6)) - 1
    moved = CCA(regularization=0).fit(moved_images, moved_texts)
    np.testing.assert_allclose(moved.correlations_, plain.correlations_, atol=1e-8)
    np.testing.assert_allclose(moved.similarity(moved_images, moved_texts), plain.similarity(images, texts), atol=1e-6)


def test_regularised_cca_is_scale_free(views):
    images, texts = views
    one, two = CCA().fit(images, texts), CCA().fit(images * 1000, texts / 1000)
    np.testing.assert_allclose(one.correlations_, two.correlations_)


def test_weight_power_multiplies_components_by_their_correlation(views):
    images, texts = views
    plain, weighted = CCA(weight_power=0).fit(images, texts), CCA(weight_power=2).fit(images, texts)
    np.testing.assert_allclose(
        weighted.encode_texts(texts), plain.encode_texts(texts) * plain.correlations_**2, atol=1e-12
    )


@pytest.mark.parametrize("shape", [(450, 410), (410, 450)])
def test_few_components_of_a_wide_problem_equal_the_full_solution(shape):
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(1000, 5)) * [5, 4, 3, 2, 1]
    images = meaning @ rng.normal(size=(5, shape[0])) + rng.normal(size=(1000, shape[0]))
    texts = meaning @ rng.normal(size=(5, shape[1])) + rng.normal(size=(1000, shape[1]))
    few, full = CCA(n_components=4).fit(images, texts), CCA().fit(images, texts)
    np.testing.assert_allclose(few.correlations_, full.correlations_[:4], atol=1e-9)
    np.testing.assert_allclose(few.encode_images(images), full.encode_images(images)[:, :4], atol=1e-5)
    np.testing.assert_allclose(few.encode_texts(texts), full.encode_texts(texts)[:, :4], atol=1e-5)


def test_cfa_directions_are_orthonormal_and_beat_random_rotations(views):
    images, texts = views
    model = CFA(n_components=3, scale="none").fit(images, texts)
    np.testing.assert_allclose(model.image_projection_.T @ model.image_projection_, np.eye(3), atol=1e-10)
    a, b = images - images.mean(axis=0), texts - texts.mean(axis=0)
    best = np.trace(model.image_projection_.T @ a.T @ b @ model.text_projection_)
    rng = np.random.default_rng(0)
    for _ in range(50):
        left, right = np.linalg.qr(rng.normal(size=(9, 3)))[0], np.linalg.qr(rng.normal(size=(6, 3)))[0]
        assert np.trace(left.T @ a.T @ b @ right) < best
    np.testing.assert_allclose(best, model.singular_values_.sum())


def test_kcca_with_linear_kernels_and_kappa_one_is_cfa(views):
    images, texts = views
    kernel = KCCA(n_components=4, kappa=1, image_kernel="linear", text_kernel="linear", metric="cosine").fit(
        images, texts
    )
    plain = CFA(n_components=4, scale="none", metric="cosine").fit(images, texts)
    np.testing.assert_allclose(kernel.similarity(images, texts), plain.similarity(images, texts), atol=1e-6)
    np.testing.assert_allclose(kernel.objective_, plain.singular_values_, rtol=1e-8)


def test_regression_solves_the_normal_equations_both_ways(views):
    images, texts = views
    model = LinearRegression(regularization=0.01).fit(images, texts)
    a, b = images - images.mean(axis=0), texts - texts.mean(axis=0)
    ridge_a, ridge_b = 0.01 * np.trace(a.T @ a) / 9, 0.01 * np.trace(b.T @ b) / 6
    np.testing.assert_allclose(model.image_to_text_, np.linalg.solve(a.T @ a + ridge_a * np.eye(9), a.T @ b))
    np.testing.assert_allclose(model.text_to_image_, np.linalg.solve(b.T @ b + ridge_b * np.eye(6), b.T @ a))


def test_regression_without_centring_works_on_the_rows_as_they_are(views):
    images, texts = views
    model = LinearRegression(regularization=0, center=False).fit(images, texts)
    np.testing.assert_allclose(model.image_to_text_, np.linalg.lstsq(images, texts, rcond=None)[0], atol=1e-8)
    expected = Space("cosine").compare(images @ model.image_to_text_, texts)
    np.testing.assert_allclose(model.similarity(images, texts), expected, atol=1e-9)


@pytest.mark.data("wikipedia")
def test_regression_without_centring_reproduces_the_published_row():
    splits = load_dataset("wikipedia")
    model = LinearRegression(regularization=1e-8, center=False).fit(*splits.train.aligned())
    result = evaluate_model(model, splits.test)
    assert result.image_query.mean[AP()] == pytest.approx(0.2028, abs=0.005)
    assert result.text_query.mean[AP()] == pytest.approx(0.1459, abs=0.005)


def test_each_direction_of_the_regression_searches_the_features_of_the_gallery(views):
    images, texts = views
    model = LinearRegression().fit(images, texts)
    a, b = images - images.mean(axis=0), texts - texts.mean(axis=0)
    x, y = model.encode_images(images), model.encode_texts(texts)
    cosine = Space("cosine")
    np.testing.assert_allclose(model.space.compare(x, y), cosine.compare(a @ model.image_to_text_, b), atol=1e-12)
    np.testing.assert_allclose(
        model.space.compare(y, x, "text_query"), cosine.compare(b @ model.text_to_image_, a), atol=1e-12
    )
    one_way = LinearRegression(target="texts").fit(images, texts)
    np.testing.assert_allclose(
        one_way.space.compare(one_way.encode_texts(texts), one_way.encode_images(images), "text_query"),
        model.space.compare(x, y).T,
        atol=1e-12,
    )


def test_cfa_scales_columns_to_unit_deviation_first(views):
    images, texts = views
    images = images * np.arange(1, 10)
    scaled = CFA(n_components=2).fit(images, texts)
    by_hand = CFA(n_components=2, scale="none").fit(
        (images - images.mean(axis=0)) / images.std(axis=0), (texts - texts.mean(axis=0)) / texts.std(axis=0)
    )
    np.testing.assert_allclose(scaled.singular_values_, by_hand.singular_values_)
    assert not np.allclose(
        scaled.singular_values_, CFA(n_components=2, scale="none").fit(images, texts).singular_values_
    )


def test_regression_onto_images_uses_the_picture_half_in_both_directions(views):
    images, texts = views
    both, one_way = LinearRegression().fit(images, texts), LinearRegression(target="images").fit(images, texts)
    expected = both.space.compare(both.encode_texts(texts), both.encode_images(images), "text_query")
    np.testing.assert_allclose(one_way.similarity(images, texts), expected.T, atol=1e-12)


@pytest.mark.parametrize("regularization", [0.0, 1e-8])
def test_float32_noise_is_not_correlated(regularization):
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(50, 100)).astype(np.float32), rng.normal(size=(50, 80)).astype(np.float32)
    model = CCA(regularization=regularization).fit(images, texts)
    assert model.correlations_.max() < 1.01
    assert len(model.correlations_) <= 50


def test_few_components_of_few_rows_are_not_filled_up_with_noise():
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(6, 450)), rng.normal(size=(6, 410))
    assert len(CCA(n_components=20).fit(images, texts).correlations_) == 5
    for bad in (0, "3", 2.5):
        with pytest.raises(InvalidInputError, match="n_components must be an integer of at least 1"):
            CCA(n_components=bad).fit(images, texts)


def test_a_ridge_is_chosen_by_pictures_not_by_their_texts():
    """Further texts of the same few pictures must not look like further pictures."""
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(400, 8))
    images = meaning @ rng.normal(size=(8, 60)) + 2 * rng.normal(size=(400, 60))
    texts = meaning @ rng.normal(size=(8, 40)) + 2 * rng.normal(size=(400, 40))
    few, test = np.repeat(np.arange(40), 5), slice(40, 400)
    several = texts[few] + rng.normal(size=(200, 40))
    fixed = [CCA(regularization=ridge).fit(images[few], several) for ridge in (0.01, 0.1, 1.0, 10.0)]
    scores = [model.score(images[test], texts[test]) for model in fixed]
    chosen = CCA().fit(images[few], several).score(images[test], texts[test])
    assert chosen > 0.9 * max(scores) > 1.5 * min(scores)


@pytest.mark.parametrize("regularization", ["auto", 0.05])
def test_few_rows_of_many_features_give_the_same_from_the_dimensions_that_they_span(regularization):
    rng = np.random.default_rng(3)
    meaning = rng.normal(size=(24, 4))
    images = meaning @ rng.normal(size=(4, 60)) + rng.normal(size=(24, 60)) + 5
    texts = meaning[:, :3] @ rng.normal(size=(3, 40)) + rng.normal(size=(24, 40))
    model = CCA(regularization=regularization, n_components=4).fit(images, texts)
    whole = CCA(regularization=regularization, n_components=4).fit_moments(model.moments(images, texts))
    np.testing.assert_allclose(model.correlations_, whole.correlations_, rtol=1e-6)
    np.testing.assert_allclose(model.image_projection_, whole.image_projection_, atol=1e-6)
    np.testing.assert_allclose(model.similarity(images, texts), whole.similarity(images, texts), atol=1e-6)


def test_the_chosen_ridge_is_that_of_generalised_and_nearly_that_of_leave_one_out_cross_validation():
    rng = np.random.default_rng(1)
    for n_rows in (25, 80):
        meaning = rng.normal(size=(n_rows, 3))
        images = meaning @ rng.normal(size=(3, 15)) + rng.normal(size=(n_rows, 15))
        texts = meaning @ rng.normal(size=(3, 8)) + rng.normal(size=(n_rows, 8))
        sums = moments(images, texts)
        variance = np.trace(sums.image) / n_rows / 15
        hats = []
        for share in RIDGES:
            rows = images - images.mean(axis=0)
            regular = rows.T @ rows + n_rows * share * variance * np.eye(15)
            hats.append(rows @ np.linalg.solve(regular, rows.T) + 1 / n_rows)
        residuals = [texts - hat @ texts for hat in hats]
        gcv = np.array([(r**2).sum() / (1 - np.trace(h) / n_rows) ** 2 for r, h in zip(residuals, hats, strict=True)])
        held_out = []
        for share in RIDGES:
            errors = []
            for row in range(n_rows):
                kept = np.delete(np.arange(n_rows), row)
                mean_a, mean_b = images[kept].mean(axis=0), texts[kept].mean(axis=0)
                a, b = images[kept] - mean_a, texts[kept] - mean_b
                weights = np.linalg.solve(a.T @ a + n_rows * share * variance * np.eye(15), a.T @ b)
                errors.append(((texts[row] - mean_b - (images[row] - mean_a) @ weights) ** 2).sum())
            held_out.append(np.sum(errors))
        covariance = (texts - texts.mean(axis=0)).T @ (texts - texts.mean(axis=0)) / n_rows
        dimensions = np.trace(covariance) ** 2 / (covariance**2).sum()
        weights = (gcv / gcv.min()) ** (-0.5 * n_rows * dimensions)
        chosen = CCA()._ridges(sums)[0] / variance
        assert np.log(chosen) == pytest.approx(np.average(np.log(RIDGES), weights=weights), abs=1e-6)
        # Left out one by one, other pictures are predicted no better than 2 % under any other ridge.
        assert np.interp(np.log(chosen), np.log(RIDGES), held_out) < 1.02 * min(held_out)


def test_methods_of_prediction_and_of_kernels_choose_the_ridge_of_cca():
    rng = np.random.default_rng(5)
    meaning = rng.normal(size=(60, 3))
    images, texts = (meaning @ rng.normal(size=(3, d)) + rng.normal(size=(60, d)) for d in (9, 6))
    ridges = CCA()._ridges(moments(images, texts))
    rows, words = images - images.mean(axis=0), texts - texts.mean(axis=0)
    predicted = LinearRegression().fit(images, texts)
    for found, own, other, ridge in (
        (predicted.image_to_text_, rows, words, ridges[0]),
        (predicted.text_to_image_, words, rows, ridges[1]),
    ):
        expected = np.linalg.solve(own.T @ own + 60 * ridge * np.eye(own.shape[1]), own.T @ other)
        np.testing.assert_allclose(found, expected, atol=1e-9)
    kernels = {"image_kernel": "linear", "text_kernel": "linear"}
    kernel = KCCA(kappa="auto", n_components=3, **kernels).fit(images, texts)
    np.testing.assert_allclose(kernel.objective_, CCA(n_components=3, weight_power=0).fit(images, texts).correlations_)


def test_the_chosen_ridge_falls_with_the_number_of_pairs():
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(2000, 5))
    images, texts = (meaning @ rng.normal(size=(5, 30)) + rng.normal(size=(2000, 30)) for _ in range(2))
    ridges = []
    for n in (20, 100, 2000):
        sums = CCA().moments(images[:n], texts[:n])
        ridges.append(CCA()._ridges(sums)[0])
    assert ridges[0] > ridges[1] > ridges[2]
