"""Whether clicks have anything to do with what is seen, told from made-up pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diptych.arrays import FloatArray
from diptych.collection.learning.search_log import Evidence
from diptych.collection.learning.visual_consistency import VisualConsistencyTest

N_QUERIES, N_PLACES, WIDTH = 100, 20, 32


def clicked_pictures(
    seed: int, *, likeness: float, eta: float, searches: float = 60.0
) -> tuple[Evidence, FloatArray, FloatArray, list[tuple[str]]]:
    """Return pictures of queries; wanted ones share a direction and score higher, by ``likeness``."""
    rng = np.random.default_rng(seed)
    query_ids = np.repeat(np.arange(N_QUERIES), N_PLACES)
    places = np.tile(np.arange(1.0, N_PLACES + 1), N_QUERIES)
    wanted = rng.random(len(places)) < 0.3
    points = rng.normal(size=(len(places), WIDTH))
    points += likeness * wanted[:, None] * rng.normal(size=(N_QUERIES, WIDTH))[query_ids]
    scores = rng.normal(size=len(places)) + likeness * wanted
    looks = searches * places**-eta
    clicks = rng.poisson(np.where(wanted, 0.9, 0.1) * looks).astype(float)
    words = [(f"thing{number}",) for number in range(N_QUERIES)]
    return Evidence(query_ids, np.arange(len(places)), looks, clicks, places), points, scores, words


@pytest.mark.parametrize("eta", [1.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_clicked_pictures_that_look_alike_mean_something_even_where_few_look(seed: int, eta: float) -> None:
    found = VisualConsistencyTest.run(*clicked_pictures(seed, likeness=0.4, eta=eta))
    assert found.n_queries > 0.9 * N_QUERIES
    assert found.p_value < 1e-3


@pytest.mark.parametrize("eta", [0.0, 2.0])
def test_clicks_on_pictures_that_have_nothing_in_common_mean_nothing(eta: float) -> None:
    found = np.array(
        [VisualConsistencyTest.run(*clicked_pictures(seed, likeness=0.0, eta=eta)).z for seed in range(20)]
    )
    assert found.max() < 2.7
    assert abs(found.mean()) < 0.6


def test_logs_without_places_are_dealt_within_each_query() -> None:
    alike, nothing = (clicked_pictures(0, likeness=likeness, eta=0.0) for likeness in (0.4, 0.0))
    assert VisualConsistencyTest.run(*alike, within_queries=True).p_value < 1e-4
    assert VisualConsistencyTest.run(*nothing, within_queries=True).p_value > 0.01


def test_too_few_queries_mean_nothing() -> None:
    seen, *rest = clicked_pictures(0, likeness=2.0, eta=0.0)
    unclicked = replace(seen, clicks=np.where(seen.query_ids == 0, seen.clicks, 0.0))
    assert VisualConsistencyTest.run(unclicked, *rest).p_value == 1.0
