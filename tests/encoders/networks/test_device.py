from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from diptych import devices
from diptych.devices import (
    _SMALLEST_NETWORK,
    ACCELERATORS,
    DEVICE_VARIABLE,
    DEVICES,
    Accelerator,
    accelerators,
    execution_providers,
    idle_card_note,
    uses_card,
)
from diptych.encoders import EfficientNetLite
from diptych.encoders.image import encoding_plan
from diptych.encoders.image.encoding_plan import TRIAL_PHOTOGRAPHS, EncodingPlan
from diptych.errors import InvalidInputError, UnknownNameError
from diptych.retriever import Retriever, precision


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


@pytest.mark.parametrize("device", ACCELERATORS)
def test_an_accelerator_that_is_not_there_is_an_error_with_the_fix(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ACCELERATORS[device].provider in onnxruntime.get_available_providers():
        pytest.skip("it is here")
    monkeypatch.setenv(DEVICE_VARIABLE, device)
    # Networks of words run on the processor all the same.
    assert execution_providers() == ["CPUExecutionProvider"]
    with pytest.raises(InvalidInputError, match=f"onnxruntime.*--device {device}"):
        EfficientNetLite(network="lite0").transform(TRIAL_PHOTOGRAPHS[:1])


@pytest.fixture
def accelerator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The processor's own provider, run as an accelerator is: in large batches, from networks that nobody prepared."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(ACCELERATORS, "openvino", Accelerator("A stand-in", "CPUExecutionProvider", {}, "nothing"))
    devices._runs.cache_clear()
    yield "openvino"
    devices._runs.cache_clear()


@pytest.mark.filterwarnings("ignore:Duplicate provider")
def test_an_accelerator_makes_the_same_features(accelerator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "cpu")
    encoder = EfficientNetLite(network="lite0", pixels=96)
    expected = encoder.transform(TRIAL_PHOTOGRAPHS)
    assert encoder.accelerator is None
    monkeypatch.setenv(DEVICE_VARIABLE, accelerator)
    found = EfficientNetLite(network="lite0", pixels=96)
    assert found.accelerator == accelerator
    assert found.pictures_at_once == 32
    np.testing.assert_allclose(found.transform(TRIAL_PHOTOGRAPHS), expected, atol=1e-3)


@pytest.mark.filterwarnings("ignore:Duplicate provider")
def test_an_accelerator_that_makes_other_features_is_left_alone(
    accelerator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, accelerator)
    with pytest.warns(UserWarning, match="A stand-in runs no network in eight bits"):
        assert EfficientNetLite(network="lite0", pixels=96, precision="int8").accelerator is None
    monkeypatch.setattr("diptych.encoders.image.image_encoder.is_near", lambda *_: False)
    with pytest.warns(UserWarning, match="A stand-in makes other features"):
        assert EfficientNetLite(network="lite0", pixels=96).accelerator is None


@pytest.mark.filterwarnings("ignore:Duplicate provider")
@pytest.mark.parametrize("is_faster", [True, False])
def test_an_accelerator_is_taken_by_itself_where_it_is_faster(
    is_faster: bool, accelerator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "auto")

    def seconds(run: object, plan: EncodingPlan, pictures: object) -> float:
        return 0.5 if plan.accelerator is not None and is_faster else 1.0

    monkeypatch.setattr(encoding_plan, "_seconds", seconds)
    encoder = EfficientNetLite(network="lite0", pixels=96)
    assert encoder.lacks_plan
    encoder.measure_plan()
    assert not encoder.lacks_plan
    assert encoder.accelerator == (accelerator if is_faster else None)
    # Taken away again, it is not asked for.
    monkeypatch.delitem(ACCELERATORS, accelerator)
    assert encoder.accelerator is None
    assert set(DEVICES) > set(accelerators())


@pytest.mark.filterwarnings("ignore:Duplicate provider")
def test_an_accelerator_has_to_outrun_eight_bits(accelerator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "is_worth", lambda *_: True)
    monkeypatch.setattr(encoding_plan, "_seconds", lambda run, plan, _: 0.5 if plan.accelerator is not None else 1.0)
    encoder = EfficientNetLite(network="lite0", pixels=96)
    retriever = Retriever(image_encoder=encoder)
    retriever.image_encoder_ = encoder
    for device, seconds, expected in (
        ("auto", {None: 1.0, "int8": 2.0}, "float32"),
        ("auto", {None: 2.0, "int8": 1.0}, "int8"),
        # Whoever names it has chosen.
        (accelerator, {None: 2.0, "int8": 1.0}, "float32"),
        ("cpu", {None: 1.0, "int8": 2.0}, "int8"),
    ):
        monkeypatch.setenv(DEVICE_VARIABLE, device)
        monkeypatch.setattr(precision, "_seconds_of_many", lambda network, of=seconds: of[network.precision])
        chosen = precision.in_precision(retriever, "auto", 500)
        assert precision.precision_of(chosen.image_encoder_) == expected
