from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from diptych.encoders.networks.onnx_network import _SMALLEST_NETWORK, execution_providers, idle_card_note, uses_card
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.graphics_card import DEVICE_VARIABLE


def test_the_processor_is_always_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "cpu")
    assert execution_providers() == ["CPUExecutionProvider"]
    assert not uses_card()
    # Whoever asks for the processor wants no advice.
    assert idle_card_note() is None
    monkeypatch.delenv(DEVICE_VARIABLE)
    assert execution_providers()[-1] == "CPUExecutionProvider"


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="it can be used here")
def test_a_card_that_cannot_be_used_is_an_error_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "cuda")
    with pytest.raises(InvalidInputError, match="onnxruntime-gpu"):
        execution_providers()


def test_another_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "abacus")
    with pytest.raises(UnknownNameError, match="abacus"):
        execution_providers()


def test_the_network_that_tries_a_card_can_be_run() -> None:
    session = onnxruntime.InferenceSession(_SMALLEST_NETWORK, providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.array([-2], dtype=np.float32)})[0].tolist() == [2]
