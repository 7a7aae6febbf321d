"""Wanted and unwanted pictures told apart by clicks and looks, and what a memory of queries makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.models import QueryMemory
from diptych.models.clicks.query_memory import ClickMixture

RHO, EPSILON = 0.9, 0.1


def made_up(
    n_queries: int, n_items: int, looks: float | np.ndarray, *, share: float | np.ndarray = 0.3, seed: int = 0
) -> tuple[np.ndarray, ...]:
    """Return whose items, which are wanted, their looks and their clicks."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_queries), n_items)
    wanted = rng.random(len(groups)) < np.broadcast_to(share, n_queries)[groups]
    seen = np.broadcast_to(looks, (n_queries, n_items)).reshape(-1).astype(float)
    return groups, wanted, seen, rng.poisson(np.where(wanted, RHO, EPSILON) * seen).astype(float)


@pytest.fixture
def mixture() -> ClickMixture:
    _, _, looks, clicks = made_up(200, 20, 40 * np.arange(1.0, 21) ** -2)
    return ClickMixture().fit(clicks, looks)


def surplus_of(mixture: ClickMixture, clicks: float, looks: float) -> float:
    return float(mixture.surplus(np.array([clicks]), np.array([looks]), np.array([0]), prior=1e9)[0])


def test_rates_are_found_where_most_items_were_hardly_looked_at(mixture: ClickMixture) -> None:
    assert mixture.wanted_rate_ == pytest.approx(RHO, rel=0.05)
    assert mixture.noise_rate_ == pytest.approx(EPSILON, rel=0.1)
    assert mixture.share_ == pytest.approx(0.3, abs=0.03)


def test_a_click_says_the_same_wherever_it_happened(mixture: ClickMixture) -> None:
    # By Bayes' rule, with a click nine times as likely on what is wanted and a share of 0.3: 0.79.
    assert [surplus_of(mixture, 1, looks) for looks in (0.001, 0.01, 0.1)] == pytest.approx([0.49] * 3, abs=0.06)


def test_what_was_not_looked_at_says_nothing_and_what_was_left_is_unwanted(mixture: ClickMixture) -> None:
    assert surplus_of(mixture, 0, 0.01) == pytest.approx(0, abs=0.01)
    assert surplus_of(mixture, 0, 10) == pytest.approx(-mixture.share_, abs=0.02)
    assert surplus_of(mixture, 9, 10) == pytest.approx(1 - mixture.share_, abs=0.02)


def test_many_looks_do_not_decide_about_a_rate_between_both(mixture: ClickMixture) -> None:
    clicks, looks, group = np.array([30.0]), np.array([100.0]), np.array([0])
    exact, cautious = (
        mixture.surplus(clicks, looks, group, prior=1e9, shape=shape)[0] + mixture.share_ for shape in (np.inf, 3.0)
    )
    assert exact < 0.2 < cautious < 0.8


def test_queries_differ_in_how_much_is_wanted(mixture: ClickMixture) -> None:
    groups, wanted, looks, clicks = made_up(2, 400, 10.0, share=np.array([0.05, 0.9]), seed=1)
    unseen = np.array([0, 1])
    found = mixture.surplus(
        np.concatenate([clicks, [1.0, 1.0]]), np.concatenate([looks, [0.01, 0.01]]), np.concatenate([groups, unseen])
    )
    # What is common for a query says little; the rare one that is clicked stands out.
    assert found[:-2][groups == 0][wanted[groups == 0]].mean() > 0.6
    assert 0 < found[:-2][groups == 1][wanted[groups == 1]].mean() < 0.15
    assert 0 < found[-1] < 0.15 < found[-2]


