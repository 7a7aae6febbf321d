"""Moments against their definitions, and methods fitted from moments of parts against those fitted from rows."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from diptych.devices import Card
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.models import CCA, CFA, GMLDA, LCFS, MomentModel, Moments, SCMOrth, model_classes
from diptych.models.labels import Targets
from diptych.models.moments import moments

HALVES = slice(0, 100), slice(100, None)
BY_MOMENTS = [cls for cls in model_classes().values() if issubclass(cls, MomentModel)]


@pytest.mark.parametrize("covariances", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tensors_have_the_sums_of_arrays(views, dtype, covariances, monkeypatch):
    images, texts = (side.astype(dtype) + 100 for side in views)
    expected = moments(images, texts, covariances=covariances)
    monkeypatch.setattr("diptych.models.moments.card_for", lambda work: Card(torch, "cpu"))
    found = moments(images, texts, covariances=covariances)
    assert (found.n_rows, found.precision) == (expected.n_rows, expected.precision)
    for part in ("image_mean", "text_mean", "image", "text", "cross"):
        wanted = getattr(expected, part)
        tolerance = 1e3 * expected.precision * np.abs(wanted).max()
        np.testing.assert_allclose(getattr(found, part), wanted, rtol=0, atol=tolerance)


def test_moments_equal_centred_products_whatever_the_block(views, monkeypatch):
    images, texts = views
    monkeypatch.setattr("diptych.arrays.BLOCK_ROWS", 37)
    sums = moments(images, texts)
    a, b = images - images.mean(axis=0), texts - texts.mean(axis=0)
    np.testing.assert_allclose(sums.image, a.T @ a)
    np.testing.assert_allclose(sums.text, b.T @ b)
    np.testing.assert_allclose(sums.cross, a.T @ b)
    assert sums.n_rows == 300


def test_moments_without_covariances_have_their_diagonals(views):
    images, texts = views
    whole, parts = moments(images, texts), [moments(images[rows], texts[rows], covariances=False) for rows in HALVES]
    merged = parts[0].merge(parts[1])
    assert (whole.has_covariances, merged.has_covariances) == (True, False)
    np.testing.assert_allclose(merged.image, np.diag(whole.image))
    np.testing.assert_allclose(merged.text, np.diag(whole.text))
    np.testing.assert_allclose(merged.about_origin().image, np.diag(whole.about_origin().image))
    np.testing.assert_allclose(merged.cross, whole.cross, atol=1e-10)
    np.testing.assert_allclose(merged.deviations()[0], whole.deviations()[0])
    assert merged.offset == pytest.approx(whole.offset)


def test_float32_moments_keep_their_digits_far_from_the_origin():
    rng = np.random.default_rng(0)
    images = (rng.normal(size=(20_000, 4)) + 1000).astype(np.float32)
    sums = moments(images, images)
    exact = np.cov(images.astype(np.float64).T, bias=True) * len(images)
    np.testing.assert_allclose(sums.cross, exact, rtol=1e-3, atol=20)


def sums_of(cuts, images, texts, labels, view="indicator"):
    """Return the moments of the rows between the cuts, one after the other."""
    targets = Targets.from_labels(labels, len(images))
    edges = [0, *sorted(cuts), len(images)]
    return [
        moments(
            images[first:last],
            texts[first:last],
            Targets(targets.classes, targets.indicator[first:last], targets.multilabel),
            view=view,
        )
        for first, last in pairwise(edges)
    ]


def arrays_of(sums: Moments):
    return {**vars(sums), **vars(sums.labels), "labels": 0}


def assert_same_sums(first: Moments, second: Moments, rtol=1e-11):
    for name, value in arrays_of(first).items():
        expected = arrays_of(second)[name]
        np.testing.assert_allclose(value, expected, rtol=rtol, atol=rtol * np.abs(expected).max(), err_msg=name)


@given(
    cuts=st.lists(st.integers(0, 60), max_size=6),
    offset=st.sampled_from([0.0, 1e3, -1e6]),
    order=st.randoms(use_true_random=False),
    view=st.sampled_from(["indicator", "distribution", "unit"]),
)
def test_moments_of_parts_merge_to_those_of_all_rows_in_any_order_and_grouping(cuts, offset, order, view):
    """Parts may be empty; features may lie far from the origin, where products of raw rows would lose their digits."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=(60, 3))
    images, texts = rng.normal(size=(60, 4)) + offset, rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) - offset
    (whole,) = sums_of([], images, texts, labels, view)
    parts = sums_of(cuts, images, texts, labels, view)
    order.shuffle(parts)
    while len(parts) > 1:
        place = order.randrange(len(parts) - 1)
        parts[place : place + 2] = [parts[place].merge(parts[place + 1])]
    # Near the origin to the last digits; far from it rows themselves have lost some.
    assert_same_sums(parts[0], whole, rtol=1e-11 * max(1.0, abs(offset) ** 0.5))


