"""What holds for every model of a click log, found by discovery."""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from diptych.data.clicks import ClickLog
from diptych.errors import InvalidInputError, ModelFileError
from diptych.models import Text2Image, load_model, model_classes
from diptych.models.clicks import ClickModel

from .conftest import THINGS

CLASSES = model_classes("clicks")
QUERIES = ["boats", "red cat", "a photo of my dog at the sea", "green house garden", "tree", "nothing known", ""]


@pytest.fixture(params=CLASSES.values(), ids=CLASSES)
def model(request, clicked) -> ClickModel:
    quick = {"epochs": 3} if "epochs" in inspect.signature(request.param).parameters else {}
    own = {"vectors": clicked.vectors} if "vectors" in inspect.signature(request.param).parameters else {}
    return request.param(**quick, **own)


def test_the_methods_of_the_paper_are_there():
    names = {"text2image", "image2text", "query-based-scoring", "online-classification", "psi", "devise"}
    assert set(CLASSES) == {*names, "image-annotation", "query-memory"}
    assert not names & set(model_classes())


def test_declarations_and_constructors():
    for cls in CLASSES.values():
        assert cls.needs == {"clicks"}
        assert cls.inputs == "clicks"
        assert cls.when_to_use
        assert ">>>" in (cls.__doc__ or "")
        assert bool(cls.why_no_points) is not cls.is_indexable
        for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
            marker = object()
            assert parameter.kind is parameter.KEYWORD_ONLY
            assert getattr(cls(**{parameter.name: marker}), parameter.name) is marker


def test_pictures_of_the_asked_thing_come_first(model, clicked):
    scores = clicked.fitted(model).scores(THINGS, clicked.asked)
    assert scores.dtype == np.float32
    assert scores.shape == (5, 100)
    tops = np.argsort(-scores, axis=1)[:, :10] // 20
    # One in five is chance.
    assert (tops == np.arange(5)[:, None]).mean() > 0.8


def test_scores_are_inner_products_of_points_where_there_are_points(model, clicked):
    fitted = clicked.fitted(model)
    scores = fitted.scores(QUERIES, clicked.asked)
    if not fitted.is_indexable:
        for encode, items in ((fitted.encode_images, clicked.asked), (fitted.encode_texts, QUERIES)):
            with pytest.raises(InvalidInputError, match=r"has no points, because .*; call scores"):
                encode(items)
        return
    assert fitted.space.indexable() is not None
    texts, images = fitted.encode_texts(QUERIES), fitted.encode_images(clicked.asked)
    np.testing.assert_allclose(fitted.space.compare(texts, images, "text_query"), scores, atol=1e-5)


def test_one_pictures_score_is_the_same_alone_in_a_list_and_in_a_matrix(model, clicked):
    fitted = clicked.fitted(model)
    scores = fitted.scores(QUERIES, clicked.asked)
    np.testing.assert_allclose(fitted.scores(QUERIES[1:2], clicked.asked[7:8])[0, 0], scores[1, 7], atol=1e-6)
    np.testing.assert_allclose(fitted.similarity(clicked.asked, QUERIES), scores.T, atol=1e-6)
    rows, columns = np.array([0, 3, 0, 5, 1]), np.array([9, 2, 4, 4, 4])
    listed = fitted.score_pairs([QUERIES[row] for row in rows], clicked.asked[columns])
    np.testing.assert_allclose(listed, scores[rows, columns], atol=1e-6)


def test_a_query_without_an_answer_says_so_and_scores_nothing(model, clicked):
    fitted = clicked.fitted(model)
    answered = [fitted.answers(query) for query in QUERIES]
    assert answered == [True, True, True, True, True, False, False]
    scores = fitted.scores(QUERIES, clicked.asked)
    assert (np.abs(scores).max(axis=1) > 0).tolist() == answered


def test_a_saved_model_scores_bit_by_bit(model, clicked, tmp_path):
    fitted = clicked.fitted(model)
    fitted.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert type(again) is type(fitted)
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.scores(QUERIES, clicked.asked), fitted.scores(QUERIES, clicked.asked))
    if type(fitted) is not Text2Image:
        with pytest.raises(ModelFileError, match="not a Text2Image"):
            Text2Image.load(tmp_path / "model")


def test_fits_are_repeatable_and_replace_what_was_learned(model, clicked):
    first = clicked.fitted(model).scores(QUERIES, clicked.asked)
    half = clicked.log.select(np.arange(150))
    rows = half.image_rows(clicked.log.images)
    again = clone(model).fit_clicks(half, clicked.images[rows])
    assert not np.allclose(again.scores(QUERIES, clicked.asked), first)
    columns = [f"feature {place}" for place in range(clicked.images.shape[1])]
    again.fit_clicks(clicked.log, pd.DataFrame(np.ascontiguousarray(clicked.images), columns=columns))
    np.testing.assert_allclose(again.scores(QUERIES, clicked.asked), first, atol=1e-4)
    with pytest.raises(InvalidInputError, match="another order"):
        again.scores(QUERIES, pd.DataFrame(clicked.asked, columns=columns[::-1]))
    np.testing.assert_array_equal(again.fit_clicks(clicked.log, clicked.images).scores(QUERIES, clicked.asked), first)
    np.testing.assert_array_equal(copy.deepcopy(again).scores(QUERIES, clicked.asked), first)


def test_float64_pictures_score_as_float32_ones(model, clicked):
    fitted = clicked.fitted(model)
    wide = fitted.scores(QUERIES, clicked.asked.astype(np.float64))
    assert wide.dtype == np.float32
    np.testing.assert_allclose(wide, fitted.scores(QUERIES, clicked.asked), atol=1e-4)


def test_bad_input_gets_one_clear_error(model, clicked):
    with pytest.raises(NotFittedError, match="call fit_clicks"):
        model.scores(QUERIES, clicked.asked)
    with pytest.raises(InvalidInputError, match="learns from clicks: call fit_clicks"):
        model.fit(clicked.images, clicked.images)
    with pytest.raises(InvalidInputError, match=r"39 rows and 40 pictures; use the order of log\.images"):
        model.fit_clicks(clicked.log, clicked.images[1:])
    with pytest.raises(InvalidInputError, match="no query of the log has a word left"):
        model.fit_clicks(ClickLog.from_triads(["the", "of the"], ["1", "2"], [1, 1]), clicked.images[:2])
    fitted = clicked.fitted(model)
    with pytest.raises(InvalidInputError, match="fitted with 12"):
        fitted.scores(QUERIES, clicked.asked[:, 1:])
    with pytest.raises(InvalidInputError, match="pass a list"):
        fitted.scores("boat", clicked.asked)
    with pytest.raises(InvalidInputError, match="no texts"):
        fitted.scores([], clicked.asked)
    with pytest.raises(InvalidInputError, match="aligned"):
        fitted.score_pairs(["boat"], clicked.asked)


@pytest.mark.parametrize(
    ("cls", "parameters", "message"),
    [
        ("psi", {"min_clicks": 100.0}, "lower min_clicks"),
        ("devise", {"vectors": "nowhere.txt"}, "does not exist"),
    ],
)
def test_bad_parameters_are_named(cls, parameters, message, clicked):
    with pytest.raises(InvalidInputError, match=message):
        CLASSES[cls](**parameters).fit_clicks(clicked.log, clicked.images)


def test_what_is_no_log_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="ClickLog"):
        Text2Image().fit_clicks([("a", "1", 1)], np.eye(1))