def test_clicks_that_are_all_alike_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    looks = np.full(2000, 10.0)
    clicks = rng.poisson(0.3 * looks).astype(float)
    found = ClickMixture().fit(clicks, looks).surplus(clicks, looks, np.arange(2000) // 20)
    assert np.abs(found).mean() < 0.05


def test_a_memory_learns_from_one_click_far_down_and_not_from_what_nobody_saw() -> None:
    groups, _, looks, clicks = made_up(100, 20, 40 * np.arange(1.0, 21) ** -2)
    pictures = np.eye(30)
    rows = np.tile(np.arange(20), 100)
    # Often clicked, seldom clicked, one click where hardly anybody looked, and no click there.
    own = np.array([50.0, 50.0, 0.05, 0.05]), np.array([45.0, 4.0, 1.0, 0.0])
    queries = [*(f"thing{number}" for number in range(100)), "red boat"]
    memory = QueryMemory(reach=False).fit_looks(
        queries,
        np.concatenate([groups, np.full(4, 100)]),
        np.concatenate([rows, [25, 26, 27, 28]]),
        np.concatenate([looks, own[0]]),
        np.concatenate([clicks, own[1]]),
        pictures,
    )
    liked, disliked, found, unseen = memory.scores(["red boat"], pictures)[0, 25:29]
    assert liked > found > 0.3 * liked
    assert disliked < 0
    assert abs(unseen) < 0.15 * found


@pytest.fixture
def boats() -> QueryMemory:
    """Blue boats are known well, of red boats and green trees one picture that nobody wanted was seen."""
    groups, _, looks, clicks = made_up(100, 20, 40 * np.arange(1.0, 21) ** -2)
    queries = [*(f"thing{number}" for number in range(100)), "blue boat", "red boat", "green tree", "old boat"]
    owners, rows = [100, 100, 100, 101, 102], [25, 26, 27, 28, 28]
    return QueryMemory(reach=False).fit_looks(
        queries,
        np.concatenate([groups, owners]),
        np.concatenate([np.tile(np.arange(20), 100), rows]),
        np.concatenate([looks, [50.0] * 5]),
        np.concatenate([clicks, [45.0, 5.0, 5.0, 5.0, 5.0]]),
        np.eye(30),
    )


def test_a_query_starts_from_related_ones_and_one_that_nobody_asked_stays_silent(boats: QueryMemory) -> None:
    known, related, other, silent = boats.scores(["blue boat", "red boat", "green tree", "old boat"], np.eye(30))
    assert known[25] > related[25] > 0.1 * known[25]
    # Its own picture still says what it says.
    assert related[28] == pytest.approx(other[28], rel=0.1)
    assert abs(other[25]) < 0.1 * related[25]
    assert not silent.any()


def test_what_a_query_lends_is_its_own(boats: QueryMemory) -> None:
    boats.reach, boats.min_similarity = True, 0.3
    asked = boats.scores(["old boat"], np.eye(30))[0]
    without = boats.without(["blue boat"]).scores(["old boat"], np.eye(30))[0]
    assert asked[25] > 0.1
    # Red boats start from blue ones, and would tell of them.
    assert abs(without[25]) < 0.1 * asked[25]
    assert boats.without(["blue boat", "red boat"]).scores(["old boat"], np.eye(30))[0].max() == 0


def test_a_query_that_was_asked_is_answered_alike_whether_others_are_or_not(boats: QueryMemory) -> None:
    asked = boats.scores(["blue boat", "red boat"], np.eye(30))
    boats.reach, boats.min_similarity = True, 0.3
    np.testing.assert_array_equal(boats.scores(["blue boat", "red boat"], np.eye(30)), asked)
    assert boats.scores(["old boat"], np.eye(30)).any()


def test_a_memory_of_clicks_alone_lends_its_only_directions(boats: QueryMemory) -> None:
    boats.reach, boats.min_similarity = True, 0.3
    boats.directions_ = boats.own_directions_
    expected = boats.scores(["old boat"], np.eye(30))
    del boats.own_directions_
    np.testing.assert_array_equal(boats.scores(["old boat"], np.eye(30)), expected)
