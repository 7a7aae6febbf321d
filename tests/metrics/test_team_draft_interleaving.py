"""Team-draft interleaving: fair to both rankings, and faithful to their orders."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.errors import InvalidInputError
from diptych.metrics import draft_winner, team_draft

RANKINGS = st.lists(st.integers(0, 30), unique=True, max_size=20)


@given(RANKINGS, RANKINGS, st.integers(0, 45), st.integers(0, 2**32))
def test_a_draft_keeps_each_order_and_repeats_nothing(a: list[int], b: list[int], k: int, seed: int) -> None:
    drafted = team_draft(a, b, k, seed=seed)
    items = [item for item, _ in drafted]
    assert len(set(items)) == len(items) == min(k, len({*a, *b}))
    for team, ranking in (("a", a), ("b", b)):
        own = [item for item, side in drafted if side == team]
        assert own == sorted(own, key=ranking.index)
    # Whoever picks, picks the best that is left of its own ranking.
    for place, (item, team) in enumerate(drafted):
        ranking = a if team == "a" else b
        assert item == next(other for other in ranking if other not in items[:place])


@given(st.permutations(range(12)), st.permutations(range(12)), st.integers(0, 12), st.binary(min_size=16, max_size=16))
def test_pages_of_one_seed_fit_together(a: list[int], b: list[int], k: int, seed: bytes) -> None:
    assert team_draft(a, b, 12, seed=seed)[:k] == team_draft(a[:k], b[:k], k, seed=seed)


@given(st.permutations(range(12)), st.permutations(range(12)), st.integers(0, 2**32))
def test_teams_take_turns(a: list[int], b: list[int], seed: int) -> None:
    teams = [team for _, team in team_draft(a, b, 12, seed=seed)]
    assert all(set(teams[start : start + 2]) == {"a", "b"} for start in range(0, 12, 2))


def test_the_best_of_each_ranking_stands_first_in_half_of_the_drafts() -> None:
    firsts = Counter(team_draft([1, 2, 3], [3, 2, 1], 3, seed=seed)[0] for seed in range(4000))
    assert set(firsts) == {(1, "a"), (3, "b")}
    # Four standard deviations of a fair coin.
    assert firsts[1, "a"] == pytest.approx(2000, abs=4 * np.sqrt(1000))


@pytest.mark.parametrize("b", [list(range(10)), list(range(9, -1, -1)), [3, 1, 0, 2, 9, 8, 7, 6, 5, 4]])
def test_clicks_without_looking_prefer_neither(b: list[int]) -> None:
    """People who click places, not items, win for each team as often, however the places are preferred."""
    generator = np.random.default_rng(0)
    propensity = 1 / np.arange(1, 11)
    won = Counter()
    for seed in range(4000):
        teams = np.array([team for _, team in team_draft(list(range(10)), b, 10, seed=seed)])
        won[draft_winner(teams[generator.random(10) < propensity])] += 1
    n = won["a"] + won["b"]
    assert n > 1500
    assert won["a"] == pytest.approx(n / 2, abs=4 * np.sqrt(n) / 2)


def test_the_ranking_with_the_wanted_items_on_top_wins() -> None:
    good, poor = list(range(20)), list(range(19, -1, -1))
    generator = np.random.default_rng(0)
    won = Counter()
    for seed in range(400):
        drafted = team_draft(poor, good, 10, seed=seed)
        looked = generator.random(10) < 1 / np.arange(1, 11)
        won[draft_winner(team for (item, team), seen in zip(drafted, looked, strict=True) if seen and item < 5)] += 1
    assert won["b"] > 20 * max(1, won["a"])


def test_a_draw_has_no_winner() -> None:
    assert draft_winner([]) is None
    assert draft_winner("ab") is None
    assert draft_winner("aba") == "a"


def test_unknown_teams_and_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="teams are"):
        draft_winner(["c"])
    for k in (-2, "3"):
        with pytest.raises(InvalidInputError, match="number of items"):
            team_draft(["cat"], ["dog"], k, seed=0)
