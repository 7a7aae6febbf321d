"""Models side by side."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from diptych.errors import InvalidInputError
from diptych.metrics import AP, SameLabel, evaluate
from diptych.models import CCA, CFA, CVH, PLS, SM, FusedModel, LinearRegression, SharedSpace, fuse_scores, load_model
from diptych.models.fusion import score_deviation
from diptych.models.unlearned import Random

PARTS = (CCA(n_components=3), PLS(n_components=2, metric="pearson"), CFA(n_components=3, metric="dot"))


@pytest.fixture(scope="module")
def fused(problem):
    weights = (0.5, 0.2, 0.3)
    return FusedModel(parts=PARTS, weights=weights).fit(problem.images, problem.texts)


def test_the_inner_product_is_the_weighted_sum_of_the_parts_own_scores(fused, problem):
    expected = sum(
        weight * part.similarity(problem.images, problem.texts) / scale
        for weight, part, scale in zip(fused.weights_, fused.parts_, fused.scales_, strict=True)
    )
    np.testing.assert_allclose(fused.similarity(problem.images, problem.texts), expected, rtol=1e-9, atol=1e-9)
    alone = fused.part_scores(problem.images, problem.texts)
    np.testing.assert_array_equal(alone["cca"], fused.parts_[0].similarity(problem.images, problem.texts))


def test_scales_are_deviations_so_that_fused_scores_are_sums_of_z_scores(fused, problem):
    own = list(fused.part_scores(problem.images, problem.texts).values())
    np.testing.assert_allclose(fused.scales_, [scores.std() for scores in own], rtol=1e-9)
    by_scores = fuse_scores(own, weights=fused.weights_, rescale="zscore")
    difference = by_scores - fused.similarity(problem.images, problem.texts)
    # The means of z-scores are one number for all.
    np.testing.assert_allclose(difference, difference[0, 0], atol=1e-8)


@pytest.mark.parametrize("metric", ["cosine", "pearson", "covariance", "dot", "kl"])
def test_every_linear_metric_keeps_its_own_scores(problem, metric):
    part = SharedSpace(metric=metric).fit(problem.images[:, :5], problem.texts)
    fused = FusedModel.of([part])
    expected = part.similarity(problem.images[:, :5], problem.texts)
    np.testing.assert_allclose(fused.similarity(problem.images[:, :5], problem.texts), expected, atol=1e-12)


@pytest.mark.parametrize(
    "part", [CCA(metric="l1"), CCA(metric="euclidean"), SM(metric="kl_query"), CVH(n_bits=4), LinearRegression()]
)
def test_what_is_no_inner_product_is_sent_to_fuse_scores(problem, part):
    with pytest.raises(InvalidInputError, match="fuse_scores"):
        FusedModel(parts=(CCA(), part)).fit(problem.images, problem.texts, problem.labels)


def test_one_part_ranks_as_itself(problem):
    fused = FusedModel(parts=(CCA(n_components=3),)).fit(problem.images, problem.texts)
    alone = CCA(n_components=3).fit(problem.images, problem.texts)
    scores = fused.similarity(problem.images, problem.texts) * fused.scales_[0]
    np.testing.assert_allclose(scores, alone.similarity(problem.images, problem.texts), atol=1e-9)


def test_units_of_a_part_do_not_matter_after_rescaling(problem):
    wide = FusedModel(parts=(CFA(n_components=3, metric="dot"), CCA(n_components=3)))
    narrow = clone(wide)
    first = wide.fit(problem.images, problem.texts).similarity(problem.images, problem.texts)
    second = narrow.fit(1000 * problem.images, problem.texts).similarity(1000 * problem.images, problem.texts)
    np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-6)


def test_contributions_sum_to_the_score_and_name_the_parts(fused, problem):
    images, text = fused.encode_images(problem.images[:7]), fused.encode_texts(problem.texts[:1])
    shares = fused.contributions(images, text[0])
    assert list(shares) == ["cca", "pls", "cfa"]
    np.testing.assert_allclose(sum(shares.values()), (images @ text.T)[:, 0], atol=1e-12)
    expected = 0.5 * fused.parts_[0].similarity(problem.images[:7], problem.texts[:1])[:, 0] / fused.scales_[0]
    np.testing.assert_allclose(shares["cca"], expected, atol=1e-9)
    with pytest.raises(InvalidInputError, match="coordinates"):
        fused.contributions(images[:, 1:], text[0])


def test_a_part_of_weight_zero_takes_no_place_and_a_negative_one_counts_against(problem):
    parts = [clone(part).fit(problem.images, problem.texts) for part in PARTS]
    fused = FusedModel.of(parts, weights=[1.0, 0.0, -0.5], scales=[1.0, 2.0, 4.0])
    assert fused.encode_images(problem.images).shape == (90, 6)
    expected = parts[0].similarity(problem.images, problem.texts)
    expected = expected - parts[2].similarity(problem.images, problem.texts) / 8
    np.testing.assert_allclose(fused.similarity(problem.images, problem.texts), expected, atol=1e-9)
    shares = fused.contributions(fused.encode_images(problem.images), fused.encode_texts(problem.texts[:1]))
    assert (shares["pls"] == 0).all()


def test_parts_see_their_own_columns(problem):
    images, texts = np.hstack([problem.images, problem.images**2]), np.hstack([problem.texts, problem.texts[:, ::-1]])
    first = CCA(n_components=2).fit(problem.images, problem.texts)
    second = CCA(n_components=3).fit(images[:, 8:], texts[:, 5:])
    columns = {"image_columns": [(0, 8), (8, 16)], "text_columns": [(0, 5), (5, 10)]}
    fused = FusedModel.of([first, second], weights=[0.7, 0.3], names=["plain", "squared"], **columns)
    assert (fused.n_image_features_, fused.n_text_features_) == (16, 10)
    expected = 0.7 * first.similarity(problem.images, problem.texts)
    expected = expected + 0.3 * second.similarity(images[:, 8:], texts[:, 5:])
    np.testing.assert_allclose(fused.similarity(images, texts), expected, atol=1e-9)
    again = FusedModel(parts=fused.parts, image_columns=fused.image_columns, text_columns=fused.text_columns)
    assert [part.n_image_features_ for part in again.fit(images, texts).parts_] == [8, 8]


def test_float32_stays_float32_and_rows_alone_are_rows_of_a_batch(fused, problem):
    single = fused.encode_images(problem.images.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, fused.encode_images(problem.images), rtol=2e-3, atol=2e-4)
    for encode, rows in ((fused.encode_images, problem.images), (fused.encode_texts, problem.texts)):
        alone = np.vstack([encode(rows[i : i + 1]) for i in range(5)])
        np.testing.assert_allclose(alone, encode(rows)[:5], rtol=1e-9, atol=1e-12)


def test_save_and_load_bring_everything_back(fused, problem, tmp_path):
    fused.save(tmp_path / "fused")
    again = load_model(tmp_path / "fused")
    assert isinstance(again, FusedModel)
    np.testing.assert_array_equal(again.encode_images(problem.images), fused.encode_images(problem.images))
    np.testing.assert_array_equal(again.encode_texts(problem.texts), fused.encode_texts(problem.texts))
    assert again.part_names_ == fused.part_names_
    assert repr(again) == repr(fused)


def test_fusions_of_fitted_parts_save_with_their_columns(problem, tmp_path):
    model = CCA(n_components=3).fit(problem.images, problem.texts)
    other = PLS(n_components=2).fit(problem.images, problem.texts[:, 2:])
    texts = np.hstack([problem.texts, problem.texts[:, 2:]])
    fused = FusedModel.of([model, other], weights=[0.25, 0.75], names=["now", "then"], text_columns=[(0, 5), (5, 8)])
    expected = 0.25 * model.similarity(problem.images, problem.texts)
    expected = expected + 0.75 * other.similarity(problem.images, problem.texts[:, 2:])
    np.testing.assert_allclose(fused.similarity(problem.images, texts), expected, atol=1e-9)
    fused.save(tmp_path / "fused")
    again = FusedModel.load(tmp_path / "fused")
    np.testing.assert_array_equal(again.encode_texts(texts), fused.encode_texts(texts))


def test_clones_and_nested_parameters(problem):
    model = FusedModel(parts=(CCA(), CCA(), SM()), names=None)
    assert {"cca-1", "cca-2__n_components", "sm__C"} <= set(model.get_params())
    model.set_params(**{"cca-2__n_components": 2})
    assert [part.n_components for part in clone(model).parts[:2]] == [CCA().n_components, 2]
    search = GridSearchCV(
        FusedModel(parts=(CCA(n_components=3), PLS())),
        {"cca__n_components": [1, 3], "weights": ["average", (1.0, 0.0)]},
        cv=2,
    )
    search.fit(problem.images, problem.texts)
    assert search.best_params_["cca__n_components"] == 3


def test_learned_weights_ignore_chance_and_beat_the_average_on_unseen_pairs():
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(240, 4))
    images = meaning @ rng.normal(size=(4, 10)) + 0.5 * rng.normal(size=(240, 10))
    texts = meaning @ rng.normal(size=(4, 6)) + 0.5 * rng.normal(size=(240, 6))
    parts = (CCA(n_components=4), Random(n_components=3))
    average, learned = (
        FusedModel(parts=parts, weights=how).fit(images[:160], texts[:160]) for how in ("average", "learned")
    )
    assert learned.weights_[1] < 0.25
    values = [
        evaluate(
            model.encode_texts(texts[160:]),
            model.encode_images(images[160:]),
            model.space,
            SameLabel(np.arange(80), np.arange(80)),
            [AP()],
        )[AP()]
        for model in (average, learned)
    ]
    assert values[1] > values[0] + 0.05


def test_weights_are_learned_with_labels_too_and_repeat(problem):
    model = FusedModel(parts=(CCA(n_components=3), SM(metric="cosine")), weights="learned", measure="ndcg@25")
    first = model.fit(problem.images, problem.texts, problem.labels).weights_
    second = clone(model).fit(problem.images, problem.texts, problem.labels).weights_
    np.testing.assert_array_equal(first, second)
    assert first.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": ()}, "nothing to fuse"),
        ({"parts": ("cca",)}, "are models"),
        ({"names": ("a",)}, "names has 1"),
        ({"names": ("a", "a")}, "different names"),
        ({"weights": "best"}, "weights"),
        ({"weights": (1.0,)}, "one weight"),
        ({"rescale": "sigmoid"}, "rescale"),
        ({"measure": "mrr"}, "measure"),
        ({"held_out": 0.0}, "held_out"),
    ],
)
def test_parameters_are_checked(problem, options, message):
    with pytest.raises(InvalidInputError, match=message):
        FusedModel(**{"parts": (CCA(), PLS()), **options}).fit(problem.images, problem.texts)


def test_parts_that_do_not_fit_together_are_named(problem):
    first, second = CCA().fit(problem.images, problem.texts), CCA().fit(problem.images[:, :6], problem.texts)
    with pytest.raises(InvalidInputError, match="image_columns"):
        FusedModel.of([first, second])
    with pytest.raises(InvalidInputError, match="'cca-2' was fitted with 6"):
        FusedModel.of([first, second], image_columns=[None, (0, 5)])
    with pytest.raises(InvalidInputError, match="scales"):
        FusedModel.of([first], scales=[0.0])
    with pytest.raises(NotFittedError):
        FusedModel.of([CCA()])
    with pytest.raises(InvalidInputError, match="weights='average'"):
        FusedModel(parts=(CCA(), PLS()), weights="learned").fit(problem.images[:8], problem.texts[:8])


def test_a_constant_part_has_the_deviation_one():
    part = SharedSpace(metric="dot").fit(np.eye(2), np.eye(2))
    assert score_deviation(part, np.zeros((2, 2)), np.eye(2)) == 1.0


@pytest.mark.parametrize("columns", [(0, 9), (2, -1), (3, 3), ("a", 2)])
def test_columns_that_are_not_there_are_refused(columns: tuple) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 5))
    with pytest.raises(InvalidInputError, match="columns"):
        FusedModel(parts=(CCA(), PLS()), image_columns=(None, columns)).fit(rows, rows)
