"""Which work a graphics card gets, and what PyTorch keeps of arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diptych import devices
from diptych.devices import DEVICE_VARIABLE, Card, as_array, card_for
from diptych.errors import UnknownNameError

CARD = Card(torch, "cpu")


@pytest.fixture
def a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be a card."""
    monkeypatch.setattr(devices, "has_nvidia_card", lambda: True)
    monkeypatch.setattr(devices, "_torch_card", lambda: CARD)


@pytest.mark.parametrize(
    ("device", "small", "large"), [("cpu", None, None), ("auto", None, CARD), ("cuda", CARD, CARD)]
)
def test_the_device_and_the_size_of_the_work_decide(a_card, monkeypatch, device, small, large) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, device)
    assert card_for(1e6) is small
    assert card_for(1e15) is large


def test_without_a_card_all_work_is_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "has_nvidia_card", lambda: False)
    for device in ("auto", "cpu", "cuda"):
        monkeypatch.setenv(DEVICE_VARIABLE, device)
        assert card_for(1e15) is None


def test_another_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "abacus")
    with pytest.raises(UnknownNameError, match="abacus"):
        card_for(1.0)


def test_arrays_come_back_as_they_went_and_sums_are_double() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3).T
    np.testing.assert_array_equal(as_array(CARD.tensor(values)), values)
    assert as_array(CARD.zeros((2, 2))).dtype == np.float64
    assert as_array(values) is values
