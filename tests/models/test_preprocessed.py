"""Scaling in front of a model, and the names methods go by."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.arrays import unit_rows
from diptych.errors import InvalidInputError
from diptych.models import CCA, CVH, SM, CrossModalModel, Preprocessed, Random
from diptych.models.preprocessed import scale_rows


def test_row_scalings_equal_their_definitions():
    rows = np.array([[3.0, -4.0], [0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(scale_rows(rows, "l2"), [[0.6, -0.8], [0, 0], [0.5**0.5, 0.5**0.5]])
    np.testing.assert_allclose(scale_rows(rows, "l1"), [[3 / 7, -4 / 7], [0, 0], [0.5, 0.5]])
    np.testing.assert_allclose(scale_rows(rows, "hellinger")[0], [(3 / 7) ** 0.5, -((4 / 7) ** 0.5)])
    assert scale_rows(rows, "none") is rows


def test_hellinger_inner_products_are_bhattacharyya_coefficients(problem):
    p, q = problem.images[0], problem.images[1]
    left, right = scale_rows(problem.images[:2], "hellinger")
    np.testing.assert_allclose(left @ right, np.sqrt(p * q).sum())


def test_scaling_inside_equals_scaling_outside(problem):
    inside = Preprocessed(model=SM(), images="l2", texts="hellinger")
    inside.fit(problem.images, problem.texts, problem.labels)
    images, texts = scale_rows(problem.images, "l2"), scale_rows(problem.texts, "hellinger")
    outside = SM().fit(images, texts, problem.labels)
    found = inside.similarity(problem.images, problem.texts)
    np.testing.assert_allclose(found, outside.similarity(images, texts), rtol=1e-9, atol=1e-12)
    assert inside.space == outside.space


def test_outputs_before_the_sign_come_through_the_scaling(problem):
    inside = Preprocessed(model=CVH(n_bits=6), images="l2", texts="hellinger", standardize=True)
    inside.fit(problem.images, problem.texts)
    nested = Preprocessed(model=inside, images="none").fit(problem.images, problem.texts)
    for model in (inside, nested):
        for decide, encode, rows in (
            (model.decision_images, model.encode_images, (problem.images,)),
            (model.decision_texts, model.encode_texts, (problem.texts,)),
            (model.decision_pairs, model.encode_pairs, (problem.images, problem.texts)),
        ):
            outputs = decide(*rows)
            assert outputs.shape[1] == 6
            np.testing.assert_array_equal(np.packbits(outputs >= 0, axis=1), encode(*rows))
    with pytest.raises(InvalidInputError, match="CCA makes no codes"):
        Preprocessed(model=CCA()).fit(problem.images, problem.texts).decision_images(problem.images)


class Seen(CrossModalModel):
    """Gives back the features it is shown, so that a test sees what a wrapper makes of them."""

    def __init__(self, *, metric: str = "dot") -> None:
        self.metric = metric

    def _fit(self, images, texts, targets):
        self.fitted_ = True

    def _encode_images(self, images):
        return images

    def _encode_texts(self, texts):
        return texts


def seen(problem, **settings):
    model = Preprocessed(model=Seen(), images="none", texts="none", **settings).fit(problem.images, problem.texts)
    return model.encode_images(problem.images), model.encode_texts(problem.texts)


def test_principal_components_keep_the_largest_variance_and_are_uncorrelated(problem):
    reduced, texts = seen(problem, image_components=3)
    covariance = np.cov(reduced.T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-12)
    np.testing.assert_allclose(np.diag(covariance), np.linalg.eigvalsh(np.cov(problem.images.T))[::-1][:3])
    np.testing.assert_array_equal(texts, problem.texts)


def test_each_side_has_its_own_number_of_components(problem):
    images, texts = seen(problem, image_components=4, text_components=2)
    assert (images.shape[1], texts.shape[1]) == (4, 2)
    with pytest.raises(InvalidInputError, match="text_components must be an integer of at least 1, got 0"):
        seen(problem, text_components=0)


def test_standardised_components_are_those_of_the_correlation_matrix(problem):
    images, _ = seen(problem, image_components=3, standardize=True)
    expected = np.linalg.eigvalsh(np.corrcoef(problem.images.T))[::-1][:3]
    np.testing.assert_allclose(images.var(axis=0), expected)


def test_standardised_columns_have_unit_variance_and_constant_ones_stay_finite(problem):
    images = problem.images.copy()
    images[:, 2] = 0.3
    model = Preprocessed(model=Seen(), images="none", standardize=True).fit(images, problem.texts)
    deviations = model.encode_images(images).std(axis=0)
    np.testing.assert_allclose(np.delete(deviations, 2), 1)
    assert deviations[2] == pytest.approx(0, abs=1e-12)


def test_unknown_scalings_name_the_choices(problem):
    with pytest.raises(InvalidInputError, match="images must be one of 'none', 'l1', 'l2', 'hellinger'"):
        Preprocessed(model=CCA(), images="zscore").fit(problem.images, problem.texts)


def test_random_scores_scatter_around_chance_and_depend_on_content_alone():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(200, 3)), np.arange(200) % 10
    scores = [Random(random_state=seed).fit(rows, rows).score(rows, rows, labels) for seed in range(5)]
    # Twenty relevant of two hundred: the exact expectation of AP under random orders.
    t = 19 / 199
    chance = t + (1 - t) * (1 / np.arange(1, 201)).sum() / 200
    assert np.mean(scores) == pytest.approx(chance, abs=0.004)
    model = Random().fit(rows, rows)
    np.testing.assert_allclose(model.encode_images(rows[::-1])[::-1], model.encode_images(rows), rtol=1e-9, atol=1e-12)
    assert not np.allclose(model.encode_images(rows), model.encode_texts(rows))


def test_parts_of_a_row_are_scaled_each_by_itself(problem):
    images = problem.images * np.linspace(0.1, 9, problem.images.shape[1])
    widths = (2, images.shape[1] - 2)
    model = Preprocessed(model=CCA(n_components=3), images="l2", image_parts=widths).fit(images, problem.texts)
    by_hand = np.hstack([unit_rows(images[:, :2]), unit_rows(images[:, 2:])])
    expected = CCA(n_components=3).fit(by_hand, problem.texts)
    np.testing.assert_allclose(model.encode_images(images), expected.encode_images(by_hand), atol=1e-10)
    with pytest.raises(InvalidInputError, match="image_parts must sum"):
        Preprocessed(model=CCA(), image_parts=(1, 1)).fit(images, problem.texts)
