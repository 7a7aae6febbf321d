"""The machine that learns from pairs that belong together alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from diptych.errors import InvalidInputError
from diptych.models import OneClassSVM
from diptych.models.pairwise.one_class_svm import support_shares
from tests.models.pairwise.made_up_pairs import centred, make_pairs


@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
def test_the_one_class_dual_is_solved(nu):
    images, texts, _ = make_pairs()
    gram = (centred(images) @ centred(images).T) * (centred(texts) @ centred(texts).T)
    shares = support_shares(gram, nu)
    bound = 1 / (nu * 40)
    assert shares.sum() == pytest.approx(1)
    assert shares.min() >= 0
    assert shares.max() <= bound * (1 + 1e-9)
    brute = minimize(
        lambda shares: (shares @ gram @ shares / 2, gram @ shares),
        np.full(40, 1 / 40),
        jac=True,
        bounds=[(0, bound)] * 40,
        constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1, "jac": lambda shares: np.ones(40)},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert shares @ gram @ shares / 2 == pytest.approx(brute.fun, rel=1e-3, abs=1e-6 * np.trace(gram))


def test_the_one_class_machine_collapses_to_a_matrix():
    images, texts, _ = make_pairs()
    model = OneClassSVM(nu=0.3).fit(images, texts)
    used_images, used_texts = centred(images), centred(texts)
    shares = support_shares((used_images @ used_images.T) * (used_texts @ used_texts.T), 0.3)
    kernel = np.einsum("qk,ik,gl,il,i->qg", used_images, used_images, used_texts, used_texts, shares)
    np.testing.assert_allclose(model.similarity(images, texts), kernel, atol=1e-9)
    # With ν = 1 every pair has the same share and W is the cross-covariance.
    np.testing.assert_allclose(OneClassSVM(nu=1.0).fit(images, texts).W_, used_images.T @ used_texts / 40, atol=1e-9)


def test_one_class_concatenation_adds_the_sides_or_multiplies_their_kernels():
    images, texts, _ = make_pairs()
    linear = OneClassSVM(nu=0.3, features="concat").fit(images, texts)
    scores = linear.similarity(images, texts)
    np.testing.assert_allclose(scores - scores[:, :1], np.tile(scores[0] - scores[0, 0], (len(scores), 1)), atol=1e-9)
    with pytest.raises(InvalidInputError, match="no matrix W"):
        _ = linear.W_
    curved = OneClassSVM(nu=0.3, features="concat", kernel="rbf", gamma=0.2).fit(images, texts)
    both = np.hstack([centred(images), centred(texts)])
    gram = np.exp(-0.2 * ((both[:, None] - both) ** 2).sum(axis=2))
    shares = support_shares(gram, 0.3)
    np.testing.assert_allclose(np.diag(curved.similarity(images, texts)), gram @ shares, atol=1e-9)
    with pytest.raises(InvalidInputError, match="does not factor"):
        OneClassSVM(kernel="rbf").fit(images, texts)


def test_one_class_machines_sample_large_data():
    images, texts, _ = make_pairs(120)
    model = OneClassSVM(nu=1.0, max_rows=50).fit(images, texts)
    rows = np.sort(np.random.default_rng(0).choice(120, size=50, replace=False))
    np.testing.assert_allclose(model.W_, centred(images)[rows].T @ centred(texts)[rows] / 50, atol=1e-9)
