from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from diptych import devices
from diptych.devices import (
    DEVICE_VARIABLE,
    PROVIDERS,
    Provider,
    batch_for_device,
    idle_card_note,
    multiplies_bytes,
    network_device,
    uses_accelerator,
)
from diptych.encoders import EfficientNetLite
from diptych.errors import InvalidInputError, UnknownNameError

PICTURE = np.random.default_rng(0).integers(0, 256, (96, 96, 3), dtype=np.uint8)


def test_the_processor_is_always_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "cpu")
    assert network_device() == "cpu"
    assert not uses_accelerator()
    assert batch_for_device(8) == 8
    assert idle_card_note() is None


@pytest.mark.parametrize("device", [name for name in PROVIDERS if name != "cpu"])
def test_a_provider_that_is_not_installed_is_an_error_with_the_fix(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if PROVIDERS[device].name in onnxruntime.get_available_providers():
        pytest.skip("it is installed")
    monkeypatch.setenv(DEVICE_VARIABLE, device)
    with pytest.raises(InvalidInputError, match=rf"{PROVIDERS[device].name}.*onnxruntime.*--device cpu"):
        EfficientNetLite(network="lite0").transform([PICTURE])


def test_another_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "abacus")
    with pytest.raises(UnknownNameError, match="abacus"):
        network_device()


@pytest.mark.parametrize(("has_card", "is_installed", "expected"), [(1, 1, "cuda"), (1, 0, "cpu"), (0, 1, "cpu")])
def test_auto_takes_a_card_that_can_be_used(
    has_card: bool, is_installed: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "auto")
    monkeypatch.setattr(devices, "has_nvidia_card", lambda: has_card)
    monkeypatch.setattr(devices, "_is_installed", lambda device: is_installed)
    assert network_device() == expected
    assert (idle_card_note() is not None) == (has_card and not is_installed)


@pytest.mark.filterwarnings("ignore:Specified provider")
@pytest.mark.parametrize("chosen", ["auto", "cuda"])
def test_a_card_without_its_libraries_is_an_error_where_it_was_chosen(
    chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime falls back to the processor by itself."""
    monkeypatch.setenv(DEVICE_VARIABLE, chosen)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(devices, "has_nvidia_card", lambda: True)
    monkeypatch.setattr(devices, "_is_installed", lambda device: True)
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    encoder = EfficientNetLite(network="lite0", pixels=64)
    if chosen == "auto":
        with pytest.warns(UserWarning, match="cannot use CUDAExecutionProvider"):
            assert encoder.transform([PICTURE]).shape == (1, 1280)
    else:
        with pytest.raises(InvalidInputError, match="cannot use CUDAExecutionProvider"):
            encoder.transform([PICTURE])


@pytest.mark.filterwarnings("ignore:Duplicate provider")
def test_an_accelerator_gets_large_batches_and_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor's own provider stands in for one."""
    monkeypatch.setitem(PROVIDERS, "openvino", Provider("CPUExecutionProvider", {}, "nothing"))
    monkeypatch.setenv(DEVICE_VARIABLE, "cpu")
    expected = EfficientNetLite(network="lite0", pixels=96).transform([PICTURE])
    monkeypatch.setenv(DEVICE_VARIABLE, "openvino")
    encoder = EfficientNetLite(network="lite0", pixels=96)
    assert encoder.pictures_at_once == devices.CARD_BATCH
    np.testing.assert_allclose(encoder.transform([PICTURE]), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [(["avx2", "avx512_vnni"], True), (["avx_vnni"], True), (["asimddp"], True), (["avx2"], False)],
)
def test_flags_of_the_processor_tell_of_products_of_bytes(
    flags: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpuinfo.get_cpu_info", lambda: {"flags": flags})
    monkeypatch.setattr("platform.system", lambda: "Linux")
    multiplies_bytes.cache_clear()
    try:
        assert multiplies_bytes() is expected
    finally:
        multiplies_bytes.cache_clear()
