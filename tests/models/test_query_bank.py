"""Scores corrected by a bank of ordinary queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.errors import InvalidInputError
from diptych.metrics import spearman
from diptych.models import CCA, CVH, FusedModel, QueryBankNormalized, SharedSpace, WassersteinProcrustes, load_model


def brute_force(model, queries, gallery, bank, strength, n_nearest, direction):
    """The definition: scores of points, each answer less its closeness to the bank of the side that asks."""
    scores = model.space.compare(queries, gallery, direction)
    near = np.sort(model.space.compare(bank, gallery, direction), axis=0)[::-1][:n_nearest].mean(axis=0)
    return scores - strength * near


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 99),
    st.floats(0, 2),
    st.none() | st.floats(0, 2),
    st.integers(1, 50),
    st.sampled_from(["dot", "cosine"]),
)
def test_scores_are_those_of_the_definition(seed, strength, text_strength, n_nearest, metric):
    rng = np.random.default_rng(seed)
    images, texts = rng.normal(size=(40, 5)), rng.normal(size=(30, 5))
    bank = rng.normal(size=(25, 5)), rng.normal(size=(35, 5))
    inner = SharedSpace(metric=metric).fit(images[:9], texts[:9])
    model = QueryBankNormalized.of(inner, *bank, strength=strength, text_strength=text_strength, n_nearest=n_nearest)
    points = model.encode_images(images), model.encode_texts(texts)
    before = inner.encode_images(images), inner.encode_texts(texts)
    banks = inner.encode_images(bank[0]), inner.encode_texts(bank[1])
    of_texts = strength if text_strength is None else text_strength
    for asked, found, way, share in ((0, 1, "image_query", of_texts), (1, 0, "text_query", strength)):
        expected = brute_force(inner, before[asked], before[found], banks[asked], share, n_nearest, way)
        # The bank is kept in half precision.
        given = model.space.compare(points[asked], points[found], way)
        np.testing.assert_allclose(given, expected, atol=0.02 * (1 + share))


def test_pictures_compare_among_themselves_as_before(problem):
    inner = CCA(n_components=4).fit(problem.images, problem.texts)
    model = QueryBankNormalized.of(inner, problem.images, problem.texts)
    for points, before in (
        (model.encode_images(problem.images), inner.encode_images(problem.images)),
        (model.encode_texts(problem.texts), inner.encode_texts(problem.texts)),
    ):
        np.testing.assert_allclose(model.space.compare(points, points), inner.space.compare(before, before), atol=1e-12)


def test_an_index_can_serve_the_corrected_scores(problem):
    inner = CCA(n_components=4).fit(problem.images, problem.texts)
    model = QueryBankNormalized.of(inner, problem.images, problem.texts)
    images, texts = model.encode_images(problem.images), model.encode_texts(problem.texts)
    form = model.space.indexable()
    assert form.metric == "inner_product"
    for queries, gallery in ((images, texts), (texts, images), (images, images), (texts, texts)):
        served = form.queries(queries) @ form.gallery(gallery).T
        np.testing.assert_allclose(served, model.space.compare(queries, gallery), atol=1e-12)


def test_a_hub_no_longer_answers_everything():
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    # Each text lies near its own picture, and all of them a little nearer to the mean of all.
    hub = directions.sum(axis=0) / np.sqrt(20)
    texts = 0.4 * directions + hub
    images = np.vstack([directions + 0.3 * hub, 3 * hub])
    inner = SharedSpace(metric="cosine").fit(images[:20], texts)
    model = QueryBankNormalized.of(inner, images, texts, n_nearest=10, strength=1.0)
    corrected = model.space.compare(model.encode_texts(texts), model.encode_images(images), "text_query")
    assert (inner.similarity(images, texts).argmax(axis=0) == 20).all()
    assert (corrected.argmax(axis=1) == np.arange(20)).all()


def test_fitting_keeps_a_bank_of_what_was_learned_from(problem, tmp_path):
    model = QueryBankNormalized(model=CCA(n_components=3), bank_size=15).fit(problem.images, problem.texts)
    assert model.image_bank_.shape == model.text_bank_.shape == (15, 3)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.encode_images(problem.images), model.encode_images(problem.images))
    np.testing.assert_array_equal(again.encode_texts(problem.texts), model.encode_texts(problem.texts))


def test_no_strength_changes_no_score(problem):
    inner = CCA(n_components=3).fit(problem.images, problem.texts)
    model = QueryBankNormalized.of(inner, problem.images, problem.texts, strength=0)
    np.testing.assert_allclose(
        model.similarity(problem.images, problem.texts), inner.similarity(problem.images, problem.texts), atol=1e-12
    )


def test_in_a_fusion_both_sides_are_corrected(problem):
    inner = CCA(n_components=3).fit(problem.images, problem.texts)
    model = QueryBankNormalized.of(inner, problem.images, problem.texts)
    fusion = FusedModel.of([model, inner], weights=[0.5, 0.5])
    images, texts = model.encode_images(problem.images), model.encode_texts(problem.texts)
    plain = inner.similarity(problem.images, problem.texts)
    expected = plain - 0.5 * images[:, -2][:, None] - 0.5 * texts[:, -2]
    np.testing.assert_allclose(fusion.similarity(problem.images, problem.texts), expected, atol=1e-9)


def test_it_stands_around_a_fusion(problem):
    fusion = FusedModel(parts=(CCA(n_components=3), CCA(n_components=2))).fit(problem.images, problem.texts)
    around = QueryBankNormalized.of(fusion, problem.images, problem.texts, strength=0)
    np.testing.assert_allclose(
        around.similarity(problem.images, problem.texts), fusion.similarity(problem.images, problem.texts), atol=1e-12
    )


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (QueryBankNormalized(model=CCA(), strength=-1), "strength must be a number"),
        (QueryBankNormalized(model=CCA(), n_nearest=0), "n_nearest must be an integer"),
        (QueryBankNormalized(model="cca"), "model must be a model"),
        (QueryBankNormalized(model=CVH(n_bits=8)), "no inner products"),
    ],
)
def test_what_cannot_be_used_is_named(problem, model, words):
    with pytest.raises(InvalidInputError, match=words):
        model.fit(problem.images, problem.texts)


def test_texts_of_the_bank_are_familiar(problem):
    model = QueryBankNormalized(model=CCA(n_components=3), n_nearest=5).fit(problem.images, problem.texts)
    known = model.familiarity(model.encode_texts(problem.texts[:4]))
    assert known.shape == (4, 10)
    # Each is in the bank itself, which keeps half precision.
    assert known[:, 0] == pytest.approx(np.ones(4), abs=2e-3)
    assert (np.diff(known[:, :3], axis=1) <= 1e-6).all()


def named(name, inner, images, texts):
    model = QueryBankNormalized.of(inner, images, texts)
    model.set_params(**QueryBankNormalized.variants[name])
    return model


def test_named_corrections_rank_as_their_formulas():
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(30, 4)), rng.normal(size=(25, 4))
    inner = SharedSpace(metric="cosine").fit(images[:9], texts[:9])
    scores = inner.similarity(images, texts)
    near = lambda side: np.sort(side, axis=1)[:, -10:].mean(axis=1)  # noqa: E731
    expected = {
        "CSLS": 2 * scores - near(scores)[:, None] - near(scores.T),
        "inverted softmax": np.exp(20 * scores) / np.exp(20 * scores).sum(axis=1, keepdims=True),
    }
    for name, wanted in expected.items():
        model = named(name, inner, images, texts)
        found = model.space.compare(model.encode_texts(texts), model.encode_images(images), "text_query")
        # The bank is kept in half precision.
        assert min(spearman(*rows).coefficient for rows in zip(found, wanted.T, strict=True)) > 0.99


def test_a_bank_needs_no_pairs():
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(2, 80, 4))
    inner = WassersteinProcrustes(n_centres=5, n_restarts=2, rounds=2)
    model = QueryBankNormalized(model=inner, bank_size=50).fit(None, None, more_images=images, more_texts=texts)
    assert model.image_bank_.shape == (50, 4)
    some = QueryBankNormalized(model=CCA()).fit(images[:9], texts[:9], more_images=images[9:], more_texts=texts[9:])
    assert len(some.image_bank_) == 80
    assert some.n_pairs_ == 9
