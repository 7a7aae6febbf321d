from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.arrays import FloatArray
from diptych.collection.learning import Impressions, PositionModel
from diptych.errors import InvalidInputError

DEPTH = 10


def counted(rows: list[tuple[int, int, int, int]]) -> Impressions:
    """Return impressions of rows (pair, position, times shown, times clicked)."""
    pairs, positions, shown, clicked = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return Impressions(pairs, positions, shown.astype(float), clicked.astype(float), np.zeros(len(rows), dtype=bool))


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
                (30 * query + int(item), place, times, int(count))
                for place, (item, count) in enumerate(zip(order, clicks, strict=True), start=1)
            ]
    return counted(rows)


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
    deep = counted([(-1, 15, 100, 3), (-1, 16, 100, 90)])
    names = [each.name for each in fields(Impressions)]
    both = Impressions(*(np.concatenate([getattr(seen, name), getattr(deep, name)]) for name in names))
    model = PositionModel().fit(both)
    assert model.n_linked_ == DEPTH
    np.testing.assert_allclose(model.propensities_[14:], np.array([15.0, 16.0]) ** -model.eta_)
    np.testing.assert_allclose(model.examined(np.array([1, 40])), [1.0, 40.0**-model.eta_])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 6), st.integers(0, 9)), min_size=1))
def test_any_log_gives_probabilities_and_first_is_one(rows: list[tuple[int, int, int, int]]) -> None:
    model = PositionModel().fit(counted([(5 * query + item, place, 9, clicks) for query, item, place, clicks in rows]))
    assert model.propensities_[0] == 1.0
    assert (model.propensities_ > 0).all()


def test_without_impressions_there_is_nothing_to_learn() -> None:
    with pytest.raises(InvalidInputError, match="no impressions"):
        PositionModel().fit(counted([]))
