from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.arrays import FloatArray
from diptych.collection.learning import Impressions, PositionModel, corrected_clicks
from diptych.errors import InvalidInputError

DEPTH = 10


def simulated(theta: FloatArray, *, n_queries: int = 150, times: int = 40, varying: bool = True) -> Impressions:
    """Show items of a good ranker, of which some are missing at times, to people who look as theta says."""
    rng = np.random.default_rng(0)
    rows = []
    for query in range(n_queries):
        merit = rng.normal(size=30)
        wanted = np.clip(0.3 + 0.3 * merit + 0.1 * rng.normal(size=30), 0.02, 0.98)
        for _ in range(4 if varying else 1):
            there = rng.random(30) < (0.7 if varying else 1.1)
            order = np.argsort(np.where(there, -merit, np.inf))[: len(theta)]
            clicks = rng.binomial(times, theta * wanted[order])
            rows += [
                (f"q{query}", f"i{item}", place, times, count)
                for place, (item, count) in enumerate(zip(order, clicks, strict=True), start=1)
            ]
    return Impressions.from_rows(rows)


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 2.0])
def test_known_propensities_are_recovered_though_better_items_stand_higher(eta: float) -> None:
    theta = np.arange(1.0, DEPTH + 1) ** -eta
    model = PositionModel().fit(simulated(theta))
    assert not model.is_assumed_
    assert model.n_linked_ == DEPTH
    # What stands deep is unwanted here and seldom looked at: clicks are few.
    np.testing.assert_allclose(model.propensities_[:5], theta[:5], rtol=0.1)
    assert model.eta_ == pytest.approx(eta, abs=0.08)


def test_the_share_of_clicks_by_position_would_be_wrong() -> None:
    seen = simulated(np.ones(DEPTH))
    rates = np.bincount(seen.positions, seen.clicked)[1:] / np.bincount(seen.positions, seen.shown)[1:]
    assert rates[-1] / rates[0] < 0.8
    assert PositionModel().fit(seen).propensities_[-1] == pytest.approx(1.0, abs=0.1)


def test_where_nothing_varies_the_curve_is_assumed_and_never_steeper_than_one_over_rank() -> None:
    model = PositionModel().fit(simulated(np.arange(1.0, DEPTH + 1) ** -2, varying=False))
    assert model.is_assumed_
    assert model.eta_ == 1.0
    np.testing.assert_allclose(model.propensities_, 1 / np.arange(1, DEPTH + 1))


def test_positions_that_nothing_links_to_the_first_follow_the_curve() -> None:
    theta = 1 / np.arange(1.0, DEPTH + 1)
    seen = simulated(theta)
    deep = Impressions.from_rows([("deep", "a", 15, 100, 3), ("deep", "a", 16, 100, 90)])
    rows = [
        (part.queries[query], part.items[item], place, shown, clicked)
        for part in (seen, deep)
        for query, item, place, shown, clicked in zip(
            part.query_ids, part.item_ids, part.positions, part.shown, part.clicked, strict=True
        )
    ]
    model = PositionModel().fit(Impressions.from_rows(rows))
    assert model.n_linked_ == DEPTH
    np.testing.assert_allclose(model.propensities_[14:], np.array([15.0, 16.0]) ** -model.eta_)
    np.testing.assert_allclose(model.examined(np.array([1, 40])), [1.0, 40.0**-model.eta_])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 6), st.integers(0, 9)), min_size=1))
def test_any_log_gives_probabilities_and_first_is_one(rows: list[tuple[int, int, int, int]]) -> None:
    seen = Impressions.from_rows([(f"q{q}", f"i{i}", place, 9, clicks) for q, i, place, clicks in rows])
    model = PositionModel().fit(seen)
    assert model.propensities_[0] == 1.0
    assert (model.propensities_ > 0).all()
    if seen.n_clicks:
        found = corrected_clicks(seen, model)
        assert ((found.rates >= 0) & (found.rates <= 1)).all()
        assert set(found.grades) <= {0.0, 1.0, 2.0, 3.0}


def test_grades_tell_wanted_from_unwanted_items_wherever_they_stood() -> None:
    rng = np.random.default_rng(0)
    theta = 1 / np.arange(1.0, DEPTH + 1)
    wanted = rng.random((200, DEPTH)) < 0.3
    clicks = rng.binomial(200, theta * np.where(wanted, 0.8, 0.08))
    seen = Impressions.from_rows(
        (f"q{query}", f"i{query}-{place}", place + 1, 200, clicks[query, place])
        for query in range(200)
        for place in range(DEPTH)
    )
    known = PositionModel()
    known.propensities_, known.after_click_, known.eta_ = theta, 1.0, 1.0
    found = corrected_clicks(seen, known)
    assert found.noise_rate == pytest.approx(0.08, rel=0.1)
    is_wanted = wanted[found.query_ids, found.item_ids % DEPTH]
    np.testing.assert_array_equal(found.grades > 0, found.rates > 0)
    assert (found.grades[is_wanted] == 3).mean() > 0.95
    assert (found.grades[~is_wanted] == 0).mean() > 0.98
    for place in (0, DEPTH - 1):
        here = (found.item_ids % DEPTH == place) & is_wanted
        assert found.rates[here].mean() == pytest.approx(0.8, abs=0.05)


def test_clicks_that_tell_nothing_give_no_grades() -> None:
    rng = np.random.default_rng(0)
    clicks = rng.binomial(300, 0.1, size=500)
    seen = Impressions.from_rows((f"q{row}", "i", 1, 300, count) for row, count in enumerate(clicks))
    assert not corrected_clicks(seen, PositionModel().fit(seen)).grades.any()


def test_a_single_click_far_down_counts_less_than_steady_ones_at_the_top() -> None:
    rows = [("q", "steady", 1, 100, 50), ("q", "lucky", 10, 1, 1)]
    rows += [("q", f"other{place}", place, 100, 0) for place in range(2, 10)]
    seen = Impressions.from_rows(rows)
    found = corrected_clicks(seen, PositionModel().fit(seen))
    clicks = dict(zip([found.items[item] for item in found.item_ids], found.clicks, strict=True))
    assert clicks["steady"] > 10 * clicks["lucky"]
    assert [clicks[f"other{place}"] for place in range(2, 10)] == [0.0] * 8


def test_impossible_impressions_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="clicked 3 times but shown 2 times"):
        Impressions.from_rows([("q", "i", 1, 2, 3)])
    with pytest.raises(InvalidInputError, match="positions count from 1"):
        Impressions.from_rows([("q", "i", 0, 2, 1)])
    with pytest.raises(InvalidInputError, match="no impressions"):
        PositionModel().fit(Impressions.from_rows([]))
