"""Layers, rows held out, and towers while they are trained."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.models.neural._layers import (
    StandardView,
    for_raw_rows,
    held_out_rows,
    run_layers,
)
from diptych.models.neural._torch import Tower


def test_no_class_leaves_training_and_the_share_is_held_out() -> None:
    labels = np.r_[np.zeros(30, dtype=int), np.ones(30, dtype=int), [2]]
    train, held_out = held_out_rows(np.eye(3)[labels], 0.25, np.random.default_rng(3))
    assert len(held_out) == 15
    assert sorted([*train, *held_out]) == list(range(61))
    assert set(labels[train]) == {0, 1, 2}
    nothing = held_out_rows(np.eye(2)[np.arange(10) % 2], 0.1, np.random.default_rng(0))[1]
    assert len(nothing) == 0


def test_layers_encode_raw_rows_as_they_were_trained_on_standardized_ones() -> None:
    rng = np.random.default_rng(0)
    rows = 1e4 + 100 * rng.normal(size=(50, 6))
    view = StandardView.of(rows, name="images")
    tower = Tower.drawn((6, 7, 5, 3), rng, dropout=0.5)
    trained = tower.outputs(view.standardized(np.arange(50))).detach().numpy()
    encoded = run_layers(rows, view.mean, for_raw_rows(tower.layers(), view.deviation), activation="relu")
    np.testing.assert_allclose(encoded, trained, rtol=1e-4, atol=1e-5)


def test_dropout_keeps_the_mean_and_is_off_when_not_training() -> None:
    tower = Tower.drawn((4, 4000, 1), np.random.default_rng(1), dropout=0.5)
    rows = np.ones((1, 4), dtype=np.float32)
    whole = tower.outputs(rows).item()
    dropped = [tower.outputs(rows, training=True).item() for _ in range(60)]
    assert np.std(dropped) > 0
    assert np.mean(dropped) == pytest.approx(whole, abs=4 * np.std(dropped) / np.sqrt(60))
    assert tower.outputs(rows).item() == whole
