"""Kernel CCA: equation 5 by brute force, kernels by their definitions, and solvers against each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import additive_chi2_kernel

from diptych.errors import InvalidInputError, UnknownNameError
from diptych.models import KCCA
from diptych.models.correlation._kernels import (
    Kernel,
    cholesky_features,
    exact_features,
    kernel_matrix,
    nystrom_features,
)


@pytest.fixture
def histograms():
    rng = np.random.default_rng(4)
    topics = rng.dirichlet(np.ones(5) * 0.5, size=60)
    return 0.8 * topics @ rng.dirichlet(np.ones(12), size=5) + 0.2 * rng.dirichlet(np.ones(12), size=60), topics


def kernel_objective(alpha, beta, left, right, kappa):
    def norm(vector, kernel):
        return np.sqrt((1 - kappa) * vector @ kernel @ kernel @ vector + kappa * vector @ kernel @ vector)

    return alpha @ left @ right @ beta / norm(alpha, left) / norm(beta, right)


def test_kcca_maximises_equation_5(histograms):
    images, texts = histograms
    kappa = 0.3
    model = KCCA(n_components=3, kappa=kappa).fit(images, texts)
    center = np.eye(60) - 1 / 60
    left = center @ Kernel("chi2_rbf", model.image_scale_)(images, images) @ center
    right = center @ Kernel("intersection")(texts, texts) @ center
    for k in range(3):
        alpha = np.linalg.lstsq(left, model.encode_images(images)[:, k], rcond=1e-10)[0]
        beta = np.linalg.lstsq(right, model.encode_texts(texts)[:, k], rcond=1e-10)[0]
        np.testing.assert_allclose(kernel_objective(alpha, beta, left, right, kappa), model.objective_[k], rtol=1e-6)
    assert model.objective_[0] <= 1 / (1 - kappa)
    rng = np.random.default_rng(0)

    def loss(both):
        return -kernel_objective(both[:60], both[60:], left, right, kappa)

    found = min(minimize(loss, rng.normal(size=120), method="L-BFGS-B").fun for _ in range(3))
    assert -found <= model.objective_[0] + 1e-9
    assert -found > 0.95 * model.objective_[0]


def test_kernels_equal_their_definitions(histograms):
    images, topics = histograms
    images = np.where(images < 0.05, 0, images)
    kernel = Kernel.fitted("chi2_rbf", images, side="images")
    distances = -additive_chi2_kernel(images, images[:7])
    np.testing.assert_allclose(kernel(images, images[:7]), np.exp(-distances / kernel.scale), atol=1e-12)
    np.testing.assert_allclose(kernel.scale, -additive_chi2_kernel(images).mean())
    minima = np.minimum(topics[:, None], topics[None, :9]).sum(axis=2)
    np.testing.assert_allclose(Kernel("intersection")(topics, topics[:9]), minima, atol=1e-12)
    distances = np.sqrt(((topics[:, None] - topics[None, :9]) ** 2).sum(axis=2))
    np.testing.assert_allclose(Kernel("exponential", 0.5)(topics, topics[:9]), np.exp(-2 * distances), atol=1e-12)
    radial = Kernel.fitted("rbf", topics, side="texts")
    squares = ((topics[:, None] - topics[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(radial(topics, topics), np.exp(-squares / squares.mean()), atol=1e-12)
    np.testing.assert_allclose(np.diag(kernel(images, images)), 1, atol=1e-12)


def test_all_kernel_features_reproduce_the_kernel_at_full_rank(histograms):
    images, _ = histograms
    kernel = Kernel.fitted("chi2_rbf", images, side="images")
    for features in (
        exact_features(kernel, images),
        nystrom_features(kernel, images, 60, seed=0),
        cholesky_features(kernel, images, 60, 0.0),
    ):
        mapped = features(images)
        np.testing.assert_allclose(mapped @ mapped.T, kernel(images, images), atol=1e-7)
        np.testing.assert_allclose(features.training(slice(10, 30)), mapped[10:30], atol=1e-6)


@pytest.mark.parametrize("name", ["chi2_rbf", "intersection", "rbf", "exponential", "linear"])
def test_kernel_diagonals_need_no_kernel_matrix(histograms, name):
    images, _ = histograms
    kernel = Kernel.fitted(name, images, side="images")
    np.testing.assert_allclose(kernel.diagonal(images), np.diag(kernel(images, images)), atol=1e-12)


def test_centred_points_have_mean_zero_and_others_do_not(histograms):
    images, texts = histograms
    centred, plain = (KCCA(n_components=2, center=center).fit(images, texts) for center in (True, False))
    np.testing.assert_allclose(centred.encode_images(images).mean(axis=0), 0, atol=1e-9)
    assert np.abs(plain.encode_images(images).mean(axis=0)).max() > 0.01


def test_incomplete_cholesky_stops_at_its_tolerance(histograms):
    images, _ = histograms
    kernel = Kernel.fitted("chi2_rbf", images, side="images")
    loose = cholesky_features(kernel, images, 60, 0.05)
    mapped = loose(images)
    residual = np.trace(kernel(images, images) - mapped @ mapped.T) / 60
    assert 0 <= residual <= 0.05
    assert len(loose.landmarks) < 60


def test_approximate_solvers_approach_the_exact_one(histograms):
    images, texts = histograms
    exact = KCCA(n_components=2, solver="exact").fit(images, texts)
    for solver in ("cholesky", "nystrom"):
        close = KCCA(n_components=2, solver=solver, rank=60, tolerance=0.0).fit(images, texts)
        np.testing.assert_allclose(close.objective_, exact.objective_, rtol=1e-5)
        np.testing.assert_allclose(np.abs(close.encode_images(images)), np.abs(exact.encode_images(images)), atol=1e-5)
        rough = KCCA(n_components=2, solver=solver, rank=25).fit(images, texts)
        assert rough.objective_[0] > 0.9 * exact.objective_[0]


def test_kernels_that_do_not_suit_the_features_are_refused(views):
    signed, positive = views[0] - 100, np.abs(views[1])
    with pytest.raises(InvalidInputError, match="images have negative entries; use 'rbf'"):
        KCCA(image_kernel="chi2_rbf").fit(signed, positive)
    chosen = KCCA().fit(signed, positive)
    assert (chosen.image_kernel_, chosen.text_kernel_) == ("rbf", "intersection")
    with pytest.raises(InvalidInputError, match="texts have negative entries"):
        chosen.encode_texts(-positive)
    with pytest.raises(UnknownNameError, match="did you mean 'chi2_rbf'"):
        KCCA(image_kernel="chi2rbf").fit(*map(np.abs, views))


def test_a_common_offset_does_not_matter_to_a_linear_kernel(views):
    images, texts = views
    for solver in ("exact", "nystrom", "cholesky"):
        model = KCCA(n_components=3, image_kernel="linear", text_kernel="linear", solver=solver, rank=50)
        plain, moved = (model.fit(a, b).objective_ for a, b in ((images, texts), (images + 1e4, texts - 1e4)))
        np.testing.assert_allclose(moved, plain, rtol=1e-4)


def test_a_fitted_model_does_not_follow_later_changes_of_its_training_data(histograms):
    images, texts = (side.copy() for side in histograms)
    model = KCCA(n_components=2).fit(images, texts)
    before = model.encode_images(histograms[0])
    images *= 0
    texts *= 0
    np.testing.assert_array_equal(model.encode_images(histograms[0]), before)


def test_incomplete_cholesky_survives_duplicates_and_any_tolerance(histograms):
    images, texts = (np.repeat(side[:10], 3, axis=0) for side in histograms)
    for tolerance in (0.0, 1.0):
        model = KCCA(n_components=2, solver="cholesky", tolerance=tolerance).fit(images, texts)
        assert np.isfinite(model.encode_images(images)).all()


def test_auto_takes_landmarks_beyond_what_a_kernel_matrix_can_hold(histograms, monkeypatch):
    monkeypatch.setattr("diptych.models.correlation.kcca._EXACT_ROWS", 50)
    landmarks = [KCCA(rank=20, random_state=seed).fit(*histograms).image_landmarks_ for seed in (0, 1)]
    assert len(landmarks[0]) == 20
    assert not np.array_equal(*landmarks)
    monkeypatch.setattr("diptych.models.correlation.kcca._EXACT_ROWS", 60)
    assert len(KCCA(rank=20).fit(*histograms).image_landmarks_) == 60


@pytest.fixture
def many_histograms():
    rng = np.random.default_rng(5)
    topics = rng.dirichlet(np.ones(6), size=300)
    return 0.7 * topics @ rng.dirichlet(np.ones(20), size=6) + 0.3 * rng.dirichlet(np.ones(20), size=300), topics


@pytest.mark.parametrize("name", ["chi2_rbf", "intersection", "rbf", "exponential", "linear"])
def test_a_kernel_matrix_is_the_kernel_of_every_two_rows(many_histograms, name):
    images, _ = many_histograms
    kernel = Kernel.fitted(name, images, side="images")
    np.testing.assert_allclose(kernel_matrix(kernel, images), kernel(images, images), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("center", [True, False])
def test_few_components_of_many_rows_are_those_of_the_whole_decomposition(many_histograms, center):
    """Asking for all components decomposes the kernel matrices; asking for few does not."""
    images, texts = (np.concatenate([side, side**1.3]) for side in many_histograms)
    few, whole = (KCCA(n_components=k, center=center).fit(images, texts) for k in (3, None))
    np.testing.assert_allclose(few.objective_, whole.objective_[:3], rtol=1e-9)
    for side in ("encode_images", "encode_texts"):
        rows = images if side == "encode_images" else texts
        points, expected = getattr(few, side)(rows), getattr(whole, side)(rows)[:, :3]
        signs = np.sign((points * expected).sum(axis=0))
        np.testing.assert_allclose(points, expected * signs, atol=1e-8)
