"""Which items are relevant, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from diptych.errors import InvalidInputError
from diptych.metrics import GradedRelevance, SameLabel, SharedLabel
from diptych.metrics.relevance import shared_class_indices


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.lists(st.sampled_from("abd"), min_size=1, max_size=8)
)
def test_same_label(queries, gallery):
    relevance = SameLabel(queries, gallery)
    for query, label in enumerate(queries):
        expected = [item for item, other in enumerate(gallery) if other == label]
        assert relevance.judge(query).items.tolist() == expected
        assert len(expected) <= relevance.most


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_shared_label(seed):
    rng = np.random.default_rng(seed)
    queries, gallery = rng.random((4, 5)) < 0.3, rng.random((9, 5)) < 0.3
    for relevance in (SharedLabel(queries, gallery), SharedLabel(sparse.csr_array(queries), sparse.coo_array(gallery))):
        for query in range(4):
            expected = np.flatnonzero((queries[query] & gallery).any(axis=1))
            np.testing.assert_array_equal(relevance.judge(query).items, expected)
            assert len(expected) <= relevance.most


def test_numbers_and_strings_do_not_mix():
    with pytest.raises(InvalidInputError, match="must both be numbers or both strings"):
        SameLabel([1, 2], ["1", "2"])


def test_labels_of_mixed_integer_types_compare_by_value():
    assert SameLabel(np.array([3], dtype=np.int8), np.array([3, 4], dtype=np.uint64)).judge(0).items.tolist() == [0]


@pytest.mark.parametrize("first", [2**53, 2**63 - 3, -(2**53) - 4])
def test_large_numbers_stay_apart_whatever_their_types(first):
    queries = np.array([first, first + 1, first + 2])
    for kind in (np.int64, np.uint64) if first > 0 else (np.int64,):
        relevance = SameLabel(queries, np.array([*range(first + 2, first - 1, -1), 7], dtype=kind))
        assert [relevance.judge(query).items.tolist() for query in range(3)] == [[2], [1], [0]]
    assert len(shared_class_indices(queries, np.array([7.0, 8.0]))[2]) == 5


def test_numbers_of_all_64_bits_are_not_negative_ones():
    relevance = SameLabel(np.array([2**64 - 1], dtype=np.uint64), np.array([-1, 2**63 - 1]))
    assert relevance.judge(0).items.tolist() == []


def test_judged_items_alone_are_candidates():
    stored = sparse.csr_array(([2, 0, 3], ([0, 0, 1], [4, 1, 0])), shape=(2, 5))
    relevance = GradedRelevance(stored, judged_only=True)
    first, second = relevance.judge(0), relevance.judge(1)
    assert sorted(first.candidates.tolist()) == [1, 4]
    assert first.items.tolist() == [4]
    assert relevance.grades[first.levels].tolist() == [2]
    assert relevance.grades[second.levels].tolist() == [3]
    assert GradedRelevance(stored).judge(0).candidates is None


def test_inputs_are_left_as_they_are():
    stored = sparse.csr_array(([2, 0], ([0, 0], [1, 2])), shape=(1, 3))
    indicator = sparse.csr_array(([1, 0], ([0, 0], [1, 2])), shape=(1, 3))
    GradedRelevance(stored)
    SharedLabel(indicator, indicator)
    assert stored.nnz == indicator.nnz == 2
    unsorted = sparse.csr_array((np.array([1, 2, 3]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    assert GradedRelevance(unsorted).grades.tolist() == [2, 4]
    assert unsorted.indices.tolist() == [2, 0, 2]
    assert unsorted.data.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SameLabel([], [1]), "query_labels is empty"),
        (lambda: SameLabel([1], []), "gallery_labels is empty"),
        (lambda: SameLabel([[1]], [1]), "query_labels must be a list .* use SharedLabel"),
        (lambda: SameLabel([1.0], [1.0, np.nan]), "gallery_labels holds NaN, first at 1"),
        (lambda: SameLabel([None], [1]), "query_labels must be whole numbers or strings"),
        (lambda: SameLabel(np.array([b"a"]), [b"a"]), "query_labels are bytes; decode"),
        (lambda: SameLabel(np.ma.array([1]), [1]), r"query_labels\.filled"),
        (lambda: SameLabel([[1]], [1]), r"query_labels\.ravel"),
        (lambda: SameLabel([2**63, -1], [1]), "query_labels hold floats beyond"),
        (lambda: SharedLabel(np.ma.array([[1, 0]]), [[1, 0]]), r"query_indicator\.filled"),
        (lambda: GradedRelevance(np.ma.array([[1, 0]])), r"grades\.filled"),
        (lambda: SharedLabel([1, 0], [[1, 0]]), "query_indicator must be a matrix.* use SameLabel"),
        (lambda: SharedLabel([[1, 0]], [[1, 0, 1]]), "use one list of labels for both"),
        (lambda: SharedLabel([[1, 2]], [[1, 0]]), "query_indicator must hold 0 and 1"),
        (lambda: SharedLabel([[np.nan, 1]], [[1, 0]]), "query_indicator must hold 0 and 1"),
        (lambda: SharedLabel(np.zeros((0, 2)), [[1, 0]]), "query_indicator is empty"),
        (lambda: GradedRelevance([1, 2]), "grades must be a matrix"),
        (lambda: GradedRelevance([[1, -1]]), "not negative"),
        (lambda: GradedRelevance([[1, np.nan]]), "finite"),
        (lambda: GradedRelevance([[0, 0]]), "no grade is positive"),
        (lambda: GradedRelevance(np.zeros((0, 3))), "grades is empty"),
        (lambda: GradedRelevance([[1, 0]], judged_only=True), "judged_only needs a sparse matrix"),
    ],
)
def test_errors_name_the_fix(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
