from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from diptych.benchmark.reporting import compare_all, group_letters, holm, larger_than_zero
from diptych.errors import InvalidInputError
from diptych.metrics import randomisation_test

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)
shares = arrays(np.float64, st.tuples(st.integers(2, 7), st.integers(2, 4)), elements=st.integers(-8, 8).map(float))


@given(p_values)
def test_holm_rejects_what_its_steps_reject(values: list[float]) -> None:
    """Holm's procedure as he states it: go up while p(i) ≤ α/(m − i + 1), and stop at the first that is larger."""
    adjusted = holm(values)
    for level in (0.01, 0.05, 0.2):
        rejected = set()
        for step, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
            if values[place] * (len(values) - step) > level:
                break
            rejected.add(place)
        found = {place for place, p_value in enumerate(adjusted) if p_value <= level}
        assert found == rejected


@given(p_values)
def test_holm_lies_between_the_p_values_and_bonferroni(values: list[float]) -> None:
    adjusted = holm(values)
    bonferroni = np.minimum(1, np.array(values) * len(values))
    assert (adjusted >= np.array(values) - 1e-12).all()
    assert (adjusted <= bonferroni + 1e-12).all()


def test_holm_refuses_what_is_no_probability() -> None:
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        holm([0.2, 1.2])


@settings(max_examples=40, deadline=None)
@given(shares)
def test_every_pair_is_tested_as_if_alone(table: np.ndarray) -> None:
    """With few units both enumerate all swaps, so that the p-values are the same rational numbers."""
    result = compare_all(table)
    for one, other in combinations(range(table.shape[1]), 2):
        alone = randomisation_test(table[:, one], table[:, other])
        assert result.p_values[one, other] == pytest.approx(alone.p_value, abs=1e-12)
        assert result.differences[one, other] == pytest.approx(alone.difference * len(table))
    upper = np.triu_indices(table.shape[1], 1)
    np.testing.assert_allclose(result.adjusted[upper], holm(result.p_values[upper]))
    np.testing.assert_array_equal(result.adjusted, result.adjusted.T)


def test_random_swaps_come_close_to_the_other_implementation() -> None:
    generator = np.random.default_rng(1)
    table = generator.random((60, 3)) * [0.5, 0.56, 0.8] / 60
    result = compare_all(table)
    for one, other in combinations(range(3), 2):
        alone = randomisation_test(table[:, one], table[:, other], trials=20_000)
        assert result.p_values[one, other] == pytest.approx(alone.p_value, abs=0.01)


def test_a_clear_difference_passes_the_correction_for_very_many_pairs() -> None:
    generator = np.random.default_rng(0)
    table = generator.random((200, 40)) / 200
    table[:, 0] += 0.01
    assert compare_all(table, trials=100).differs()[0, 1:].all()


def test_no_difference_is_found_too_often() -> None:
    """Among equal methods a whole table has a false group in at most one of twenty tables."""
    generator = np.random.default_rng(0)
    wrong = sum(compare_all(generator.random((12, 4))).differs().any() for _ in range(60))
    assert wrong <= 8


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7).flatmap(lambda n: arrays(np.bool_, (n, n))))
def test_methods_share_a_letter_exactly_when_they_do_not_differ(square: np.ndarray) -> None:
    differs = np.triu(square, 1)
    differs = differs | differs.T
    letters = [set(found) for found in group_letters(differs)]
    assert all(letters)
    for one, other in combinations(range(len(differs)), 2):
        assert bool(letters[one] & letters[other]) != differs[one, other]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6).flatmap(lambda n: arrays(np.bool_, (n, n))))
def test_letters_are_the_largest_groups_without_a_difference(square: np.ndarray) -> None:
    differs = np.triu(square, 1)
    differs = differs | differs.T
    n = len(differs)
    alike = [
        {place for place, taken in enumerate(chosen) if taken}
        for chosen in product((False, True), repeat=n)
        if any(chosen) and not differs[np.ix_(np.flatnonzero(chosen), np.flatnonzero(chosen))].any()
    ]
    largest = {frozenset(group) for group in alike if not any(group < other for other in alike)}
    letters = group_letters(differs)
    found = {frozenset(p for p in range(n) if letter in letters[p]) for letter in set("".join(letters))}
    assert found == largest


def test_more_groups_than_letters_are_written_with_two() -> None:
    letters = group_letters(~np.eye(28, dtype=bool))
    assert (letters[0], letters[25], letters[26], letters[27]) == ("a", "z", "aa", "ab")


@given(arrays(np.float64, st.integers(1, 8), elements=st.integers(-9, 9).map(float)))
def test_one_sided_p_value_is_the_share_of_sign_patterns(differences: np.ndarray) -> None:
    sums = [np.dot(signs, differences) for signs in product((1, -1), repeat=len(differences))]
    assert larger_than_zero(differences) == pytest.approx(np.mean([total >= differences.sum() for total in sums]))


def test_five_folds_that_all_fall_give_one_in_thirty_two() -> None:
    assert larger_than_zero([0.1, 0.2, 0.1, 0.3, 0.1]) == 1 / 32
    assert larger_than_zero(-np.ones(5)) == 1.0


def test_many_differences_are_flipped_at_random_and_alike_every_time() -> None:
    differences = np.random.default_rng(0).normal(0.2, 1, size=100)
    p_value = larger_than_zero(differences)
    assert p_value == larger_than_zero(differences)
    # The sum of flipped signs is nearly normal with variance Σd².
    z = differences.sum() / np.sqrt((differences**2).sum())
    assert p_value == pytest.approx(norm.sf(z), abs=0.01)
