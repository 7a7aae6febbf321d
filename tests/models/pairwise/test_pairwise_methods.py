"""Mathematics of the methods that judge pairs: optima, closed forms, and what their scores mean."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from diptych.errors import InvalidInputError
from diptych.models import (
    CCA,
    CMML,
    BipartiteCrossProduct,
    LogisticConcatenation,
    LogisticCrossProduct,
    PairwiseSM,
    load_model,
)
from diptych.models.pairwise._bilinear import evaluate_terms
from diptych.models.pairwise._pairs import AllPairs, PairTerm, SampledPairs, distance_loss, own_matches
from diptych.models.pairwise.cmml import evaluate_distances
from diptych.models.pairwise.pairwise_sm import LabelSets
from tests.models.pairwise.made_up_pairs import (
    PRECISE,
    brute_force_terms,
    centred,
    every_pair,
    make_pairs,
    products,
    sampled_pairs,
)


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
    model = LogisticCrossProduct(C=1.0, ratio=4, reweight=True, **PRECISE).fit(images, texts)
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
