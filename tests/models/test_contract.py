"""The contract, checked on every public model by discovery."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from diptych import Space
from diptych.errors import DiptychError, InvalidInputError, UnknownNameError
from diptych.models import CCA, SM, CrossModalModel, Preprocessed, find_model, model_classes
from diptych.models.registry import FILE_PARAMETERS


def test_every_method_declares_what_it_needs_and_when_to_use_it():
    for name, cls in model_classes().items():
        assert cls.needs <= {"pairs", "labels", "clicks"}, name
        assert cls.when_to_use, name
        assert ">>>" in (cls.__doc__ or ""), f"{name} has no example"


def test_constructors_only_assign_keyword_parameters():
    for cls in model_classes().values():
        signature = inspect.signature(cls.__init__)
        for parameter in list(signature.parameters.values())[1:]:
            assert parameter.kind is parameter.KEYWORD_ONLY, (cls, parameter)
            marker = object()
            assert getattr(cls(**{parameter.name: marker}), parameter.name) is marker, (cls, parameter)


def test_parameters_that_may_name_files_are_known_to_those_who_serve():
    for inputs in ("features", "items"):
        for cls in model_classes(inputs).values():
            for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
                if parameter.annotation == "str | None":
                    assert parameter.name in FILE_PARAMETERS, (cls, parameter)


def test_clone_and_parameters_round_trip(model):
    copy = clone(model)
    assert type(copy) is type(model)
    assert repr(copy) == repr(model)
    assert copy.set_params(**model.get_params(deep=False)) is copy


def test_fit_returns_the_model_leaves_parameters_alone_and_is_repeatable(model, problem):
    before = repr(model)
    assert model.fit(problem.images, problem.texts, problem.labels) is model
    assert repr(model) == before
    again = problem.fitted(model)
    assert again is not model
    np.testing.assert_array_equal(model.encode_images(problem.images), again.encode_images(problem.images))
    np.testing.assert_array_equal(model.encode_texts(problem.texts), again.encode_texts(problem.texts))


def test_points_live_in_one_space(model, problem):
    fitted = problem.fitted(model)
    images, texts = fitted.encode_images(problem.images), fitted.encode_texts(problem.texts[:40])
    assert isinstance(fitted.space, Space)
    assert images.shape == (90, texts.shape[1])
    assert np.isfinite(images).all()
    assert np.isfinite(texts).all()
    scores = fitted.similarity(problem.images, problem.texts[:40])
    np.testing.assert_array_equal(scores, fitted.space.compare(images, texts))


def test_single_row_equals_batch_row(model, problem):
    fitted = problem.fitted(model)
    for encode, rows in ((fitted.encode_images, problem.images), (fitted.encode_texts, problem.texts)):
        batch = encode(rows)
        singles = np.vstack([encode(rows[i : i + 1]) for i in range(len(rows))])
        np.testing.assert_allclose(singles, batch, rtol=1e-9, atol=1e-12)


def test_learning_beats_chance_on_unseen_pairs(model, problem):
    fitted = problem.fit(model, slice(0, 60))
    score = fitted.score(problem.images[60:], problem.texts[60:], problem.labels[60:])
    # Chance is about 0.38 for three classes of ten; only the baselines may stay there.
    learns = bool(getattr(fitted, "model_", fitted).needs) and type(fitted).__name__ != "LogisticConcatenation"
    assert (score > 0.6) == learns


def test_float32_rows_give_float32_points_close_to_float64(model, problem):
    fitted = problem.fitted(model)
    if type(fitted).__name__ == "Random":
        return
    # A code is a sign, which the last digits of a number near zero may turn: what is compared is the number.
    encode = fitted.decision_images if fitted.space.name == "hamming" else fitted.encode_images
    single = encode(problem.images.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, encode(problem.images), rtol=2e-3, atol=2e-4)


def test_blocks_of_any_size_give_the_same_points(model, problem, monkeypatch):
    whole = problem.fitted(model).similarity(problem.images, problem.texts)
    for name, size in (
        ("diptych.arrays.BLOCK_ROWS", 7),
        ("diptych.models.pairwise._pairs._BLOCK_NUMBERS", 100),
        ("diptych.models.correlation._kernels._BLOCK_BYTES", 8 * 90 * 5),
        ("diptych.models.correlation._kernels._TILE_ROWS", 3),
        ("diptych.models.correlation._kernels._TILE_COLUMNS", 4),
    ):
        monkeypatch.setattr(name, size)
    blocked = problem.fit(model)
    np.testing.assert_allclose(blocked.similarity(problem.images, problem.texts), whole, atol=1e-2)


def test_numpy_numbers_are_numbers(problem):
    search = GridSearchCV(CCA(), {"n_components": np.arange(1, 3), "regularization": np.float32([0.1])}, cv=2)
    assert search.fit(problem.images, problem.texts).best_params_["n_components"] in (1, 2)
    with pytest.raises(InvalidInputError, match="C must be a number"):
        SM(C=np.inf).fit(problem.images, problem.texts, problem.labels)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_scale_of_float32_features_does_not_matter(model, problem, scale):
    inner = type(getattr(model, "model", model)).__name__
    if inner in ("Random", "SM", "MarginalSM", "TS", "LogisticConcatenation"):
        return
    images = (problem.images * scale).astype(np.float32)
    moved = clone(model).fit(images, problem.texts, problem.labels)
    assert moved.score(images, problem.texts, problem.labels) > 0.5


@pytest.mark.parametrize("scale", [1e25, 1e-25])
def test_features_whose_squares_overflow_or_vanish_are_refused(model, problem, scale):
    with pytest.raises(InvalidInputError, match="rescale"):
        model.fit((problem.images * scale).astype(np.float32), problem.texts, problem.labels)


def test_unfitted_models_say_so(model, problem):
    with pytest.raises(NotFittedError, match="call fit"):
        model.encode_images(problem.images)
    with pytest.raises(NotFittedError, match="call fit"):
        model.save("anywhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda images, texts, labels: (images[:, 0], texts, labels), "two dimensions"),
        (lambda images, texts, labels: (images, texts[:-1], labels), "aligned"),
        (lambda images, texts, labels: (images[:0], texts[:0], labels[:0]), "empty"),
        (lambda images, texts, labels: (images, np.where(texts == texts[3, 0], np.nan, texts), labels), "row 3"),
        (lambda images, texts, labels: (np.where(images == images[5, 1], np.inf, images), texts, labels), "row 5"),
        (lambda images, texts, labels: (images.astype(str), texts, labels), "numbers"),
        (lambda images, texts, labels: (images + 1j, texts, labels), "real"),
    ],
)
def test_bad_training_data_gets_one_clear_error(model, problem, change, message):
    with pytest.raises(InvalidInputError, match=message):
        model.fit(*change(problem.images, problem.texts, problem.labels))


def test_bad_queries_get_one_clear_error(model, problem):
    fitted = problem.fitted(model)
    with pytest.raises(InvalidInputError, match="fitted with 8"):
        fitted.encode_images(problem.images[:, :-1])
    with pytest.raises(InvalidInputError, match="row 1"):
        fitted.encode_texts(np.vstack([problem.texts[:1], np.full((1, 5), np.nan)]))
    with pytest.raises(InvalidInputError, match="reshape"):
        fitted.encode_texts(problem.texts[0])
    with pytest.raises(InvalidInputError, match="aligned"):
        fitted.score(problem.images, problem.texts[:-1])


def test_a_misspelt_metric_fails_before_the_fit(problem):
    for cls in model_classes().values():
        if "metric" in inspect.signature(cls).parameters:
            with pytest.raises(UnknownNameError, match="did you mean 'cosine'"):
                cls(metric="cosin").fit(problem.images, problem.texts, problem.labels)


def test_labels_are_asked_for_and_checked(model, problem):
    inner = getattr(model, "model", model)
    if "labels" not in inner.needs:
        clone(model).fit(problem.images, problem.texts)
        return
    with pytest.raises(InvalidInputError, match="learns from labels"):
        model.fit(problem.images, problem.texts)
    with pytest.raises(InvalidInputError, match="aligned"):
        model.fit(problem.images, problem.texts, problem.labels[:-1])
    with pytest.raises(InvalidInputError, match="one class only"):
        model.fit(problem.images, problem.texts, np.full(90, "art"))
    with pytest.raises(InvalidInputError, match="NaN"):
        model.fit(problem.images, problem.texts, np.full(90, np.nan))
    with pytest.raises(InvalidInputError, match="0 and 1"):
        model.fit(problem.images, problem.texts, np.full((90, 3), 2))


def test_multi_label_targets_are_learned(model, problem):
    several = np.stack([problem.labels == "art", problem.labels != "cars", problem.labels == "cars"], axis=1).astype(
        int
    )
    fitted = clone(model).fit(problem.images, problem.texts, several)
    assert np.isfinite(fitted.similarity(problem.images, problem.texts)).all()
    if "labels" in getattr(model, "model", model).needs:
        assert fitted.score(problem.images, problem.texts, several) > 0.75


@pytest.mark.parametrize(
    "case", ["constant columns", "n < d", "two rows", "duplicated rows", "all constant", "zero rows"]
)
def test_degenerate_data_gives_an_error_or_finite_points(model, problem, case):
    images, texts, labels = problem.images.copy(), problem.texts.copy(), problem.labels
    if case == "constant columns":
        images[:, :3], texts[:, 0] = 0.1, 0.0
    elif case == "n < d":
        images, texts, labels = np.hstack([images] * 3)[:10], np.hstack([texts] * 4)[:10], labels[:10]
    elif case == "two rows":
        images, texts, labels = images[:2], texts[:2], labels[:2]
    elif case == "duplicated rows":
        images, texts, labels = images[[0] * 5 + [1] * 5], texts[[0] * 5 + [1] * 5], labels[[0] * 5 + [1] * 5]
    elif case == "all constant":
        images, texts = np.full_like(images, 0.125), np.full_like(texts, 0.2)
    else:
        images[::7], texts[::5] = 0, 0
    try:
        fitted = clone(model).fit(images, texts, labels)
    except DiptychError:
        return
    assert np.isfinite(fitted.encode_images(images)).all()
    assert np.isfinite(fitted.similarity(images, texts)).all()


def test_grid_search_tunes_with_pairs_alone(problem):
    search = GridSearchCV(CCA(), {"n_components": [1, 3]}, cv=3).fit(problem.images, problem.texts)
    assert search.best_params_ == {"n_components": 3}


def test_grid_search_passes_labels_to_fit_and_reaches_nested_parameters(problem):
    search = GridSearchCV(Preprocessed(model=SM()), {"model__C": [0.1, 10.0]}, cv=3)
    search.fit(problem.images, problem.texts, labels=problem.labels)
    assert search.best_estimator_.model.C in (0.1, 10.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_researchers_own_model_is_a_model(problem, tmp_path):
    class Means(CrossModalModel):
        """Scores by the mean of all features."""

        def __init__(self, *, shift: float = 0.0) -> None:
            self.shift = shift

        @property
        def space(self) -> Space:
            return Space("euclidean")

        def _fit(self, images, texts, targets):
            self.center_ = np.array([images.mean()])

        def _encode_images(self, images):
            return images.mean(axis=1, keepdims=True) - self.center_

        def _encode_texts(self, texts):
            return texts.mean(axis=1, keepdims=True) - self.center_

    fitted = Means(shift=1.0).fit(problem.images, problem.texts)
    fitted.save(tmp_path / "means")
    again = Means.load(tmp_path / "means")
    np.testing.assert_array_equal(again.encode_images(problem.images), fitted.encode_images(problem.images))
    assert again.shift == 1.0


def test_methods_that_learn_from_something_else_are_named_with_their_command():
    with pytest.raises(InvalidInputError, match="diptych learn"):
        find_model("psi")
    with pytest.raises(InvalidInputError, match="diptych train"):
        find_model("MNiL")