def test_label_sums_are_products_with_centred_rows():
    rng = np.random.default_rng(0)
    images, texts, labels = rng.normal(size=(50, 4)) + 9, rng.normal(size=(50, 3)), rng.integers(0, 2, size=(50, 3))
    sums = reduce(Moments.merge, sums_of([13, 30], images, texts, labels, "unit"))
    unit = labels / np.maximum(np.linalg.norm(labels, axis=1, keepdims=True), 1e-300)
    np.testing.assert_allclose(sums.labels.totals, unit.sum(axis=0))
    np.testing.assert_allclose(sums.labels.gram, unit.T @ unit, atol=1e-12)
    np.testing.assert_allclose(sums.labels.image, unit.T @ (images - images.mean(axis=0)), atol=1e-12)
    raw = sums.about_origin()
    np.testing.assert_allclose(raw.labels.text, unit.T @ texts, atol=1e-12)
    np.testing.assert_allclose(raw.cross, images.T @ texts, rtol=1e-12)


def test_float32_labels_products_keep_their_digits_far_from_the_origin():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=(4000, 2))
    rows = (rng.normal(size=(4000, 3)) + 1000 / 3).astype(np.float32)
    (sums,) = sums_of([], rows, rows, labels)
    exact = labels.T @ (rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64))
    np.testing.assert_allclose(sums.labels.image, exact, atol=0.1)


@pytest.mark.parametrize("cls", BY_MOMENTS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("several", [False, True])
def test_parts_teach_a_method_what_all_rows_teach_it(cls, several, problem):
    labels = problem.labels
    if several:
        labels = np.stack([labels == "art", labels != "cars", labels == "cars"], axis=1).astype(int)
        labels[:20] = 0
    # Bits beyond the rank of the labels are mixed by signs that a rounding error may turn.
    model = cls(n_bits=2, n_directions=None) if cls is SCMOrth else cls()
    classes = np.arange(3) if several else np.unique(labels)
    parts = [
        model.moments(problem.images[rows], problem.texts[rows], labels[rows], classes=classes)
        for rows in (slice(0, 20), slice(20, 21), slice(21, 90))
    ]
    fitted = model.fit_moments(reduce(Moments.merge, parts))
    whole = clone(model).fit(problem.images, problem.texts, labels)
    assert (fitted.n_pairs_, fitted.n_image_features_, fitted.n_text_features_) == (90, 8, 5)
    assert vars(fitted).keys() == vars(whole).keys()
    encode = ("decision_images", "decision_texts") if hasattr(whole, "n_bits") else ("encode_images", "encode_texts")
    ours, theirs = (
        getattr(each, encode[0])(problem.images) @ getattr(each, encode[1])(problem.texts).T for each in (fitted, whole)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())


def test_moments_that_cannot_be_merged_or_learned_from_say_why(problem):
    images, texts, labels = problem.images, problem.texts, problem.labels
    plain, labelled = CCA().moments(images, texts), GMLDA().moments(images, texts, labels)
    with pytest.raises(InvalidInputError, match=r"\(8, 5\) and \(5, 8\)"):
        plain.merge(CCA().moments(texts, images))
    with pytest.raises(InvalidInputError, match="with labels and without"):
        plain.merge(labelled)
    with pytest.raises(InvalidInputError, match="different classes"):
        labelled.merge(GMLDA().moments(images, texts, labels, classes=["art", "birds", "cars", "dogs"]))
    with pytest.raises(InvalidInputError, match="without any"):
        LCFS().fit_moments(plain)
    with pytest.raises(InvalidInputError, match="birds, which is not among"):
        LCFS().moments(images, texts, labels, classes=["art", "cars"])
    with pytest.raises(InvalidInputError, match="must have 3 columns"):
        LCFS().moments(images, texts, np.ones((90, 4)), classes=np.arange(3))
    with pytest.raises(UnknownNameError, match="cosine"):
        CCA(metric="cosin").fit_moments(plain)
    with pytest.raises(InvalidInputError, match="images are the same"):
        CCA().fit_moments(CCA().moments(np.full((5000, 3), 0.1), np.ones((5000, 2))))
    with pytest.raises(InvalidInputError, match="CCA needs covariances"):
        CCA().fit_moments(CFA().moments(images, texts))
    with pytest.raises(InvalidInputError, match="of different methods"):
        plain.merge(CFA().moments(images, texts))
    CFA().fit_moments(plain)


def test_constant_columns_get_no_weight_however_their_mean_was_rounded():
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(5000, 4)), rng.normal(size=(5000, 3))
    images[:, 1] = 0.1
    assert np.abs(CFA().fit(images, texts).image_projection_[1]).max() < 1e-12


def test_a_moment_that_rounding_left_below_zero_is_that_of_equal_numbers() -> None:
    rng = np.random.default_rng(0)
    found = moments(rng.normal(size=(20, 2)), rng.normal(size=(20, 2)))
    rounded = found.image.copy()
    rounded[1, 1] = -1e-30
    deviations, _ = replace(found, image=rounded).deviations()
    assert deviations[0] > 0 == deviations[1]
