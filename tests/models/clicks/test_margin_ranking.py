from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from diptych.models.clicks._margin_ranking import ClickTriplets

CLICKS = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(2, 8)), elements=st.sampled_from([0, 0, 0.5, 1, 2])
)


@settings(max_examples=50, deadline=None)
@given(CLICKS, st.sampled_from([0, 1, 2]), st.integers(1, 4), st.integers(0, 9))
def test_a_triplet_is_a_query_a_picture_clicked_for_it_and_one_that_never_was(clicks, least, most, seed):
    if not clicks.any():
        return
    triplets = ClickTriplets.of(csr_array(clicks), min_clicks=least, max_images=most)
    for query, row in enumerate(clicks):
        own = sorted(triplets.positives[triplets.queries == query], key=lambda image: -row[image])
        expected = np.sort(row[row > 0])[::-1][:most]
        assert row[own].tolist() == expected[expected >= least].tolist()
    if len(triplets) == 0:
        return
    rng = np.random.default_rng(seed)
    queries, positives, negatives = triplets.draw(np.arange(len(triplets)), rng)
    assert (clicks[queries, positives] >= least).all()
    assert (clicks[queries, negatives] == 0).all()


def test_every_pair_comes_and_other_pictures_are_drawn_evenly():
    clicks = np.zeros((3, 10))
    clicks[[0, 1, 2], [0, 1, 2]] = 1
    triplets = ClickTriplets.of(csr_array(clicks))
    batches = list(triplets.batches(7, np.random.default_rng(0)))
    assert max(len(queries) for queries, _, _ in batches) == 7
    queries, positives, negatives = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    assert np.bincount(queries).tolist() == [667, 667, 667]
    np.testing.assert_array_equal(positives, queries)
    shares = np.bincount(negatives[queries == 0], minlength=10) / 667
    assert shares[0] == 0
    assert shares[1:] == pytest.approx(np.full(9, 1 / 9), abs=0.04)


def test_a_query_that_clicked_everything_makes_no_triplet():
    triplets = ClickTriplets.of(csr_array(np.array([[1.0, 1.0], [1.0, 0.0]])))
    queries, _, negatives = triplets.draw(np.arange(3), np.random.default_rng(0))
    assert (queries.tolist(), negatives.tolist()) == ([1], [1])
    assert len(triplets.of_queries(np.array([True, False]))) == 2
