from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.codes import pack_signs
from diptych.errors import InvalidInputError
from diptych.metrics import HammingLookup, SameLabel


def drawn(seed: int, n_bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=(29, n_bits))
    labels = rng.integers(0, 3, size=29)
    return signs[:9], signs[9:], labels[:9], labels[9:]


@given(seed=st.integers(0, 10_000), n_bits=st.integers(1, 21))
def test_counts_are_those_of_every_pair(seed: int, n_bits: int) -> None:
    queries, gallery, asked, carried = drawn(seed, n_bits)
    lookup = HammingLookup.from_codes(
        pack_signs(queries), pack_signs(gallery), SameLabel(asked, carried), n_bits=n_bits
    )
    distances = (n_bits - queries @ gallery.T) / 2
    relevant = asked[:, None] == carried
    for radius in range(n_bits + 1):
        np.testing.assert_array_equal(lookup.retrieved[:, radius], (distances <= radius).sum(axis=1))
        np.testing.assert_array_equal(lookup.found[:, radius], ((distances <= radius) & relevant).sum(axis=1))
    np.testing.assert_array_equal(lookup.n_relevant, relevant.sum(axis=1))


def test_the_whole_gallery_lies_within_the_largest_radius() -> None:
    queries, gallery, asked, carried = drawn(1, 12)
    lookup = HammingLookup.from_codes(pack_signs(queries), pack_signs(gallery), SameLabel(asked, carried), n_bits=12)
    curve = lookup.mean_curve()
    assert len(curve.x) == 13
    assert curve.x[-1] == 1.0
    assert curve.y[-1] == pytest.approx(np.mean([(carried == label).mean() for label in asked]))
    assert (np.diff(curve.x) >= 0).all()
    micro = lookup.micro_curve()
    assert micro.x[-1] == 1.0
    assert micro.y[-1] == pytest.approx((asked[:, None] == carried).mean())


def test_thrown_together_both_directions_of_the_same_pairs_are_one_curve() -> None:
    rng = np.random.default_rng(5)
    images, texts = (pack_signs(rng.normal(size=(20, 10))) for _ in range(2))
    labels = rng.integers(0, 3, size=20)
    relevance = SameLabel(labels, labels)
    there = HammingLookup.from_codes(images, texts, relevance, n_bits=10)
    back = HammingLookup.from_codes(texts, images, relevance, n_bits=10)
    np.testing.assert_allclose(there.micro_curve().y, back.micro_curve().y)
    assert not np.allclose(there.mean_curve().y, back.mean_curve().y)


def test_a_query_that_finds_nothing_is_a_zero_or_left_out() -> None:
    gallery = pack_signs(np.array([[1.0, 1, 1, 1], [1, 1, 1, -1]]))
    queries = pack_signs(np.array([[1.0, 1, 1, 1], [-1, -1, -1, -1]]))
    lookup = HammingLookup.from_codes(queries, gallery, SameLabel([0, 1], [0, 1]), n_bits=4)
    assert lookup.unanswered(2) == 0.5
    assert lookup.precision(2) == pytest.approx(0.25)
    assert lookup.precision(2, nothing="skip") == pytest.approx(0.5)
    assert np.isnan(lookup.precision_values(2, nothing="skip")[1])
    assert lookup.recall(2) == pytest.approx(0.5)
    assert lookup.micro_curve().y[2] == pytest.approx(0.5)
    assert lookup.mean_curve(nothing="skip").y[0] == 1.0


def test_queries_without_relevant_items_count_nowhere() -> None:
    codes = pack_signs(np.array([[1.0, 1], [1, 1]]))
    lookup = HammingLookup.from_codes(codes, codes, SameLabel([0, 5], [0, 1]), n_bits=2)
    assert lookup.precision(0) == pytest.approx(0.5)
    assert lookup.recall(0) == 1.0


def test_what_cannot_be_asked_is_refused() -> None:
    codes = pack_signs(np.array([[1.0, 1], [1, 1]]))
    relevance = SameLabel([0, 0], [0, 0])
    lookup = HammingLookup.from_codes(codes, codes, relevance, n_bits=2)
    with pytest.raises(InvalidInputError, match="radii 0 to 2"):
        lookup.precision(3)
    with pytest.raises(InvalidInputError, match="zero, skip"):
        lookup.precision(1, nothing="none")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="hold 1 to 8 bits"):
        HammingLookup.from_codes(codes, codes, relevance, n_bits=9)
    with pytest.raises(InvalidInputError, match="same labels"):
        HammingLookup.from_codes(codes, codes, SameLabel([0, 0], [1, 1])).recall(0)
    far = pack_signs(np.array([[-1.0, -1], [-1, -1]]))
    with pytest.raises(InvalidInputError, match="take a larger one"):
        HammingLookup.from_codes(far, codes, relevance, n_bits=2).precision(0, nothing="skip")
