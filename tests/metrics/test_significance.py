"""Randomisation tests and bootstrap intervals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.errors import InvalidInputError
from diptych.metrics import bootstrap_difference, bootstrap_interval, draws_difference, randomisation_test

values = st.lists(st.tuples(*[st.integers(0, 10).map(lambda tenth: tenth / 10)] * 2), min_size=2, max_size=8)


@settings(max_examples=60, deadline=None)
@given(values)
def test_few_queries_are_enumerated(pairs):
    a, b = np.array(pairs).T
    difference = a - b
    patterns = np.array(list(itertools.product([1, -1], repeat=len(difference))))
    extreme = np.abs(patterns @ difference) >= abs(difference.sum()) - 1e-9
    result = randomisation_test(a, b)
    assert result.exact
    assert result.trials == 2 ** len(difference)
    assert result.p_value == pytest.approx(extreme.mean(), abs=1e-12)
    assert result.difference == pytest.approx(difference.mean())


@settings(max_examples=20, deadline=None)
@given(values)
def test_half_swaps_follow_their_definition(pairs):
    a, b = np.array(pairs).T
    difference = a - b
    n_queries = len(difference)
    larger = []
    for swapped in itertools.combinations(range(n_queries), n_queries // 2):
        signs = np.ones(n_queries)
        signs[list(swapped)] = -1
        larger.append(abs(signs @ difference) > abs(difference.sum()) + 1e-9)
    result = randomisation_test(a, b, variant="half", trials=20_000)
    assert not result.exact
    assert result.p_value == pytest.approx(np.mean(larger) if difference.any() else 1.0, abs=0.02)


def test_random_signs_approach_the_exact_value():
    rng = np.random.default_rng(0)
    difference = rng.normal(0.03, 0.1, 30)
    sampled = randomisation_test(difference, np.zeros(30), trials=50_000)
    patterns = rng.choice([-1.0, 1.0], (200_000, 30))
    exact = np.mean(np.abs(patterns @ difference) >= abs(difference.sum()) - 1e-12)
    assert not sampled.exact
    assert sampled.p_value == pytest.approx(exact, abs=0.008)


def test_equal_methods_are_never_different():
    same = np.linspace(0, 1, 40)
    assert randomisation_test(same, same, trials=1000).p_value == 1.0
    assert randomisation_test(same, same, variant="half", trials=1000).p_value == 1.0
    assert randomisation_test(same[:5], same[:5]).p_value == 1.0


def test_a_large_difference_is_found_and_never_has_p_zero():
    rng = np.random.default_rng(1)
    a = rng.random(100)
    result = randomisation_test(a + 0.5, a, trials=2000)
    assert result.p_value == pytest.approx(1 / 2001)


def test_tests_are_symmetric_and_seeded():
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 50))
    left, right = randomisation_test(a, b, trials=3000), randomisation_test(b, a, trials=3000)
    assert left.p_value == right.p_value
    assert left.difference == -right.difference
    assert randomisation_test(a, b, trials=3000, seed=1).p_value != left.p_value


def test_false_alarms_keep_their_rate():
    rng = np.random.default_rng(3)
    alarms = [
        randomisation_test(*rng.normal(size=(2, 25)), trials=400, seed=trial).p_value <= 0.05 for trial in range(400)
    ]
    assert 0.02 < np.mean(alarms) < 0.09


def test_skipped_queries_are_dropped_in_pairs():
    a, b = [0.5, np.nan, 0.7, 0.4], [0.4, 0.5, np.nan, 0.1]
    assert randomisation_test(a, b) == randomisation_test([0.5, 0.4], [0.4, 0.1])
    assert bootstrap_difference(a, b) == bootstrap_difference([0.5, 0.4], [0.4, 0.1])
    assert bootstrap_interval([0.1, np.nan, 0.9]) == bootstrap_interval([0.1, 0.9])


def test_bootstrap_width_is_that_of_the_normal_approximation():
    sample = np.random.default_rng(4).normal(0.3, 0.1, 500)
    interval = bootstrap_interval(sample, level=0.9)
    expected = 1.645 * sample.std() / np.sqrt(500)
    assert interval.mean == pytest.approx(sample.mean())
    assert interval.high - interval.mean == pytest.approx(expected, rel=0.06)
    assert interval.mean - interval.low == pytest.approx(expected, rel=0.06)
    assert bootstrap_interval(sample, level=0.99).high > interval.high


def test_bootstrap_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(5)
    intervals = [bootstrap_interval(rng.random(60), draws=400, seed=trial) for trial in range(300)]
    covered = np.mean([interval.low <= 0.5 <= interval.high for interval in intervals])
    assert 0.90 < covered < 0.98


def test_pairing_narrows_the_interval():
    rng = np.random.default_rng(6)
    hard = rng.random(200)
    a, b = hard + 0.02 + rng.normal(0, 0.01, 200), hard
    paired = bootstrap_difference(a, b)
    assert paired.low > 0
    assert paired.high - paired.low < 0.2 * (bootstrap_interval(a).high - bootstrap_interval(a).low)


def test_a_single_value_has_no_width():
    interval = bootstrap_interval([0.25], draws=10)
    assert (interval.low, interval.mean, interval.high) == (0.25, 0.25, 0.25)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: randomisation_test([1, 2], [1]), "a has 2 values and b 1"),
        (lambda: randomisation_test([np.nan], [1]), "no query has a value"),
        (lambda: randomisation_test([[1]], [[1]]), "a must be a list"),
        (lambda: randomisation_test([np.inf], [1]), "a holds infinity"),
        (lambda: randomisation_test([1], [1], variant="t"), "variant must be one of half, sign"),
        (lambda: randomisation_test([1], [0], variant="half"), "needs at least 2"),
        (lambda: randomisation_test([1], [1], trials=0), "trials must be a whole number"),
        (lambda: bootstrap_interval([1], level=95), "level must lie between 0 and 1"),
        (lambda: bootstrap_interval([1], draws=0), "draws must be a whole number"),
        (lambda: bootstrap_interval([]), "no query has a value"),
    ],
)
def test_errors_name_the_fix(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_draws_and_queries_both_widen_an_interval():
    rng = np.random.default_rng(0)
    noise = 0.02 * rng.normal(size=(5, 300))
    by_query, by_draw = noise + rng.normal(size=300), noise + rng.normal(size=(5, 1))
    zeros = np.zeros((5, 300))
    for values in (by_query, by_draw):
        found = draws_difference(values, zeros)
        own = values.mean(axis=0) if values is by_query else values.mean(axis=1)
        assert found.difference == pytest.approx(values.mean())
        # The percentile interval of five draws knows nothing of Student's t, and of their deviation with n.
        assert found.high - found.low == pytest.approx(2 * 1.96 * own.std() / np.sqrt(len(own)), rel=0.1)


def test_the_test_over_draws_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 5, 40))
    expected = scipy.stats.ttest_rel(a.mean(axis=1), b.mean(axis=1)).pvalue
    assert draws_difference(a, b).p_value == pytest.approx(expected)
    assert not draws_difference(a, a).is_real()
    with pytest.raises(InvalidInputError, match="at least 2 draws"):
        draws_difference(a[0], b[0])
