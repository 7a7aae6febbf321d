"""Plans of running a network: none changes a bit, the fastest of a trial is remembered, and few pictures need none."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from diptych.cli import indexing
from diptych.encoders import ColourEdgeHistograms, EfficientNetLite, SideBySide
from diptych.encoders.image import encoding_plan
from diptych.encoders.image.encoding_plan import (
    TRIAL_PHOTOGRAPHS,
    EncodingPlan,
    candidate_plans,
    known_plan,
    measure_plan,
)
from diptych.encoders.image.image_encoder import ConvolutionalEncoder

USUAL = EncodingPlan(4, 1, 1)
PICTURES = [np.full((2, 2, 3), shade, dtype=np.uint8) for shade in range(5)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def measured(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[EncodingPlan, float], spoiled: EncodingPlan | None = None
) -> EncodingPlan:
    """Return what is chosen of plans that take so long, 1 second where nothing is said, one with other features."""
    monkeypatch.setattr(encoding_plan, "_seconds", lambda run, plan, pictures: seconds.get(plan, 1.0))

    def run(plan: EncodingPlan, pictures: Any) -> np.ndarray:
        return np.array([float(each.sum()) for each in pictures]) + (1e-7 if plan == spoiled else 0)

    return measure_plan("net", 4, USUAL, PICTURES, run)


def test_what_is_not_measured_runs_as_ever() -> None:
    assert EncodingPlan.usual(4, 8) == EncodingPlan(4, 1, 1)
    assert EncodingPlan.usual(16, 8) == EncodingPlan(1, 16, 8)
    assert known_plan("net", 4) is None


@pytest.mark.parametrize(("count", "sizes"), [(8, [4, 4]), (5, [3, 2]), (2, [1, 1]), (1, [1]), (9, [4, 4, 1])])
def test_runs_share_the_pictures_in_their_order(count: int, sizes: list[int]) -> None:
    pictures = [np.full(3, place) for place in range(count)]
    parts = EncodingPlan(2, 1, 4).parts(pictures)
    assert [len(part) for part in parts] == sizes
    np.testing.assert_array_equal(np.concatenate(parts), pictures)


def test_the_fastest_plan_is_remembered_for_its_network_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    fastest = EncodingPlan(4, 1, 4)
    assert fastest in candidate_plans(4, USUAL)
    assert measured(monkeypatch, {fastest: 0.5}) == fastest
    assert known_plan("net", 4) == fastest
    assert known_plan("net", 8) is None
    assert known_plan("other", 4) is None
    monkeypatch.setattr(encoding_plan, "runtime_version", lambda: "0.1")
    assert known_plan("net", 4) is None


def test_a_small_gain_may_be_luck(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, {EncodingPlan(4, 1, 4): 0.95}) == USUAL
    assert known_plan("net", 4) == USUAL


def test_a_plan_that_changes_features_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, faster = EncodingPlan(4, 1, 4), EncodingPlan(2, 1, 1)
    assert measured(monkeypatch, {fast: 0.5, faster: 0.3}, spoiled=faster) == fast


@pytest.mark.parametrize("content", ["{", "[]", '{"a": {"n_runs": 0, "threads_each": 1, "pictures_each": 1}}'])
def test_plans_that_cannot_be_read_are_made_again(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = encoding_plan._plans_file()
    file.parent.mkdir(parents=True)
    file.write_text(content)
    assert known_plan("a", 1) is None
    assert measured(monkeypatch, {}) == USUAL
    assert known_plan("net", 4) == USUAL


def test_encoders_make_the_same_features_by_every_plan() -> None:
    encoder = EfficientNetLite(network="lite0", pixels=64)
    # As many as keep all threads busy to the end.
    pictures = [*TRIAL_PHOTOGRAPHS, *TRIAL_PHOTOGRAPHS, *TRIAL_PHOTOGRAPHS[:2]]
    expected = EfficientNetLite(network="lite0", pixels=64, n_threads=1).transform(pictures)
    assert encoder.lacks_plan
    for plan in candidate_plans(4, EncodingPlan.usual(4, 8)):
        encoding_plan._remember(encoding_plan._key(encoder.network_name, encoder.threads), plan)
        assert not encoder.lacks_plan
        assert encoder.pictures_at_once == max(8, plan.pictures_at_once)
        # Threads that share a picture may round otherwise; a measurement does not take such a plan.
        tolerance = 0 if plan.threads_each == 1 else 1e-4
        np.testing.assert_allclose(encoder.transform(pictures), expected, rtol=0, atol=tolerance)
    chosen = EfficientNetLite(network="lite0", pixels=64, n_threads=1)
    assert chosen.pictures_at_once == 8
    assert not chosen.lacks_plan


def test_a_measurement_leaves_a_plan() -> None:
    encoder = EfficientNetLite(network="lite0", pixels=64)
    encoder.measure_plan()
    assert known_plan(encoder.network_name, encoder.threads) is not None


@pytest.mark.parametrize(("n_there", "expected"), [(0, ["lite0"]), (1, [])])
def test_only_many_new_pictures_are_worth_a_measurement(
    n_there: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    monkeypatch.setattr(ConvolutionalEncoder, "measure_plan", lambda self: tried.append(self.network))
    encoder = SideBySide(encoders=(EfficientNetLite(network="lite0"), ColourEdgeHistograms()))
    collection: Any = SimpleNamespace(
        status=lambda: SimpleNamespace(pictures=n_there), retriever=SimpleNamespace(image_encoder_=encoder)
    )
    stages: Any = SimpleNamespace(run=lambda *_: nullcontext())
    indexing._measure_plans(collection, indexing._WORTH_A_PLAN, stages)
    assert tried == expected
