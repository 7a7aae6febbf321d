"""Fusion of scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.errors import InvalidInputError
from diptych.models import fuse_scores


def test_sigmoid_fusion_is_the_published_sum():
    first, second = np.array([[0.5, -1.0]]), np.array([[2.0, 0.0]])
    expected = 0.3 / (1 + np.exp(-first)) + 0.7 / (1 + np.exp(-second))
    np.testing.assert_allclose(fuse_scores([first, second], weights=[0.3, 0.7]), expected, atol=1e-12)


@given(st.floats(0.1, 100), st.floats(-50, 50))
def test_z_scores_forget_scale_and_offset(scale, offset):
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 3, 7))
    plain = fuse_scores([first, second], rescale="zscore")
    np.testing.assert_allclose(fuse_scores([scale * first + offset, second], rescale="zscore"), plain, atol=1e-8)


def test_one_model_keeps_its_order_whatever_the_rescaling():
    scores = np.random.default_rng(0).normal(size=9)
    for rescale in ("sigmoid", "zscore", "zscore_sigmoid", "none"):
        np.testing.assert_array_equal(np.argsort(fuse_scores([scores], rescale=rescale)), np.argsort(scores))


def test_huge_and_constant_scores_stay_finite():
    fused = fuse_scores([[1e300, -1e300], [5.0, 5.0]])
    assert fused.tolist() == pytest.approx([0.5 + 0.5 / (1 + np.exp(-5)), 0.5 / (1 + np.exp(-5))])
    assert fuse_scores([[5.0, 5.0]], rescale="zscore").tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([], {}, "no scores"),
        ([[1.0], [1.0, 2.0]], {}, "shapes"),
        ([[np.nan]], {}, "NaN"),
        ([[1.0]], {"weights": "learned"}, "'average'"),
        ([[1.0]], {"weights": [1.0, 2.0]}, "one weight"),
        ([[1.0]], {"weights": [0.0]}, "other than 0"),
        ([[1.0]], {"rescale": "rank"}, "rescale"),
    ],
)
def test_what_cannot_be_fused_gets_one_clear_error(scores, options, message):
    with pytest.raises(InvalidInputError, match=message):
        fuse_scores(scores, **options)


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="must be numbers"):
        fuse_scores([["a", "b"]])
