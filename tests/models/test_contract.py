"""The contract, checked on every public model by discovery."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.metadata_routing import get_routing_for_object

from diptych import Space
from diptych.errors import DiptychError, InvalidInputError, UnknownNameError
from diptych.models import (
    CCA,
    IMH,
    MLCCA,
    SM,
    ClusterCCA,
    CrossModalModel,
    FusedModel,
    Preprocessed,
    QueryBankNormalized,
    SCMOrth,
    SCMSeq,
    find_model,
    model_classes,
)
from diptych.models.registry import FILE_PARAMETERS


def test_every_method_declares_what_it_needs_and_when_to_use_it():
    for name, cls in model_classes().items():
        assert cls.needs <= {"pairs", "labels", "clicks", "unpaired"}, name
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


_UNITS = {
    "Random": "learns nothing",
    "SM": "C weighs a loss against weights that have the inverse unit of the features, as published",
    "MarginalSM": "as SM",
    "PairwiseSM": "as SM",
    "TS": "as SM",
    "LogisticConcatenation": "as SM",
    "KCCA": "κ weighs a kernel against its square",
    "SCM(correlation=KCCA": "as KCCA",
}
_ORIGIN = {
    "Random": "learns nothing",
    "ConSE": "texts are word vectors, whose cosines are about the origin",
    "LCFS": "regresses on labels without an intercept, as published",
    "LGCFL": "as LCFS",
    "KCCA": "kernels of histograms, which begin at zero",
    "SCM(correlation=KCCA": "as KCCA",
    "Preprocessed": "roots and unit lengths are about the origin",
}
_PRECISION = {
    "Random": "learns nothing",
    "SCRATCH": "alternates between codes, where one bit on the edge turns others",
    "QueryBankNormalized": "keeps its bank in half precision",
    "KCCA(rank=20, solver='cholesky')": "takes rows as pivots, and which of two equal ones comes first is rounding",
    "SCM(correlation=KCCA": "as KCCA",
}


def _except_for(model, reasons):
    return any(repr(model).startswith(name) for name in reasons)


@pytest.mark.parametrize("case", ["float32", "far from the origin"])
def test_units_origin_and_precision_change_neither_the_dimensions_nor_the_answers(model, problem, case):
    """What is left of rounding is no component: float32, other units and an offset learn what float64 learns."""
    images, texts = problem.images, problem.texts
    if case == "float32":
        up, down = (1.0, 1.0) if _except_for(model, _UNITS) else (1e12, 1e-12)
        kind = np.float64 if _except_for(model, _PRECISION) else np.float32
        images, texts = (images * up).astype(kind), (texts * down).astype(kind)
    else:
        up, down = (1.0, 1.0) if _except_for(model, _UNITS) else (1e4, 1e-4)
        shift = 0.0 if _except_for(model, _ORIGIN) else 1e3
        images, texts = (images + shift) * down, (texts + shift) * up
    plain, moved = problem.fitted(model), clone(model).fit(images, texts, problem.labels)
    assert moved.encode_texts(texts).shape == plain.encode_texts(problem.texts).shape
    labels = problem.labels if "labels" in getattr(model, "model", model).needs else None
    expected = plain.score(problem.images, problem.texts, labels)
    assert moved.score(images, texts, labels) == pytest.approx(expected, abs=1e-3)


_ORDER = {
    "Random": "learns nothing",
    **dict.fromkeys(
        ("BipartiteCrossProduct", "CMML", "LogisticConcatenation", "LogisticCrossProduct", "PairwiseSM"),
        "draws other pairs, by their places",
    ),
    **dict.fromkeys(
        (
            "BiCMSRM",
            "ContrastiveProjection",
            "PLRanking",
            "WARP",
            "DCMH",
            "DeepSM",
            "DeepTS",
            "LDSP",
            "MMNN",
            "SOTAlign",
        ),
        "steps through rows in a drawn order",
    ),
    **dict.fromkeys(("CMFH", "DCH", "DLFH", "SCRATCH"), "begins at codes or factors drawn for each row"),
    "MiniVec2Vec": "clusters rows from drawn centres",
    **dict.fromkeys(("KCCA(rank=20", "KCCA(image_kernel='rbf', rank=20"), "takes rows as landmarks or pivots"),
}


def test_the_order_of_training_rows_does_not_matter(model, problem):
    """What has a closed form, or a unique optimum, is that of the rows, whatever signs a decomposition returns."""
    if _except_for(model, _ORDER):
        return
    order = np.random.default_rng(1).permutation(90)
    other = clone(model).fit(problem.images[order], problem.texts[order], problem.labels[order])
    expected = problem.fitted(model).score(problem.images, problem.texts)
    assert other.score(problem.images, problem.texts) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("method", [IMH, SCMOrth, SCMSeq])
def test_random_mixtures_of_directions_do_not_know_their_signs(method, views):
    images, texts = views
    labels = np.arange(300) % 5
    images, texts = images + 3 * np.eye(5)[labels] @ np.ones((5, 9)).cumsum(axis=1), texts + np.eye(5, 6)[labels]
    first = method(n_bits=32).fit(images, texts, labels).score(images, texts)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(300)
        again = method(n_bits=32).fit(images[order], texts[order], labels[order])
        assert again.score(images, texts) == pytest.approx(first, abs=1e-3)


@pytest.mark.parametrize("method", [ClusterCCA, MLCCA])
def test_classes_off_the_centre_have_one_direction_less_than_there_are(method):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, size=600)
    images = rng.normal(size=(6, 40))[labels] + 2 * rng.normal(size=(600, 40)) + 30
    texts = rng.normal(size=(6, 20))[labels] + 2 * rng.normal(size=(600, 20)) - 20
    for kind in (np.float64, np.float32):
        sides = images.astype(kind), texts.astype(kind)
        assert method(regularization=0.0).fit(*sides, labels).encode_images(sides[0]).shape[1] == 5


def test_features_whose_squares_overflow_or_vanish_are_refused(model, problem):
    for scale in (1e25, 1e-25):
        with pytest.raises(InvalidInputError, match="rescale"):
            model.fit((problem.images * scale).astype(np.float32), problem.texts, problem.labels)


def test_unfitted_models_say_so(model, problem):
    with pytest.raises(NotFittedError, match="call fit"):
        model.encode_images(problem.images)
    with pytest.raises(NotFittedError, match="call fit"):
        model.save("anywhere")


_BAD_TRAINING_DATA = [
    (lambda images, texts, labels: (images[:, 0], texts, labels), "two dimensions"),
    (lambda images, texts, labels: (images, texts[:-1], labels), "aligned"),
    (lambda images, texts, labels: (images[:0], texts[:0], labels[:0]), "empty"),
    (lambda images, texts, labels: (images, np.where(texts == texts[3, 0], np.nan, texts), labels), "row 3"),
    (lambda images, texts, labels: (np.where(images == images[5, 1], np.inf, images), texts, labels), "row 5"),
    (lambda images, texts, labels: (images.astype(str), texts, labels), "numbers"),
    (lambda images, texts, labels: (images + 1j, texts, labels), "real"),
    (lambda images, texts, labels: (np.ma.masked_less(images, 0.1), texts, labels), r"images\.filled"),
    (lambda images, texts, labels: (images, texts, np.ma.masked_equal(labels, "art")), r"labels\.filled"),
    (lambda images, texts, labels: (images, texts, labels.astype(bytes)), "labels are bytes; decode"),
    (lambda images, texts, labels: (images, texts, 2.0**53 + 2 * (labels == "art")), "integers or strings"),
    (lambda images, texts, labels: (pd.DataFrame(images).rename(columns={0: "a"}), texts, labels), "name all"),
]


def test_bad_training_data_gets_one_clear_error(model, problem):
    for change, message in _BAD_TRAINING_DATA:
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
    with pytest.raises(InvalidInputError, match="masked"):
        fitted.encode_images(np.ma.array(problem.images))


def test_columns_of_tables_are_known_by_their_names(model, problem):
    fitted = problem.fitted_on_tables(model)
    assert fitted.image_feature_names_in_.tolist() == list("abcdefgh")
    assert fitted.text_feature_names_in_.tolist() == list("vwxyz")
    images, texts = problem.tables
    for encode, table in ((fitted.encode_images, images), (fitted.encode_texts, texts)):
        np.testing.assert_allclose(encode(table), encode(table.to_numpy()), rtol=1e-6, atol=1e-9)
        with pytest.raises(InvalidInputError, match=r"another order; pass table\[model\.(image|text)_feature_names"):
            encode(table[table.columns[::-1]])
        with pytest.raises(InvalidInputError, match=r"without '[av]' and with 'new'"):
            encode(table.rename(columns={"a": "new", "v": "new"}))
        with pytest.raises(InvalidInputError, match="with 'new'"):
            encode(table.assign(new=0.0))


def test_names_of_columns_are_saved_go_into_wrappers_and_are_forgotten(problem, tmp_path):
    images, _ = problem.tables
    fitted = CCA().fit(images, problem.texts)
    fitted.save(tmp_path / "model")
    parts = QueryBankNormalized.of(fitted, images, problem.texts), FusedModel.of([fitted, fitted])
    for model in (CCA.load(tmp_path / "model"), *parts):
        assert model.encode_images(images).shape[0] == 90
        assert not hasattr(model, "text_feature_names_in_")
        with pytest.raises(InvalidInputError, match="another order"):
            model.encode_images(images[list("bacdefgh")])
    fitted.fit(problem.images, problem.texts)
    fitted.encode_images(images[list("bacdefgh")])


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
    with pytest.warns(DataConversionWarning), pytest.raises(InvalidInputError, match="89 labels"):
        model.fit(problem.images, problem.texts, problem.labels[:-1, None])
    with pytest.raises(InvalidInputError, match="one class only"):
        model.fit(problem.images, problem.texts, np.full(90, "art"))
    with pytest.raises(InvalidInputError, match="NaN"):
        model.fit(problem.images, problem.texts, np.full(90, np.nan))
    with pytest.raises(InvalidInputError, match="0 and 1"):
        model.fit(problem.images, problem.texts, np.full((90, 3), 2))


def test_multi_label_targets_are_learned(model, problem):
    fitted, several = problem.fitted_on_tables(model), problem.several_labels
    assert np.isfinite(fitted.similarity(problem.images, problem.texts)).all()
    if "labels" in getattr(model, "model", model).needs:
        assert fitted.score(problem.images, problem.texts, several) > 0.75


def test_a_sparse_indicator_is_the_dense_one_and_a_column_of_labels_is_a_list(problem):
    dense = SM().fit(problem.images, problem.texts, problem.several_labels.toarray())
    several = SM().fit(problem.images, problem.texts, problem.several_labels)
    np.testing.assert_array_equal(several.encode_images(problem.images), dense.encode_images(problem.images))
    with pytest.warns(DataConversionWarning, match=r"labels\.ravel\(\)"):
        column = SM().fit(problem.images, problem.texts, problem.labels[:, None])
    expected = problem.fitted(SM())
    np.testing.assert_array_equal(column.encode_images(problem.images), expected.encode_images(problem.images))
    with pytest.warns(DataConversionWarning, match=r"labels\.ravel\(\)"):
        scored = column.score(problem.images, problem.texts, pd.DataFrame({"class": problem.labels}))
    assert scored == expected.score(problem.images, problem.texts, problem.labels)


def _degenerate(problem):
    """Yield cases and their names."""
    images, texts, labels = problem.images, problem.texts, problem.labels
    some_images, some_texts = images.copy(), texts.copy()
    some_images[:, :3], some_texts[:, 0] = 0.1, 0.0
    yield "constant columns", (some_images, some_texts, labels)
    yield "n < d", (np.hstack([images] * 3)[:10], np.hstack([texts] * 4)[:10], labels[:10])
    yield "two rows", (images[:2], texts[:2], labels[:2])
    twins = [0] * 5 + [1] * 5
    yield "duplicated rows", (images[twins], texts[twins], labels[twins])
    yield "all constant", (np.full_like(images, 0.125), np.full_like(texts, 0.2), labels)
    some_images, some_texts = images.copy(), texts.copy()
    some_images[::7], some_texts[::5] = 0, 0
    yield "zero rows", (some_images, some_texts, labels)


def test_degenerate_data_gives_an_error_or_finite_points(model, problem):
    for case, (images, texts, labels) in _degenerate(problem):
        try:
            fitted = clone(model).fit(images, texts, labels)
        except DiptychError:
            continue
        assert np.isfinite(fitted.encode_images(images)).all(), case
        assert np.isfinite(fitted.similarity(images, texts)).all(), case


def test_grid_search_tunes_with_pairs_alone(problem):
    search = GridSearchCV(CCA(), {"n_components": [1, 3]}, cv=3).fit(problem.images, problem.texts)
    assert search.best_params_ == {"n_components": 3}


def test_grid_search_passes_labels_to_fit_and_reaches_nested_parameters(problem):
    search = GridSearchCV(Preprocessed(model=SM()), {"model__C": [0.1, 10.0]}, cv=3)
    search.fit(problem.images, problem.texts, labels=problem.labels)
    assert search.best_estimator_.model.C in (0.1, 10.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_labels_are_routed_to_fit_and_score(model):
    request = get_routing_for_object(model)
    assert request.fit.requests == request.score.requests == {"labels": True}


def test_grid_search_scores_with_the_labels_where_metadata_are_routed(problem):
    images, texts, labels = problem.images, problem.texts, problem.labels
    folds = KFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(Preprocessed(model=SM()), {"model__C": [0.1, 10.0]}, cv=folds)
        search.fit(images, texts, labels=labels)
    for fold, (train, test) in enumerate(folds.split(images)):
        fitted = Preprocessed(model=SM(C=0.1)).fit(images[train], texts[train], labels[train])
        scored = search.cv_results_[f"split{fold}_test_score"][0]
        assert scored == fitted.score(images[test], texts[test], labels[test])
        assert scored > fitted.score(images[test], texts[test])


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
