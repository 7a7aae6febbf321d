"""Mathematics of the methods that judge pairs: gradients, optima, closed forms, and what their scores mean."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from diptych.errors import InvalidInputError
from diptych.models import (
    CCA,
    CMML,
    BipartiteCrossProduct,
    LogisticConcatenation,
    LogisticCrossProduct,
    OneClassSVM,
    PairwiseSM,
    load_model,
)
from diptych.models.pairwise._bilinear import evaluate_terms
from diptych.models.pairwise._pairs import (
    AllPairs,
    PairTerm,
    SampledPairs,
    classification_loss,
    distance_loss,
    first_matches,
    own_matches,
    ranking_loss,
)
from diptych.models.pairwise.cmml import evaluate_distances
from diptych.models.pairwise.logistic_concatenation import evaluate_concatenation
from diptych.models.pairwise.one_class_svm import support_shares
from diptych.models.pairwise.pairwise_sm import LabelSets

PRECISE = {"tol": 1e-9, "max_iter": 5000}


def make_pairs(n=40, image_width=5, text_width=3, seed=0):
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n, 2))
    images = meaning @ rng.normal(size=(2, image_width)) + 0.7 * rng.normal(size=(n, image_width))
    texts = meaning @ rng.normal(size=(2, text_width)) + 0.7 * rng.normal(size=(n, text_width))
    labels = (meaning[:, 0] > 0).astype(int) + (meaning[:, 1] > 0)
    return images, texts, labels


def centred(rows):
    return rows - rows.mean(axis=0)


def products(images, texts, rows, columns):
    """The cross-product features of some pairs, formed as nobody should."""
    return np.einsum("ik,il->ikl", images[rows], texts[columns]).reshape(len(rows), -1)


def every_pair(n):
    rows, columns = (grid.ravel() for grid in np.indices((n, n)))
    return rows, columns, np.where(rows == columns, 1.0, -1.0)


def sampled_pairs(n, ratio, seed=0):
    partners = SampledPairs.unlabelled(n, ratio, np.random.default_rng(seed)).partners
    rows = np.repeat(np.arange(n), ratio + 1)
    return rows, partners.ravel(), np.tile(np.where(np.arange(ratio + 1) == 0, 1.0, -1.0), n)


def brute_force_terms(n, ratio, kind):
    """Name the pairs and losses that the factorised code is compared with."""
    own_column = (lambda rows: np.arange(rows.start, rows.stop)) if ratio is None else None
    if kind == "ranking":
        loss = ranking_loss(own_column or (lambda rows: np.zeros(rows.stop - rows.start, dtype=int)))
    else:
        signs = own_matches(n) if ratio is None else first_matches(ratio + 1)
        loss = classification_loss(kind, signs)
    pairs = AllPairs(n) if ratio is None else SampledPairs.unlabelled(n, ratio, np.random.default_rng(0))
    return pairs, loss


@pytest.mark.parametrize("ratio", [None, 3])
@pytest.mark.parametrize("kind", ["logistic", "squared", "ranking"])
@pytest.mark.parametrize(("image_width", "text_width"), [(5, 3), (2, 4)])
@pytest.mark.parametrize("swapped", [False, True])
def test_bilinear_gradients_are_those_of_finite_differences(ratio, kind, image_width, text_width, swapped):
    images, texts, _ = make_pairs(12, image_width, text_width)
    term = PairTerm(*brute_force_terms(12, ratio, kind), swapped)
    shape = (image_width, text_width)

    def value(flat):
        return evaluate_terms(images, texts, flat[:-1].reshape(shape), flat[-1], [term])[0]

    def gradient(flat):
        _, slope, bias_slope = evaluate_terms(images, texts, flat[:-1].reshape(shape), flat[-1], [term])
        return np.append(slope.ravel(), bias_slope)

    at = np.random.default_rng(1).normal(size=image_width * text_width + 1)
    assert check_grad(value, gradient, at) < 1e-4 * max(1, np.abs(gradient(at)).max())


@pytest.mark.parametrize("ratio", [None, 3])
def test_concatenation_gradients_are_those_of_finite_differences(ratio):
    images, texts, _ = make_pairs(12)
    pairs, loss = brute_force_terms(12, ratio, "logistic")

    def value(flat):
        return evaluate_concatenation(images, texts, flat[:-1], flat[-1], pairs, loss)[0]

    def gradient(flat):
        _, slope, bias_slope = evaluate_concatenation(images, texts, flat[:-1], flat[-1], pairs, loss)
        return np.append(slope, bias_slope)

    at = np.random.default_rng(1).normal(size=9)
    assert check_grad(value, gradient, at) < 1e-4


@pytest.mark.parametrize("ratio", [None, 3])
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_distance_gradients_are_those_of_finite_differences(ratio, sharpness):
    images, texts, _ = make_pairs(12)
    signs = own_matches(12) if ratio is None else first_matches(ratio + 1)
    pairs = brute_force_terms(12, ratio, "logistic")[0]
    loss = distance_loss(signs, sharpness)

    def maps(flat):
        return flat[:10].reshape(5, 2), flat[10:].reshape(3, 2)

    def value(flat):
        return evaluate_distances(images, texts, *maps(flat), pairs, loss)[0]

    def gradient(flat):
        return np.concatenate(
            [part.ravel() for part in evaluate_distances(images, texts, *maps(flat), pairs, loss)[1:]]
        )

    at = 0.4 * np.random.default_rng(1).normal(size=16)
    assert check_grad(value, gradient, at) < 1e-4 * np.abs(gradient(at)).max()


def test_distances_and_their_loss_are_the_defined_ones():
    images, texts, _ = make_pairs(9)
    rng = np.random.default_rng(2)
    image_map, text_map = rng.normal(size=(5, 2)), rng.normal(size=(3, 2))
    rows, columns, signs = every_pair(9)
    squared = ((images[rows] @ image_map - texts[columns] @ text_map) ** 2).sum(axis=1)
    expected = (np.logaddexp(0, 3 * signs * (squared - 1)) / 3).sum()
    loss = distance_loss(own_matches(9), 3.0)
    assert evaluate_distances(images, texts, image_map, text_map, AllPairs(9), loss)[0] == pytest.approx(expected)


@pytest.mark.parametrize("ratio", [None, 4])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_factorised_optimum_is_that_of_scikit_learn_on_explicit_products(ratio, C, fit_intercept):
    images, texts, _ = make_pairs()
    rows, columns, signs = every_pair(40) if ratio is None else sampled_pairs(40, ratio)
    features = products(centred(images), centred(texts), rows, columns)
    peer = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, fit_intercept=fit_intercept).fit(features, signs)
    model = LogisticCrossProduct(C=C, ratio=ratio, fit_intercept=fit_intercept, **PRECISE).fit(images, texts)
    np.testing.assert_allclose(model.W_.ravel(), peer.coef_[0], rtol=1e-4, atol=1e-6)
    assert model.intercept_ == pytest.approx(peer.intercept_[0] if fit_intercept else 0.0, abs=1e-5)


def test_reweighted_pairs_stand_for_all_pairs():
    images, texts, _ = make_pairs()
    rows, columns, signs = sampled_pairs(40, 4)
    features = products(centred(images), centred(texts), rows, columns)
    peer = LogisticRegression(tol=1e-10, max_iter=10_000)
    peer.fit(features, signs, sample_weight=np.where(signs > 0, 1, 39 / 4))
    model = LogisticCrossProduct(ratio=4, reweight=True, **PRECISE).fit(images, texts)
    np.testing.assert_allclose(model.W_.ravel(), peer.coef_[0], rtol=1e-4, atol=1e-6)


def test_the_ridge_counts_pairs_or_rows():
    images, texts, _ = make_pairs()
    by_rows = LogisticCrossProduct(C=1.0, ratio=4, instances="rows", **PRECISE).fit(images, texts)
    # λ = 1/(nC) with n = 40 rows is λ = 1/(mC') with m = 200 pairs and C' = C/5.
    by_pairs = LogisticCrossProduct(C=0.2, ratio=4, **PRECISE).fit(images, texts)
    np.testing.assert_allclose(by_rows.W_, by_pairs.W_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_least_squares_over_all_pairs_is_ridge_regression_on_explicit_products(center, fit_intercept, C):
    images, texts, _ = make_pairs()
    images, texts = images + 0.5, texts - 0.3
    rows, columns, signs = every_pair(40)
    used = (centred(images), centred(texts)) if center else (images, texts)
    peer = Ridge(alpha=1 / (2 * C), fit_intercept=fit_intercept, solver="cholesky")
    peer.fit(products(*used, rows, columns), signs)
    model = LogisticCrossProduct(C=C, ratio=None, loss="squared", center=center, fit_intercept=fit_intercept)
    model.fit(images, texts)
    np.testing.assert_allclose(model.W_.ravel(), peer.coef_, rtol=1e-7, atol=1e-10)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-9)


def test_iterations_reach_the_closed_form():
    images, texts, _ = make_pairs()
    term = PairTerm(*brute_force_terms(40, None, "squared"))
    model = LogisticCrossProduct(C=0.1, ratio=None, loss="squared", fit_intercept=False).fit(images, texts)
    slope = evaluate_terms(centred(images), centred(texts), model.W_, 0.0, [term])[1] + model.W_ / 0.1
    np.testing.assert_allclose(slope, 0, atol=1e-8)
    # A share just below one takes the iterative way with every product in.
    iterated = LogisticCrossProduct(C=0.1, ratio=None, loss="squared", feature_share=0.99, **PRECISE)
    iterated.fit(images, texts)
    closed = LogisticCrossProduct(C=0.1, ratio=None, loss="squared").fit(images, texts)
    np.testing.assert_allclose(iterated.W_, closed.W_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("ratio", [None, 4])
@pytest.mark.parametrize("C", [0.03, 1.0])
def test_bipartite_optimum_is_that_of_scikit_learn_on_differences(ratio, C):
    images, texts, _ = make_pairs()
    rows, columns, signs = every_pair(40) if ratio is None else sampled_pairs(40, ratio)
    rows, columns = rows[signs < 0], columns[signs < 0]
    images_used, texts_used = centred(images), centred(texts)
    differences = products(images_used, texts_used, rows, rows) - products(images_used, texts_used, rows, columns)
    # Both orders of each difference, at half the weight, give scikit-learn two classes and change nothing else.
    both, order = np.vstack([differences, -differences]), np.repeat([1, -1], len(rows))
    peer = LogisticRegression(C=C / 2, tol=1e-10, max_iter=10_000, fit_intercept=False).fit(both, order)
    model = BipartiteCrossProduct(C=C, ratio=ratio, **PRECISE).fit(images, texts)
    np.testing.assert_allclose(model.W_.ravel(), peer.coef_[0], rtol=1e-4, atol=1e-6)


def test_given_pairs_are_pushed_up_not_down():
    images, texts, _ = make_pairs(200)
    for model in (BipartiteCrossProduct(), BipartiteCrossProduct(ratio=None), LogisticCrossProduct()):
        scores = model.fit(images, texts).similarity(images, texts)
        assert np.diag(scores).mean() > scores.mean() + scores.std() / 2


def test_the_symmetric_ranking_does_not_care_which_side_is_called_images():
    images, texts, _ = make_pairs()
    one = BipartiteCrossProduct(ratio=None, symmetric=True, **PRECISE).fit(images, texts)
    other = BipartiteCrossProduct(ratio=None, symmetric=True, **PRECISE).fit(texts, images)
    plain = BipartiteCrossProduct(ratio=None, **PRECISE).fit(images, texts)
    np.testing.assert_allclose(one.W_, other.W_.T, rtol=1e-5, atol=1e-8)
    assert np.abs(one.W_ - plain.W_).max() > 1e-2


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_pairwise_sm_is_the_same_regression_with_known_labels(loss):
    images, texts, labels = make_pairs()
    rows, columns, _ = every_pair(40)
    signs = np.where(labels[rows] == labels[columns], 1.0, -1.0)
    features = products(centred(images), centred(texts), rows, columns)
    model = PairwiseSM(C=0.1, ratio=None, loss=loss, **PRECISE).fit(images, texts, labels)
    if loss == "logistic":
        peer = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(features, signs)
    else:
        peer = Ridge(alpha=1 / 0.2, solver="cholesky").fit(features, signs)
    np.testing.assert_allclose(model.W_.ravel(), peer.coef_.ravel(), rtol=1e-4, atol=1e-6)


def test_several_labels_match_when_one_is_shared():
    images, texts, _ = make_pairs()
    several = np.random.default_rng(3).random((40, 3)) < 0.4
    several[0] = False
    used = several.any(axis=1)
    rows, columns = (grid.ravel() for grid in np.indices((used.sum(), used.sum())))
    known = several[used].astype(int)
    signs = np.where((known[rows] & known[columns]).any(axis=1), 1.0, -1.0)
    means = images.mean(axis=0), texts.mean(axis=0)
    features = products(images[used] - means[0], texts[used] - means[1], rows, columns)
    peer = Ridge(alpha=1 / 0.2, solver="cholesky").fit(features, signs)
    model = PairwiseSM(C=0.1, ratio=None, loss="squared").fit(images, texts, several.astype(int))
    np.testing.assert_allclose(model.W_.ravel(), peer.coef_, rtol=1e-6, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 30), st.integers(1, 8), st.integers(0, 1000))
def test_unlabelled_pairs_are_the_own_one_and_others(n, ratio, seed):
    partners = SampledPairs.unlabelled(n, ratio, np.random.default_rng(seed)).partners
    assert partners.shape == (n, ratio + 1)
    np.testing.assert_array_equal(partners[:, 0], np.arange(n))
    assert (partners[:, 1:] != np.arange(n)[:, None]).all()
    assert partners.min() >= 0
    assert partners.max() < n


def test_unlabelled_pairs_are_drawn_uniformly():
    partners = SampledPairs.unlabelled(5, 20_000, np.random.default_rng(0)).partners
    for own, row in enumerate(partners):
        shares = np.bincount(row[1:], minlength=5) / 20_000
        np.testing.assert_allclose(np.delete(shares, own), 0.25, atol=0.015)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_sampled_labels_tell_the_truth(seed):
    rng = np.random.default_rng(seed)
    indicator = (rng.random((25, 3)) < 0.4).astype(float)
    indicator = indicator[indicator.any(axis=1)]
    shared = indicator @ indicator.T > 0
    if shared.all():
        with pytest.raises(InvalidInputError, match="nothing to tell apart"):
            LabelSets.of(indicator)
        return
    sets = LabelSets.of(indicator)
    partners, counts = sets.sample(4, rng)
    own = np.arange(len(indicator))
    assert shared[own, partners[:, 0]].all()
    assert not shared[own[:, None], partners[:, 1:]][counts[:, 1:] > 0].any()
    np.testing.assert_array_equal(counts[:, 1] == 0, shared.all(axis=1))
    np.testing.assert_array_equal(sets.signs(slice(0, len(indicator))), np.where(shared, 1, -1))
    assert sets.matched == pytest.approx(shared.mean())


@pytest.mark.parametrize("model", [LogisticCrossProduct(), BipartiteCrossProduct(), CMML(), PairwiseSM()])
def test_samples_are_seeded(model):
    images, texts, labels = make_pairs()
    points = [type(model)(random_state=seed).fit(images, texts, labels).encode_images(images) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(points[0], points[1])
    assert np.abs(points[0] - points[2]).max() > 1e-6


def test_a_share_of_the_products_has_a_weight_and_solves_its_own_problem():
    images, texts, _ = make_pairs(60, 6, 5)
    model = LogisticCrossProduct(C=0.5, ratio=4, feature_share=0.3, **PRECISE).fit(images, texts)
    kept = np.abs(model.W_) > 1e-12
    assert kept.sum() == 9
    rows, columns, signs = sampled_pairs(60, 4)
    features = products(centred(images), centred(texts), rows, columns)[:, kept.ravel()]
    peer = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(features, signs)
    np.testing.assert_allclose(model.W_[kept], peer.coef_[0], rtol=1e-4, atol=1e-6)


def test_the_score_is_bilinear_and_its_factors_are_thin():
    images, texts, _ = make_pairs(100, 7, 3)
    model = LogisticCrossProduct().fit(images, texts)
    expected = (images - images.mean(axis=0)) @ model.W_ @ (texts - texts.mean(axis=0)).T
    np.testing.assert_allclose(model.similarity(images, texts), expected, atol=1e-10)
    assert model.encode_images(images).shape[1] == model.rank_ == np.linalg.matrix_rank(model.W_) == 3
    np.testing.assert_allclose(
        (model.image_projection_**2).sum(axis=0), (model.text_projection_**2).sum(axis=0), rtol=1e-9
    )
    assert model.space.indexable() is not None


def test_the_rank_is_that_of_the_data():
    images, texts, _ = make_pairs(100, 7, 5)
    texts[:, 3:] = texts[:, :2] @ np.array([[1.0, 2.0], [0.5, -1.0]])
    assert LogisticCrossProduct().fit(images, texts).rank_ == 3
    assert LogisticCrossProduct().fit(images.astype(np.float32), texts.astype(np.float32)).rank_ == 3


def test_strongest_pairs_are_the_largest_weights_with_their_names():
    images, texts, _ = make_pairs()
    model = LogisticCrossProduct().fit(images, texts)
    found = model.strongest_pairs(4)
    sizes = np.sort(np.abs(model.W_).ravel())[::-1]
    np.testing.assert_allclose([abs(pair.weight) for pair in found], sizes[:4])
    assert all(model.W_[pair.image, pair.text] == pytest.approx(pair.weight) for pair in found)
    named = model.strongest_pairs(4, list("abcde"), ["x", "y", "z"])
    assert [(pair.image, pair.text) for pair in named] == [("abcde"[pair.image], "xyz"[pair.text]) for pair in found]
    assert len(model.strongest_pairs(1000)) == 15
    with pytest.raises(InvalidInputError, match="all 5 features"):
        model.strongest_pairs(1, image_names=["a"])


def test_everything_learned_survives_a_file(tmp_path):
    images, texts, _ = make_pairs()
    model = LogisticCrossProduct().fit(images, texts)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.W_, model.W_)
    assert (again.rank_, again.intercept_) == (model.rank_, model.intercept_)
    assert again.strongest_pairs(3) == model.strongest_pairs(3)


def test_concatenation_gives_every_query_the_same_ranking():
    images, texts, _ = make_pairs(100)
    model = LogisticConcatenation(C=10.0, ratio=3, **PRECISE).fit(images, texts)
    scores = model.similarity(images, texts)
    np.testing.assert_allclose(scores - scores[:, :1], np.tile(scores[0] - scores[0, 0], (100, 1)), atol=1e-9)
    rows, columns, signs = sampled_pairs(100, 3)
    features = np.hstack([centred(images)[rows], centred(texts)[columns]])
    peer = LogisticRegression(C=10.0, tol=1e-10, max_iter=10_000).fit(features, signs)
    weights = np.concatenate([model.image_weights_, model.text_weights_])
    np.testing.assert_allclose(weights, peer.coef_[0], rtol=1e-4, atol=1e-6)
    assert model.intercept_ == pytest.approx(peer.intercept_[0], abs=1e-6)


def test_over_all_pairs_concatenation_learns_nothing_at_all():
    images, texts, _ = make_pairs(60)
    model = LogisticConcatenation(ratio=None).fit(images, texts)
    np.testing.assert_allclose(np.concatenate([model.image_weights_, model.text_weights_]), 0, atol=1e-12)


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


def test_metric_learning_beats_its_start_and_is_stationary():
    images, texts, _ = make_pairs(80)
    model = CMML(n_components=2, ratio=None, regularization=0.01, tol=1e-8, max_iter=3000).fit(images, texts)
    loss = distance_loss(own_matches(80), 3.0)
    units = [np.sqrt((centred(side) ** 2).mean()) for side in (images, texts)]

    def objective(image_map, text_map):
        value, *slopes = evaluate_distances(
            centred(images) / units[0], centred(texts) / units[1], image_map, text_map, AllPairs(80), loss
        )
        maps = (image_map, text_map)
        penalty = 0.005 * sum((part**2).sum() for part in maps)
        return value / 6400 + penalty, [s / 6400 + 0.01 * part for s, part in zip(slopes, maps, strict=True)]

    value, slopes = objective(model.image_projection_ * units[0], model.text_projection_ * units[1])
    np.testing.assert_allclose(np.concatenate(slopes), 0, atol=1e-6)
    start = CCA(n_components=2, weight_power=0.0).fit(centred(images) / units[0], centred(texts) / units[1])
    scales = np.linspace(0.1, 2, 20)
    best = min(objective(s * start.image_projection_, s * start.text_projection_)[0] for s in scales)
    assert value < best


def test_metric_learning_has_as_many_components_as_asked_for():
    images, texts, _ = make_pairs(80)
    assert CMML(n_components=7).fit(images, texts).encode_texts(texts).shape == (80, 7)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LogisticCrossProduct(C=0), "C must be"),
        (LogisticCrossProduct(ratio=0), "ratio must be"),
        (LogisticCrossProduct(feature_share=0), "feature_share must be"),
        (LogisticCrossProduct(feature_share=1.5), "feature_share must be"),
        (LogisticCrossProduct(loss="hinge"), "loss must be"),
        (LogisticCrossProduct(instances="items"), "instances must be"),
        (PairwiseSM(loss="hinge"), "loss must be"),
        (OneClassSVM(nu=0), "nu must be"),
        (OneClassSVM(features="sum"), "features must be"),
        (OneClassSVM(features="concat", kernel="rbf", gamma=0), "gamma must be"),
        (CMML(sharpness=0), "sharpness must be"),
        (CMML(ratio=0), "ratio must be"),
        (LogisticConcatenation(ratio=0), "ratio must be"),
    ],
)
def test_wrong_parameters_get_one_clear_error(model, message):
    with pytest.raises(InvalidInputError, match=message):
        model.fit(*make_pairs())


@pytest.mark.parametrize(
    "model", [LogisticCrossProduct(C=1e6, max_iter=2), CMML(max_iter=2), BipartiteCrossProduct(C=1e6, max_iter=2)]
)
def test_an_unfinished_fit_says_so(model):
    images, texts, _ = make_pairs()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(images, texts)


def test_few_iterations_suffice():
    images, texts, _ = make_pairs(300, 20, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LogisticCrossProduct(max_iter=20).fit(images * np.logspace(-3, 3, 20), texts)


def test_all_pairs_never_exist_at_once(monkeypatch):
    images, texts, labels = make_pairs(90)
    for name, fit in (
        ("logistic", lambda: LogisticCrossProduct(ratio=None, C=0.01).fit(images, texts)),
        ("bipartite", lambda: BipartiteCrossProduct(ratio=None, C=0.01).fit(images, texts)),
        ("labels", lambda: PairwiseSM(ratio=None, C=0.01).fit(images, texts, labels)),
        ("metric", lambda: CMML(ratio=None).fit(images, texts)),
    ):
        whole = fit().similarity(images, texts)
        with monkeypatch.context() as patch:
            patch.setattr("diptych.models.pairwise._pairs._BLOCK_SCORES", 90 * 7)
            blocked = fit().similarity(images, texts)
        np.testing.assert_allclose(blocked, whole, rtol=1e-3, atol=1e-3, err_msg=name)
