"""Semantic methods: the classifiers against scikit-learn, the scores against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from diptych.errors import InvalidInputError
from diptych.models import CCA, SCM, SM, ConSE, MarginalSCM, MarginalSM
from diptych.models.labels import Targets
from diptych.models.semantic.classifier_pair import _ovr_loss, _softmax_loss, fit_logistic


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_softmax_equals_scikit_learn(problem, C):
    model = SM(C=C, tol=1e-9).fit(problem.images, problem.texts, problem.labels)
    for rows, encode in ((problem.images, model.encode_images), (problem.texts, model.encode_texts)):
        peer = LogisticRegression(C=C, tol=1e-9, max_iter=10_000).fit(rows, problem.labels)
        assert model.classes_.tolist() == peer.classes_.tolist()
        np.testing.assert_allclose(encode(rows), peer.predict_proba(rows), atol=1e-5)


def test_one_versus_rest_equals_scikit_learn_class_by_class(problem):
    model = MarginalSM(loss="ovr", C=5.0, tol=1e-9).fit(problem.images, problem.texts, problem.labels)
    points = model.encode_images(problem.images)
    for column, name in enumerate(model.classes_):
        peer = LogisticRegression(C=5.0, tol=1e-9, max_iter=10_000).fit(problem.images, problem.labels == name)
        np.testing.assert_allclose(points[:, column], peer.predict_proba(problem.images)[:, 1], atol=1e-5)
    rescaled = SM(loss="ovr", C=5.0, tol=1e-9).fit(problem.images, problem.texts, problem.labels)
    np.testing.assert_allclose(
        rescaled.encode_images(problem.images), points / points.sum(axis=1, keepdims=True), atol=1e-9
    )


@pytest.mark.parametrize("loss", [_softmax_loss, _ovr_loss])
def test_loss_gradients_agree_with_finite_differences(loss):
    rng = np.random.default_rng(0)
    targets = rng.dirichlet(np.ones(4), size=6)

    def value(flat):
        return loss(flat.reshape(6, 4), targets)[0]

    def gradient(flat):
        return loss(flat.reshape(6, 4), targets)[1].ravel()

    assert check_grad(value, gradient, rng.normal(size=24)) < 1e-5


def test_soft_targets_equal_a_weighted_row_per_label(problem):
    """A row with two labels must teach what two half-weight rows with one label each teach."""
    several = np.zeros((90, 3))
    several[np.arange(90), np.arange(90) % 3] = 1
    several[::4, 0] = 1
    weights, intercepts = fit_logistic(
        problem.images, Targets.from_labels(several, 90).distribution, C=3.0, loss="softmax", max_iter=5000, tol=1e-10
    )
    rows, classes = np.nonzero(several)
    peer = LogisticRegression(C=3.0, tol=1e-10, max_iter=10_000)
    peer.fit(problem.images[rows], classes, sample_weight=1 / several.sum(axis=1)[rows])
    scores = problem.images @ weights + intercepts
    expected = peer.decision_function(problem.images)
    np.testing.assert_allclose(scores - scores.mean(axis=1, keepdims=True), expected, atol=1e-3)


def test_the_stopping_rule_does_not_depend_on_the_scale_of_the_features(problem):
    plain = SM(C=1.0).fit(problem.images, problem.texts, problem.labels)
    small = SM(C=1e12).fit(problem.images * 1e-6, problem.texts * 1e-6, problem.labels)
    np.testing.assert_allclose(
        small.encode_images(problem.images * 1e-6), plain.encode_images(problem.images), atol=1e-6
    )


def test_stopping_early_warns_and_impossible_limits_are_refused(problem):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        SM(max_iter=2).fit(problem.images, problem.texts, problem.labels)
    for bad in ({"max_iter": 0}, {"tol": float("nan")}, {"tol": 0}):
        with pytest.raises(InvalidInputError, match="must be"):
            SM(**bad).fit(problem.images, problem.texts, problem.labels)


def test_rows_without_a_label_do_not_teach(problem):
    several = np.zeros((90, 3))
    several[np.arange(90), np.arange(90) % 3] = 1
    several[:30] = 0
    partly = SM().fit(problem.images, problem.texts, several)
    fully = SM().fit(problem.images[30:], problem.texts[30:], several[30:])
    np.testing.assert_allclose(partly.encode_images(problem.images), fully.encode_images(problem.images), atol=1e-9)


def test_probabilities_survive_extreme_features(problem):
    model = SM().fit(problem.images, problem.texts, problem.labels)
    points = model.encode_images(problem.images * 1e6)
    assert np.isfinite(points).all()
    np.testing.assert_allclose(points.sum(axis=1), 1)


def test_marginal_score_is_the_probability_of_the_same_label(problem):
    semantic = SM(C=1.0).fit(problem.images, problem.texts, problem.labels)
    marginal = MarginalSM(C=1.0).fit(problem.images, problem.texts, problem.labels)
    p, q = semantic.encode_images(problem.images), semantic.encode_texts(problem.texts)
    np.testing.assert_allclose(marginal.similarity(problem.images, problem.texts), p @ q.T)


def test_marginal_score_of_several_labels_orders_by_the_probability_of_sharing_one(problem):
    several = np.stack([problem.labels == "art", problem.labels != "cars", problem.labels == "cars"], axis=1).astype(
        int
    )
    model = MarginalSM(loss="ovr").fit(problem.images, problem.texts, several)
    assert model.space.name == "noisy_or"
    p, q = model.encode_images(problem.images), model.encode_texts(problem.texts)
    share = 1 - np.prod(1 - p[:, None] * q[None], axis=2)
    np.testing.assert_allclose(1 - np.exp(-model.similarity(problem.images, problem.texts)), share, atol=1e-9)


@pytest.mark.parametrize(("two_steps", "one_step"), [(SCM, SM), (MarginalSCM, MarginalSM)])
def test_semantic_correlation_is_semantic_matching_on_correlated_points(problem, two_steps, one_step):
    subspace = CCA(n_components=2).fit(problem.images, problem.texts)
    a, b = subspace.encode_images(problem.images), subspace.encode_texts(problem.texts)
    separate = one_step(C=10.0).fit(a, b, problem.labels)
    joint = two_steps(correlation=CCA(n_components=2), C=10.0).fit(problem.images, problem.texts, problem.labels)
    np.testing.assert_allclose(joint.encode_images(problem.images), separate.encode_images(a), rtol=1e-6)
    np.testing.assert_allclose(joint.similarity(problem.images, problem.texts), separate.similarity(a, b), rtol=1e-6)


def test_the_given_correlation_model_is_left_unfitted(problem):
    correlation = CCA(n_components=2)
    SCM(correlation=correlation).fit(problem.images, problem.texts, problem.labels)
    assert not hasattr(correlation, "correlations_")


def test_string_and_integer_labels_mean_the_same(problem):
    codes = np.unique(problem.labels, return_inverse=True)[1]
    named, numbered = (SM().fit(problem.images, problem.texts, labels) for labels in (problem.labels, codes))
    np.testing.assert_array_equal(named.encode_texts(problem.texts), numbered.encode_texts(problem.texts))
    assert numbered.classes_.tolist() == [0, 1, 2]


def test_conse_is_the_weighted_mean_of_the_likeliest_labels():
    rng = np.random.default_rng(0)
    probabilities, vectors = rng.dirichlet(np.ones(12), size=30), rng.normal(size=(12, 5))
    vectors[4] = 0
    model = ConSE(label_vectors=vectors, n_labels=3).fit(probabilities, rng.normal(size=(30, 5)))
    for row, point in zip(probabilities, model.encode_images(probabilities), strict=True):
        best = sorted((y for y in range(12) if y != 4), key=lambda y: -row[y])[:3]
        expected = sum(row[y] * vectors[y] for y in best) / sum(row[y] for y in best)
        np.testing.assert_allclose(point, expected)


def test_conse_without_any_named_label_is_zero_and_wrong_vectors_are_refused():
    vectors = np.array([[0.0, 0.0], [1.0, 2.0]])
    model = ConSE(label_vectors=vectors).fit(np.eye(2), np.eye(2))
    assert model.encode_images([[1.0, 0.0], [1.0, 1e-12], [0.0, 0.0]]).tolist() == [[0, 0]] * 3
    with pytest.raises(InvalidInputError, match="2 rows, but the images have 3"):
        ConSE(label_vectors=vectors).fit(np.eye(3), np.eye(3)[:, :2])


def test_conse_learns_label_vectors_from_pairs():
    texts = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    model = ConSE().fit(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), texts)
    np.testing.assert_allclose(model.label_vectors_, [[1, 0], [0, 2]])
