"""Where heavy work runs: the device that was chosen, what ONNX Runtime calls it, and PyTorch on a graphics card."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError, MissingPackageError, UnknownNameError

DEVICE_VARIABLE = "DIPTYCH_DEVICE"
"""The environment variable that chooses among ``DEVICES``."""
CARD_BATCH = 64
"""Pictures that a network takes at once on an accelerator, which is idle between small batches."""
# Multiply-adds of some ten seconds on two cores: loading PyTorch and starting a card take two or three.
MIN_CARD_WORK = 5e11
EIGHT_BIT_FLAGS = frozenset({"avx512_vnni", "avx512vnni", "avx_vnni", "asimddp"})
"""What Linux and CPUID call instructions that multiply and add bytes."""


class Provider(NamedTuple):
    """What runs networks in ONNX Runtime: its name there, its options, and how to get it."""

    name: str
    options: Mapping[str, str]
    install: str


PROVIDERS = {
    "cpu": Provider("CPUExecutionProvider", {}, "pip install onnxruntime"),
    "cuda": Provider(
        "CUDAExecutionProvider",
        # Without TF32 products keep all digits of float32. The exhaustive search would time every batch size anew.
        {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"},
        "pip install 'onnxruntime-gpu[cuda,cudnn]' in place of onnxruntime",
    ),
    "coreml": Provider(
        "CoreMLExecutionProvider",
        {"ModelFormat": "MLProgram", "MLComputeUnits": "ALL"},
        "pip install onnxruntime on macOS",
    ),
    "directml": Provider(
        "DmlExecutionProvider", {}, "on Windows: pip install onnxruntime-directml in place of onnxruntime"
    ),
    "openvino": Provider(
        "OpenVINOExecutionProvider",
        {"device_type": "AUTO"},
        "pip install onnxruntime-openvino in place of onnxruntime",
    ),
}
DEVICES = ("auto", *PROVIDERS)
"""``auto`` takes an NVIDIA card where ONNX Runtime can use it, and the processor otherwise."""


def chosen_device() -> str:
    """Return the device that the environment asks for, ``auto`` by default."""
    chosen = os.environ.get(DEVICE_VARIABLE, "auto")
    if chosen not in DEVICES:
        raise UnknownNameError("device", chosen, DEVICES)
    return chosen


def network_device() -> str:
    """Return the device that runs networks; one that was chosen and is not installed is an error with the fix."""
    chosen = chosen_device()
    if chosen == "auto":
        return "cuda" if has_nvidia_card() and _is_installed("cuda") else "cpu"
    if not _is_installed(chosen):
        raise missing_provider(chosen)
    return chosen


def missing_provider(device: str) -> InvalidInputError:
    """Return the error for a device that ONNX Runtime cannot use."""
    return InvalidInputError(
        f"ONNX Runtime cannot use {PROVIDERS[device].name} here; {PROVIDERS[device].install}, or pass --device cpu"
    )


def _is_installed(device: str) -> bool:
    if device == "cpu":
        return True
    if find_spec("onnxruntime") is None:
        return False
    import onnxruntime

    return PROVIDERS[device].name in onnxruntime.get_available_providers()


def has_nvidia_card() -> bool:
    """Return True if the machine has an NVIDIA card; nothing is loaded to find out."""
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def uses_accelerator() -> bool:
    """Return True if networks run on something else than the processor."""
    return network_device() != "cpu"


def batch_for_device(batch_size: int) -> int:
    """Return how many pictures a network takes at once: more on an accelerator."""
    return max(batch_size, CARD_BATCH) if uses_accelerator() else batch_size


def idle_card_note() -> str | None:
    """Return a sentence where there is an NVIDIA card that ONNX Runtime lacks a package for."""
    if chosen_device() not in ("auto", "cuda") or not has_nvidia_card() or _is_installed("cuda"):
        return None
    return f"an NVIDIA card is here, but ONNX Runtime cannot use it; {PROVIDERS['cuda'].install}"


@lru_cache(maxsize=1)
def multiplies_bytes() -> bool:
    """Return True if the processor has instructions for products of bytes (VNNI, dot products)."""
    try:
        from cpuinfo import get_cpu_info
    except ImportError as error:
        raise MissingPackageError("asking for the processor's instructions", "py-cpuinfo") from error
    # Every Apple processor since the M1 has dot products; macOS lists no flags for them.
    is_apple = platform.system() == "Darwin" and platform.machine() == "arm64"
    return is_apple or bool(EIGHT_BIT_FLAGS.intersection(get_cpu_info().get("flags", ())))


@dataclass(frozen=True)
class Card:
    """PyTorch, and the device on which its tensors live.

    Results equal those of NumPy to rounding: sums are float64, and products of float32 keep all digits.
    """

    torch: Any
    device: str = "cuda"

    def tensor(self, values: AnyArray) -> Any:
        """Return a copy of an array on the card."""
        return self.torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    def zeros(self, shape: int | tuple[int, ...]) -> Any:
        """Return float64 zeros on the card."""
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.device)

    def ones(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return ones on the card."""
        return self.torch.ones(shape, dtype=dtype, device=self.device)


def as_array(values: Any) -> AnyArray:
    """Return a tensor as an array of this machine's memory; an array is returned as it is."""
    return values if isinstance(values, np.ndarray) else np.asarray(values.cpu().numpy())


def card_for(multiply_adds: float) -> Card | None:
    """Return a card for work of that size, or None where the processor does it.

    ``DIPTYCH_DEVICE=cuda`` takes the card for work of any size, ``auto`` for work that outlasts loading PyTorch.
    Without PyTorch, or without a card that it can use, all work is the processor's.
    """
    chosen = chosen_device()
    if chosen not in ("auto", "cuda") or (chosen == "auto" and multiply_adds < MIN_CARD_WORK) or not has_nvidia_card():
        return None
    return _torch_card()


@lru_cache(maxsize=1)
def _torch_card() -> Card | None:
    if find_spec("torch") is None:
        return None
    torch = import_module("torch")
    return Card(torch) if torch.cuda.is_available() else None
